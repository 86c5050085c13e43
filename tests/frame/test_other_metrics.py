"""The page about SDMetrics and anonymeter, run with the real packages on a release of its first block."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.frame.tree import DOCS, blocks
from tests.needs import metrics_python, need

PAGE = DOCS / "how-to" / "other-metrics.md"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("language", "holds"),
    [
        ("python sdmetrics", "0.8 < score <= 1"),
        ("python anonymeter", "0 <= risk.value <= 1 and risk.ci[0] <= risk.value <= risk.ci[1]"),
    ],
)
def test_the_other_package_reads_the_release(language: str, holds: str, tmp_path: Path) -> None:
    need("SDMetrics and anonymeter")
    (made,) = blocks(PAGE, "python run")
    (block,) = blocks(PAGE, language)

    for python, script in (
        (sys.executable, made),
        (metrics_python(), f"{block}\nassert {holds}, ({holds!r})\n"),
    ):
        done = subprocess.run(
            [str(python), "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr[-2000:]
