"""A public report inside a release is the one that the release gives, or the release is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from gibbous.core.errors import ModelRejected
from gibbous.reporting.release_report import into_release, verify
from tests.write.test_verify import reseal

HTML, TWIN = "report.public.html", "report.public.json"


@pytest.fixture(scope="module")
def reported(nasty: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = Path(shutil.copytree(nasty, tmp_path_factory.mktemp("reported") / "release"))
    into_release(folder)
    return folder


def changed(release: Path, place: Path, name: str, change: Callable[[str], str]) -> Path:
    folder = Path(shutil.copytree(release, place / "copy"))
    before = (folder / name).read_text(encoding="utf-8")
    (folder / name).write_text(change(before), encoding="utf-8")
    assert (folder / name).read_text(encoding="utf-8") != before
    reseal(folder)
    return folder


@pytest.mark.slow
def test_E_the_report_of_a_release_is_made_again(reported: Path) -> None:
    report = verify(reported)

    assert "the public report is the one that gibbous writes" in report.checks
    assert report.gaps == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "change"),
    [
        (HTML, lambda text: text.replace("</h1>", " (anonymous)</h1>", 1)),
        (HTML, lambda text: text.replace("</svg>", "<script>1</script></svg>", 1)),
        (HTML, lambda text: text.replace("<svg ", '<svg onload="1" ', 1)),
        (HTML, lambda text: text + "<svg><text>1</text></svg>"),
        (TWIN, lambda text: text.replace('"audience": "public"', '"audience": "all"', 1)),
        (TWIN, lambda text: "[]"),
    ],
    ids=["a word", "a script in a chart", "a handler in a chart", "one chart more", "twin", "list"],
)
def test_E_a_changed_report_is_refused(
    reported: Path, tmp_path: Path, name: str, change: Callable[[str], str]
) -> None:
    """Before: any page passed under the name of the public report, exit 0. Now: exit 8."""
    folder = changed(reported, tmp_path, name, change)

    with pytest.raises(ModelRejected, match=r"report\.public"):
        verify(folder)


@pytest.mark.slow
def test_E_charts_that_were_drawn_with_other_fonts_are_said_to_be_unchecked(
    reported: Path, tmp_path: Path
) -> None:
    folder = changed(reported, tmp_path, HTML, lambda text: text.replace("</text>", " </text>", 1))

    report = verify(folder)

    assert "drawn with other fonts" in report.gaps[0]


@pytest.mark.slow
def test_E_a_report_of_another_version_is_said_to_be_unchecked(
    reported: Path, tmp_path: Path
) -> None:
    version = json.loads((reported / TWIN).read_text())["gibbous"]
    folder = changed(
        reported, tmp_path, TWIN, lambda text: text.replace(f'"{version}"', '"0.0.1"', 1)
    )

    assert "written by gibbous '0.0.1'" in verify(folder).gaps[0]
