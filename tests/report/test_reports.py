"""Both reports: what each says, what the public one never touches, what the internal one never hides."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import gibbous as gb
from gibbous.core.errors import (
    EngineFailure,
    InputRejected,
    ModelRejected,
    OutputNotWritten,
    UsageError,
)
from gibbous.evaluation.findings import Findings, read_findings
from gibbous.frontier.study import Study
from gibbous.reporting import (
    evaluate_and_report,
    html_page,
    release_report,
)
from gibbous.reporting import internal_report as internal_summary
from gibbous.reporting import public_report as public_summary
from gibbous.reporting.internal_report import internal_page, internal_report
from gibbous.reporting.labels import short
from gibbous.reporting.page_parts import Figure
from gibbous.reporting.public_report import opened, public_page, public_report
from gibbous.reporting.release_report import verify
from tests.report import hostile_findings


def _shown(release: Path | gb.Release) -> str:
    return html_page.twin(public_page(opened(release)))


@pytest.mark.slow
def test_the_public_report_states_the_guarantee_and_the_ledger_entry(nasty: Path) -> None:
    release = gb.load(nasty)
    data = json.loads(_shown(nasty))

    assert data["headline"].lower().startswith(release.receipt["guarantee"].lower())
    assert data["receipt"] == release.receipt.to_json()
    text = json.dumps(data["sections"])
    for words in (release.receipt["ledger"]["head"], release.receipt["digest"], "SHA256SUMS"):
        assert words in text


@pytest.mark.slow
def test_the_public_report_shows_the_noisy_counts_as_they_were_published(tmp_path: Path) -> None:
    release = hostile_findings.nasty_release(
        tmp_path / "r", gb.NoisyPegs(epsilon=2, delta=1e-6, parents=0)
    )
    data = json.loads(_shown(tmp_path / "r"))
    section = next(s for s in data["sections"] if s["name"] == "data")
    rows = next(b for b in section["blocks"] if b["kind"] == "figure")["numbers"]["rows"]

    mine = [row for row in rows if row[0] == "plain"]

    place_of = release.schema.index("plain")
    assert release.tables is not None
    published = next(
        t for t in (*release.tables.items, *release.tables.extra)
        if t.context.targets == (place_of,) and not t.context.parents
    )  # fmt: skip
    assert [row[2] for row in mine] == published.cells.values.ravel().tolist()
    drawn = pl.concat(release.sets)["plain"]
    assert [row[5] for row in mine] == [
        pytest.approx(float((drawn == level).mean()), abs=0.01) for level in ("no", "yes")
    ]


@pytest.mark.slow
def test_the_public_report_is_made_from_the_package_alone(tmp_path: Path) -> None:
    """The records are gone when it is written, and their planted value is nowhere in it."""
    schema = gb.Schema((gb.Column("n", "numeric", edges=(0, 50, 100), clamp=True),))
    source = tmp_path / "data.parquet"
    pl.DataFrame({"n": [73.125031] * 50}).write_parquet(source)
    gb.synthesize(source, schema, gb.NoisyPegs(epsilon=1, delta=1e-6), out=tmp_path / "release",
                  ledger=gb.Ledger.ephemeral(), seed=1)  # fmt: skip
    source.unlink()

    path = public_report(tmp_path / "release", tmp_path / "report.html")

    for file in (path, html_page.twin_path(path)):
        assert "73.12503" not in file.read_text()
        assert html_page.INTERNAL not in file.read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "words", "absent"),
    [
        (gb.Bootstrap(), "Not differentially private.", "Beliefs of an attacker"),
        (gb.DiversePegs(l=1.5), "Not differentially private.", "Beliefs of an attacker"),
        (gb.Pegs(epsilon=0.02), "Each row has its price;", "Published noisy tables"),
        (gb.NoisyPegs(epsilon=60, delta=1e-6), "excludes almost nothing", "Beliefs of an attacker"),
        (gb.NoisyPegs(epsilon=1, delta=1e-6, relation="replace_one"), "which of two values",
         "a unit that is known to be present"),
    ],
    ids=["bootstrap", "l-diversity", "rows", "huge epsilon", "replace one"],
)  # fmt: skip
def test_each_kind_of_claim_has_its_own_words(
    method: object, words: str, absent: str, tmp_path: Path
) -> None:
    hostile_findings.nasty_release(tmp_path / "release", method, rows=100)

    text = _shown(tmp_path / "release")

    assert words in text
    assert absent not in text


@pytest.mark.parametrize("method", [gb.Bootstrap(), gb.Contingency()], ids=["margins", "records"])
def test_without_a_guarantee_nothing_is_said_to_be_protected(
    method: object, tmp_path: Path
) -> None:
    hostile_findings.nasty_release(tmp_path / "release", method, rows=100)

    text = _shown(tmp_path / "release")

    assert "What was assumed; no guarantee follows:" in text
    for claim in ("The guarantee holds if", "Neighbors", "Protected", "noise was added"):
        assert claim not in text


@pytest.mark.slow
def test_a_threshold_and_a_single_table_are_told(tmp_path: Path) -> None:
    small = gb.Schema(tuple(gb.Column(name, "binary", levels=("n", "y")) for name in "ab"))
    frame = pl.DataFrame({"a": ["n", "y"] * 200, "b": ["n"] * 400})
    words = []
    for method in (gb.Laplace(epsilon=1), gb.Sba(epsilon=1, delta=1e-6)):
        release = gb.synthesize(
            frame, small, method, rows=50, seed=1, out=tmp_path / type(method).__name__,
            ledger=gb.Ledger.ephemeral(),
        )  # fmt: skip
        words.append(dict(public_summary.summary(release))["What was released."])

    assert all("counted once, in one table, and" in text for text in words)
    assert ["above a threshold" in text for text in words] == [False, True]
    shown = [_shown(tmp_path / name) for name in ("Laplace", "Sba")]
    assert ["just above the threshold is too large" in text for text in shown] == [False, True]


@pytest.mark.slow
def test_inferred_facts_are_named_as_a_gap(tmp_path: Path) -> None:
    schema = gb.Schema.infer(hostile_findings.nasty_frame())
    gb.synthesize(hostile_findings.nasty_frame(), schema, gb.NoisyPegs(epsilon=1, delta=1e-6), seed=1,
                  out=tmp_path / "release", ledger=gb.Ledger.ephemeral(),
                  accept_inferred=True)  # fmt: skip

    text = _shown(tmp_path / "release")

    assert "The bound has a gap." in text
    assert "Read off the data, and not covered:" in text


@pytest.mark.slow
def test_a_person_is_the_unit_where_the_schema_says_so(tmp_path: Path) -> None:
    schema = gb.Schema(
        (gb.Column("a", "binary", levels=(0, 1)),), unit=gb.Unit("person", "id", max_rows=3)
    )
    frame = pl.DataFrame({"id": range(60), "a": [0, 1] * 30})
    release = gb.synthesize(frame, schema, gb.NoisyPegs(epsilon=1, delta=1e-6), seed=1,
                            out=tmp_path / "release", ledger=gb.Ledger.ephemeral())  # fmt: skip

    assert "person" in public_summary.unit(release)
    assert "any one person" in _shown(tmp_path / "release")


@pytest.mark.slow
def test_the_report_goes_into_the_release_which_stays_whole(release: Path) -> None:
    before = verify(release)
    digests = {p.name: p.read_bytes() for p in release.glob("synthetic_*")}

    path = release_report.into_release(release)

    assert path == release / "report.public.html"
    after = verify(release)
    assert after.claim == before.claim
    assert after.reservation == before.reservation
    assert {p.name: p.read_bytes() for p in release.glob("synthetic_*")} == digests
    listed = (release / "SHA256SUMS").read_text()
    assert "  report.public.html\n" in listed
    assert "  report.public.json\n" in listed
    assert [p.name for p in release.parent.iterdir()] == ["release"]
    assert release.stat().st_mode & 0o777 == 0o700
    with pytest.raises(OutputNotWritten, match="exists"):
        release_report.into_release(release)
    first = path.read_bytes()
    assert release_report.into_release(release, overwrite=True).read_bytes() == first


@pytest.mark.slow
def test_a_changed_report_is_found_by_verify(release: Path) -> None:
    path = release_report.into_release(release)
    path.write_text(path.read_text().replace("epsilon", "nothing"))

    with pytest.raises(ModelRejected, match="changed"):
        verify(release)


def test_a_damaged_release_gets_no_report(release: Path) -> None:
    (release / "METHODS.md").write_text("changed")

    with pytest.raises(ModelRejected):
        release_report.into_release(release)

    assert not list(release.glob("report*"))
    assert [p.name for p in release.parent.iterdir()] == ["release"]


@pytest.mark.slow
def test_a_failure_while_writing_leaves_the_old_release(
    release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html_page, "twin", lambda _page: (_ for _ in ()).throw(MemoryError()))

    with pytest.raises(MemoryError):
        release_report.into_release(release)

    verify(release)
    assert [p.name for p in release.parent.iterdir()] == ["release"]


def test_the_internal_report_says_that_it_is_confidential(tmp_path: Path) -> None:
    path = internal_report(hostile_findings.few(), tmp_path / "report.internal.html")

    for file in (path, html_page.twin_path(path)):
        assert html_page.INTERNAL in file.read_text()[: 1 << 16]
    text = path.read_text()
    assert text.count("CONFIDENTIAL") > 3
    assert 'class="watermark"' in text
    assert "a release of its own" in text


def test_verify_refuses_an_internal_report_under_a_public_name(
    release: Path, tmp_path: Path
) -> None:
    from gibbous.write import manifest

    path = internal_report(hostile_findings.few(), tmp_path / "report.internal.html")
    shutil.copyfile(path, release / "report.public.html")
    (release / "manifest.json").unlink()
    (release / "SHA256SUMS").unlink()
    manifest.seal(release)

    with pytest.raises(ModelRejected, match="internal"):
        verify(release)


def test_the_summary_sets_models_and_correlations_beside_rows_without_association() -> None:
    """Numbers drawn in wide bins can do worse than columns drawn apart: that must not stay unsaid."""
    null = (("bootstrap", 0.8), ("independent", 0.28))
    items = (
        hostile_findings.finding("ci_overlap", 0.18, subject=("cost",), null=null),
        hostile_findings.finding("correlation", 0.51, null=(("independent", 0.78),)),
    )

    good = dict(internal_summary.summary(Findings(items, {})))["How good."]

    assert (
        "0.18 for cost (a resample of the records: 0.8; rows without any association: 0.28)" in good
    )
    assert (
        "Correlations of numbers are off by 0.51 on average (without any association: 0.78)."
        in good
    )


@pytest.mark.parametrize(("share", "said"), [(0.171, True), (0.0, False)])
def test_the_summary_begins_with_cells_that_the_schema_changes(share: float, said: bool) -> None:
    items = (hostile_findings.finding("moved_cells", share, null=()),)

    good = dict(internal_summary.summary(Findings(items, {}))).get("How good.", "")

    assert good.startswith("17.1 % of the cells of a column, on average, are no level") == said
    assert ("no level" in good) == said


def test_the_summary_tells_what_gives_the_rows_away_and_that_a_small_holdout_lies_far() -> None:
    items = (
        hostile_findings.finding("tv2", 0.02),
        hostile_findings.finding("pmse", 0.01, title="Propensity"),
        hostile_findings.finding(
            "pmse_tree", 0.24, title="Propensity", null=(("bootstrap", 0.001),)
        ),
        hostile_findings.finding(
            "tstr", 0.9, title="AUC", subject=("income",), null=(("real", 0.93),)
        ),
    )
    facts = {"rows": {"real": 400, "synthetic": [390, 390], "holdout": 100}}

    good = dict(internal_summary.summary(Findings(items, facts)))["How good."]
    larger = {"rows": {"real": 400, "synthetic": [390], "holdout": 400}}
    plain = dict(internal_summary.summary(Findings(items, larger)))["How good."]

    assert "How well a tree tells synthetic rows from records: 0.24, from 0" in good
    assert "an AUC of 0.9 for income (trained on records: 0.93)" in good
    assert "only 100: fewer rows than 390" in good
    assert "fewer rows" not in plain


def test_findings_come_back_from_both_files(tmp_path: Path) -> None:
    found = hostile_findings.few()
    path = internal_report(found, tmp_path / "a.html")
    plain = tmp_path / "findings.json"
    plain.write_text(json.dumps(found.to_json()))

    for source in (html_page.twin_path(path), plain):
        again = read_findings(source)
        assert [str(f) for f in again] == [str(f) for f in found]
        out = tmp_path / f"again-{source.stem}.html"
        internal_report(again, out)
        assert out.read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"findings": [{"name": 1}]}', '{"findings": 7}', "[" * 9000]
)
def test_what_is_no_file_of_findings_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "findings.json"
    file.write_text(text)

    with pytest.raises(InputRejected, match="not a file of findings"):
        read_findings(file)
    with pytest.raises(InputRejected, match="cannot be read"):
        read_findings(tmp_path / "absent.json")


def small_study() -> Study:
    rows = [
        {"label": label, "mechanism": label, "epsilon": eps, "delta": None, "l": None, "repeat": i,
         "kind": "pure", "unit": "artifact", "epsilon_claimed": eps, "epsilon_proven": eps,
         "delta_proven": 0.0, "metric": "tv2", "subject": "", "value": k / eps + 0.01 * i,
         "low": None, "high": None, "better": "lower", "rows": 100, "seconds": 1.0,
         "cpu_seconds": 1.0, "memory_planned": 1, "failed": ""}
        for label, k in (("one", 0.1), ("two", 0.2)) for eps in (0.5, 2.0) for i in range(3)
    ]  # fmt: skip
    return Study(tuple(rows), {"public_data": True})


def test_the_map_of_a_study_shows_its_means_and_their_intervals() -> None:
    made_page = internal_page(Findings(()), study=small_study())

    figure = next(b for s in made_page.sections if s.name == "map" for b in s.blocks)
    assert isinstance(figure, Figure)
    points = [dict(zip(figure.numbers.head, row, strict=True)) for row in figure.numbers.rows]
    assert {(p["label"], p["epsilon_proven"]) for p in points} == {
        ("one", 0.5), ("one", 2.0), ("two", 0.5), ("two", 2.0)
    }  # fmt: skip
    assert points[0]["tv2"] == pytest.approx(0.1 / 0.5 + 0.01)
    assert points[0]["tv2_low"] < points[0]["tv2"] < points[0]["tv2_high"]  # type: ignore[operator]


def test_the_face_takes_a_study_and_its_axes(nasty: Path, tmp_path: Path) -> None:
    study = Study.load(small_study().write(tmp_path / "study"))

    path = evaluate_and_report.report(
        nasty, "internal", tmp_path / "r.html", findings=Findings(()), study=study,
        axes=("epsilon_claimed", "tv2"),
    )  # fmt: skip

    twin = json.loads(html_page.twin_path(path).read_text())
    shown = next(s for s in twin["sections"] if s["name"] == "map")
    assert "epsilon_claimed" in json.dumps(shown)


@pytest.mark.slow
def test_evaluate_gives_findings_that_write_their_report(nasty: Path, tmp_path: Path) -> None:
    found = evaluate_and_report.evaluate(
        hostile_findings.nasty_frame(), nasty, hostile_findings.nasty_schema(), only=("tv1", "tv2")
    )

    path = found.report(tmp_path / "report.internal.html")

    text = path.read_text()
    assert gb.load(nasty).receipt["guarantee"] in text
    twin = json.loads(html_page.twin_path(path).read_text())
    assert [f["name"] for f in twin["findings"]] == ["tv1", "tv2"]
    assert twin["findings"][1]["value"] == found["tv2"].value


@pytest.mark.slow
def test_the_internal_report_begins_with_scores_and_what_is_furthest(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    names = [f"c{i:02}" for i in range(12)]
    schema = gb.Schema(
        tuple(gb.Column(n, "binary", levels=("a", "b")) for n in names), gb.Unit("row")
    )
    real = pl.DataFrame({name: rng.choice(["a", "b"], 400) for name in names})
    synthetic = real.with_columns(
        c07=pl.lit("a"), c03=pl.Series(rng.choice(["a", "b"], 400, p=[0.8, 0.2]))
    )

    found = evaluate_and_report.evaluate(
        real, synthetic, schema, only=("tv1", "tv2", "marginal_distance")
    )
    page = internal_page(found)
    columns, pairs = next(s.blocks for s in page.sections if s.name == "worst")

    assert [s.name for s in page.sections[:3]] == ["summary", "worst", "glance"]
    assert [row[0] for row in columns.rows[:2]] == ["c07", "c03"]
    assert len(columns.rows) == len(pairs.rows) == 10
    assert {"c07", "c03"} >= set(pairs.rows[0][:2])
    assert [row[2] for row in pairs.rows] == sorted((row[2] for row in pairs.rows), reverse=True)
    assert dict(page.facts)["Distance of pairs"].startswith(
        short(found["tv2"].value) + " (bootstrap "
    )
    assert {s.name: s.folded for s in page.sections}["utility"].startswith(
        "Open 3 figures, 2 tables"
    )


def test_the_internal_report_says_what_columns_and_levels_mean(tmp_path: Path) -> None:
    schema = gb.Schema(
        (
            gb.Column("sx", "binary", levels=(1, 2), label="Sex",
                      level_labels=((1, "male"), (2, "fem<b>ale"))),
            gb.Column("grp", "nominal", levels=("a", "b")),
        ),
        unit=gb.Unit("row"),
    )  # fmt: skip
    frame = pl.DataFrame({"sx": [1, 2, 1, 2] * 9, "grp": ["a", "b", "b", "b"] * 9})

    found = evaluate_and_report.evaluate(frame, frame, schema, only=("tv1",))
    text = found.report(tmp_path / "r.html").read_text()
    odd = Findings(found.items, dict(found.facts) | {"labels": [1, ["x"]]})

    assert found.facts["labels"] == [
        ["sx", "", "Sex"],
        ["sx", "1", "male"],
        ["sx", "2", "fem<b>ale"],
    ]
    assert "What columns and levels mean" in text
    assert "fem&lt;b&gt;ale" in text
    assert internal_report(odd, tmp_path / "odd.html").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"audience": "press"}, "one of 'public', 'internal'"),
        ({"audience": "public", "findings": Findings(())}, "from the release alone"),
        ({"audience": "internal", "out": "x.html"}, "without findings"),
        ({"audience": "internal", "findings": Findings(())}, "without findings"),
    ],
)
def test_a_report_that_cannot_be_is_refused(
    options: dict[str, object], words: str, nasty: Path
) -> None:
    with pytest.raises(UsageError, match=words):
        evaluate_and_report.report(nasty, **options)  # type: ignore[arg-type]


def test_an_internal_report_is_never_put_into_a_release(release: Path) -> None:
    with pytest.raises(UsageError, match="inside the release"):
        evaluate_and_report.report(release, "internal", release / "r.html", findings=Findings(()))
    with pytest.raises(UsageError, match="inside the release"):
        internal_report(Findings(()), release / "r.html", release=gb.load(release))


@pytest.mark.slow
def test_a_release_is_found_as_the_folder_one_stands_in(
    release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(release)

    assert release_report.into_release(".") == Path("report.public.html")

    verify(release)


def test_the_words_keep_the_case_of_names(tmp_path: Path) -> None:
    schema = gb.Schema.infer(pl.DataFrame({"AGE": [1, 2] * 50}))
    release = gb.synthesize(
        pl.DataFrame({"AGE": [1, 2] * 50}), schema, gb.NoisyPegs(epsilon=1, delta=1e-6), seed=1,
        ledger=gb.Ledger.ephemeral(), accept_inferred=True,
    )  # fmt: skip

    words = dict(public_summary.summary(release))

    assert "AGE" in words["What it promises."]


@pytest.mark.slow
def test_a_release_in_memory_needs_a_place_for_its_report(tmp_path: Path) -> None:
    release = gb.synthesize(
        hostile_findings.nasty_frame(), hostile_findings.nasty_schema(), gb.NoisyPegs(epsilon=1, delta=1e-6),
        ledger=gb.Ledger.ephemeral(), seed=1,
    )  # fmt: skip

    with pytest.raises(UsageError, match="in memory"):
        evaluate_and_report.report(release)
    assert evaluate_and_report.report(release, "public", tmp_path / "report.html").exists()


def test_a_missing_library_is_named_with_its_extra(
    nasty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    for name in [m for m in sys.modules if m.partition(".")[0] == "altair"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [_Missing(), *sys.meta_path])

    with pytest.raises(EngineFailure, match=r"gibbous\[report\]"):
        public_report(nasty, tmp_path / "report.html")
    assert not list(tmp_path.glob("report*"))


class _Missing:
    """An importer that has no altair."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] == "altair":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
