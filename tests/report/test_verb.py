"""`gibbous report`: refusals before any work, and what it prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gibbous.cli import report_verb
from gibbous.cli.flags import ReadingFlags, ScreenFlags
from gibbous.cli.measuring_verbs import ReportFlags
from gibbous.cli.output_flags import SignFlags
from gibbous.core.errors import OutputNotWritten, UsageError
from tests.report import hostile_findings


def _run(
    release: Path,
    audience: str,
    out: Path | None,
    screen: ScreenFlags | None = None,
    **options: object,
) -> None:
    page = report_verb.Page(release, audience, out, overwrite=False, signing=SignFlags())
    report_verb.run(page, ReportFlags(**options), ReadingFlags(), screen or ScreenFlags(json=True))  # type: ignore[arg-type]


@pytest.mark.slow
def test_the_public_report_goes_into_the_release(
    release: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _run(release, "public", None)

    said = json.loads(capsys.readouterr().out)
    assert said["path"] == str(release / "report.public.html")
    assert Path(said["twin"]).exists()


@pytest.mark.slow
def test_the_internal_report_compares_with_the_real_file(
    release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile_findings.nasty_frame().write_parquet(tmp_path / "real.parquet")

    _run(
        release, "internal", tmp_path / "a.html", ScreenFlags(quiet=True),
        real=tmp_path / "real.parquet", keys=["plain"],
    )  # fmt: skip

    assert capsys.readouterr().out.startswith("Confidential")
    assert "tv2" in (tmp_path / "a.json").read_text()


def test_the_internal_report_shows_the_findings_of_a_file(release: Path, tmp_path: Path) -> None:
    findings = tmp_path / "findings.json"
    findings.write_text(json.dumps(hostile_findings.few().to_json()))

    _run(release, "internal", tmp_path / "b.html", findings=findings)

    assert "intruder_mode" in (tmp_path / "b.json").read_text()


@pytest.mark.parametrize(
    ("audience", "options"),
    [
        ("press", {}),
        ("public", {"real": Path("x.csv")}),
        ("internal", {}),
        ("internal", {"real": Path("x.csv"), "findings": Path("f.json")}),
        ("internal", {"findings": Path("f.json"), "keys": ["a"]}),
    ],
)
def test_flags_that_do_not_fit_are_refused(
    audience: str, options: dict[str, object], release: Path, tmp_path: Path
) -> None:
    with pytest.raises(UsageError):
        _run(release, audience, tmp_path / "r.html", **options)


def test_an_output_that_exists_is_refused_before_the_evaluation(
    release: Path, tmp_path: Path
) -> None:
    (tmp_path / "r.html").write_text("mine")

    with pytest.raises(OutputNotWritten):
        _run(release, "internal", tmp_path / "r.html", real=tmp_path / "absent.csv")

    assert (tmp_path / "r.html").read_text() == "mine"
