"""What some tests need beyond Python and the packages that ./dev installs: the one list of it."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.frame.tree import ROOT

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PAGE = ROOT / "docs" / "reference" / "tests.md"


@dataclass(frozen=True, slots=True)
class Need:
    """Something that a machine may lack.

    Attributes:
        found: whether it is here.
        comes: how it gets there.
        pattern: what a test file holds that needs it; "" for a call of `need` with its name.
    """

    found: Callable[[], bool]
    comes: str
    pattern: str = ""


def program(*names: str) -> str | None:
    """The first of these programs on the path, or where Debian keeps the newest PostgreSQL."""
    for name in names:
        kept = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
        if found := shutil.which(name) or (str(kept[-1]) if kept else None):
            return found
    return None


def metrics_python() -> str | None:
    """A Python that has SDMetrics and anonymeter; they want another pandas than ours."""
    here = all(importlib.util.find_spec(name) for name in ("sdmetrics", "anonymeter"))
    return os.environ.get("GIBBOUS_METRICS_PYTHON") or (sys.executable if here else None)


def peer_python(module: str) -> str | None:
    """Of the Pythons in GIBBOUS_PEERS (as in PATH), the first that has a package of another tool."""
    for python in filter(None, os.environ.get("GIBBOUS_PEERS", "").split(os.pathsep)):
        if not subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode:
            return python
    return None


def builder() -> str | None:
    """Where the program is that makes HTML of the pages."""
    own = ROOT / ".venv" / "docs" / "bin"
    return shutil.which("zensical", path=str(own)) or shutil.which("zensical")


NEEDS: dict[str, Need] = {
    "Java 17": Need(
        lambda: shutil.which("java") is not None or "JAVA_HOME" in os.environ,
        "the system; `.ci/run` installs it",
        r"mark\.spark",
    ),
    "pyspark": Need(
        lambda: importlib.util.find_spec("pyspark") is not None,
        "`./dev test --all` installs it",
        r"mark\.spark",
    ),
    "SDMetrics and anonymeter": Need(
        lambda: metrics_python() is not None,
        "`pip install sdmetrics anonymeter` elsewhere, its Python named by `GIBBOUS_METRICS_PYTHON`",
    ),
    "the builder of the site": Need(
        lambda: builder() is not None,
        "`./dev docs` installs it",
    ),
    "Chromium": Need(
        lambda: program(*BROWSERS) is not None,
        "the system; `.ci/run` installs it",
        r"mark\.browser",
    ),
    "PostgreSQL": Need(
        lambda: all(program(name) for name in ("initdb", "postgres")),
        "the system; `.ci/run` installs it",
    ),
    "git": Need(
        lambda: shutil.which("git") is not None and (ROOT / ".git").exists(),
        "the system; and the folder is a clone",
    ),
    "data sets": Need(
        lambda: (ROOT.parent / "shared" / "data").is_dir(),
        "`../shared/data`, which is not public",
        r"\bshared_data\b",
    ),
    "C compiler": Need(
        lambda: sys.platform == "linux" and program("cc") is not None,
        "the system: `cc`, on Linux",
    ),
    "formats extra": Need(
        lambda: all(importlib.util.find_spec(m) for m in ("openpyxl", "pyreadstat", "yaml")),
        "`pip install -e '.[formats]'`",
    ),
    "sdv": Need(
        lambda: peer_python("sdv") is not None,
        "`pip install sdv` elsewhere, 2.0 or later, its Python named by `GIBBOUS_PEERS`",
    ),
    "smartnoise-sql": Need(
        lambda: peer_python("snsql") is not None,
        "`pip install smartnoise-sql` elsewhere, its Python named by `GIBBOUS_PEERS`",
    ),
    "frictionless": Need(
        lambda: importlib.util.find_spec("frictionless") is not None, "`pip install frictionless`"
    ),
    "mlcroissant": Need(
        lambda: importlib.util.find_spec("mlcroissant") is not None, "`pip install mlcroissant`"
    ),
    "R": Need(lambda: program("Rscript") is not None, "the system: `r-base-core`"),
    "ssh-keygen": Need(lambda: program("ssh-keygen") is not None, "the system: an OpenSSH client"),
    "sha256sum": Need(lambda: program("sha256sum") is not None, "GNU coreutils"),
    "/dev/full": Need(lambda: Path("/dev/full").exists(), "Linux"),
    "/proc": Need(lambda: Path("/proc/self").is_dir(), "Linux"),
    "POSIX": Need(lambda: os.name == "posix", "Linux, macOS"),
}


def need(name: str) -> None:
    """Skip, by name, what calls this on a machine without it."""
    if not NEEDS[name].found():
        pytest.skip(f"needs {name} (docs/reference/tests.md)")


def users(name: str) -> list[str]:
    """Test files that need it."""
    pattern = NEEDS[name].pattern or rf'\bneed\("{name}"\)'
    files = (p for p in (ROOT / "tests").rglob("test_*.py") if p.name != "test_needs.py")
    found = (p for p in files if re.search(pattern, p.read_text(encoding="utf-8")))
    return sorted(p.relative_to(ROOT).as_posix() for p in found)


def table() -> str:
    """The list as the page shows it."""
    lines = ["| needs | where it comes from | tests |", "|---|---|---|"]
    for name, one in NEEDS.items():
        files = ", ".join(f"`{file.removeprefix('tests/')}`" for file in users(name))
        lines.append(f"| {name} | {one.comes} | {files} |")
    return "\n".join(lines)
