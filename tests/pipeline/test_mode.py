"""Releases that a group reads: every file has the mode that was asked for, and nobody else may write."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

import gibbous as gb
from gibbous.core.errors import UsageError
from gibbous.write.verify import verify
from tests.pipeline.test_pipeline import SCHEMA, table


def made(out: Path, **more: Any) -> gb.Release:
    return gb.synthesize(
        table(90), SCHEMA, gb.Laplace(epsilon=1), rows=20, out=out, ledger=gb.Ledger.ephemeral(), **more
    )  # fmt: skip


def modes(folder: Path) -> tuple[set[int], set[int]]:
    """Of files, and of folders."""
    paths = [folder, *folder.rglob("*")]
    found = [(path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in paths]
    return {mode for is_dir, mode in found if not is_dir}, {
        mode for is_dir, mode in found if is_dir
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "files", "folders"),
    [({}, 0o600, 0o700), ({"mode": 0o640}, 0o640, 0o750), ({"mode": "0644"}, 0o644, 0o755)],
)
def test_every_file_has_the_mode_that_was_asked_for(
    tmp_path: Path, asked: dict[str, Any], files: int, folders: int
) -> None:
    release = made(tmp_path / "out", format="csv", **asked)
    saved = release.save(tmp_path / "saved")
    reported = gb.report(saved)

    for folder in (tmp_path / "out", saved):
        assert modes(folder) == ({files}, {folders})
        verify(folder)
    assert reported is not None


@pytest.mark.parametrize(
    "mode", [0o660, 0o666, 0o700, 0o440, 640, -1, "rw-r-----", "640x", True, None]
)
def test_another_mode_is_refused_before_anything_is_spent(tmp_path: Path, mode: Any) -> None:
    with pytest.raises(UsageError, match=r"nobody else may ever write|mode of synthesize is not"):
        made(tmp_path / "out", mode=mode)
    assert not (tmp_path / "out").exists()
