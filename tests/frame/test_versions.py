"""The site: joint entries of docstrings are read apart, and versions lie beside each other in a folder."""

from __future__ import annotations

import importlib
import json
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

from tests.frame.tree import ROOT
from tests.needs import BROWSERS, need, program

WEBSITE = ROOT / "website"


@pytest.fixture
def versions(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(WEBSITE))
    return importlib.import_module("versions")


def _site(folder: Path) -> Path:
    folder.mkdir()
    script = (WEBSITE / "assets" / "site.js").read_text(encoding="utf-8")
    (folder / "assets").mkdir()
    (folder / "assets" / "site.js").write_text(script, encoding="utf-8")
    (folder / "index.html").write_text(
        '<!doctype html><div class="md-header__title">gibbous</div><script src="assets/site.js"></script>'
    )
    return folder


def test_versions_lie_beside_each_other_the_newest_first(
    versions: ModuleType, tmp_path: Path
) -> None:
    site, home = _site(tmp_path / "site"), tmp_path / "kept"

    for name in ("0.9.0", "0.10.0", "0.10.0-rc1"):
        names = versions.keep(site, home, name)

    assert names == ["0.10.0", "0.10.0-rc1", "0.9.0"]
    listed = (home / "versions.js").read_text().removeprefix("window.gibbousVersions = ")
    assert [name for name, _ in json.loads(listed.rstrip(";\n"))] == names
    assert "url=0.10.0/index.html" in (home / "index.html").read_text()


def test_a_name_that_leaves_the_folder_and_a_folder_without_a_site_are_refused(
    versions: ModuleType, tmp_path: Path
) -> None:
    site = _site(tmp_path / "site")

    with pytest.raises(SystemExit, match="not a name"):
        versions.keep(site, tmp_path / "kept", "../up")
    with pytest.raises(SystemExit, match="holds no site"):
        versions.keep(tmp_path, tmp_path / "kept", "1")


@pytest.mark.browser
def test_a_page_opened_from_a_file_offers_the_versions(
    versions: ModuleType, tmp_path: Path
) -> None:
    need("Chromium")
    site, home = _site(tmp_path / "site"), tmp_path / "kept"
    versions.keep(site, home, "0.1.0")
    plain = _opened(site / "index.html")
    alone = _opened(home / "0.1.0" / "index.html")
    versions.keep(site, home, "0.2.0")

    both = _opened(home / "0.1.0" / "index.html")

    assert "versions.js" not in plain, "where no version is kept, there is no such file"
    assert "versions.js" in alone
    assert "<select" not in alone
    assert 'aria-label="Version of these pages"' in both
    assert both.index(">0.2.0<") < both.index(">0.1.0<")


def _opened(page: Path) -> str:
    """What a browser makes of a page, scripts included."""
    done = subprocess.run(
        [str(program(*BROWSERS)), "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
         "--virtual-time-budget=2000", page.as_uri()],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    return done.stdout


def test_the_version_of_the_pages_is_that_of_the_package(versions: ModuleType) -> None:
    import gibbous

    assert versions.version() == gibbous.__version__


JOINT = """Do it.

Args:
    epsilon, delta: of the release,
        in nats.
    seed: of rows.
    x, y: axes"""


def test_joint_entries_are_listed_name_by_name() -> None:
    """griffe is in the builder's environment alone, so the function is run without it."""
    source = (WEBSITE / "joint_arguments.py").read_text(encoding="utf-8")
    space: dict[str, object] = {}
    exec(source.partition("class JointArguments")[0].replace("import griffe\n", ""), space)

    told = space["apart"](JOINT)  # type: ignore[operator]

    assert told == (
        "Do it.\n\nArgs:\n    epsilon: of the release,\n        in nats.\n    delta: of the release,\n"
        "        in nats.\n    seed: of rows.\n    x: axes\n    y: axes"
    )
