"""Faults that an audit found on the screens, each with what holds now."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import pytest

from gibbous.read.schema_file import load_schema
from gibbous.studio.app import Studio
from tests.studio.conftest import SCHEMA, Visitor

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:starlette")

SCREENS = ("data", "describe", "budget", "method", "run", "compare", "ledger")


def shown(visitor: Visitor, screen: str) -> str:
    """The text of a screen, without its tags."""
    return html.unescape(re.sub(r"<[^>]+>", " ", visitor.get(screen).text))


def test_copy_buttons_have_a_word_and_no_page_shows_an_object(described: Studio) -> None:
    visitor = Visitor(described)

    for screen in SCREENS:
        page = visitor.get(screen).text
        assert not re.search(r"built-in|object at 0x|namespace\(", page), screen
    assert re.search(r'data-copy="shell">Copy<', visitor.get("budget").text)


@pytest.mark.parametrize("words", ["abc", "nan", "1e400", "1,5", "-1", "0", "1 zwei"])
def test_epsilons_of_a_study_are_numbers(described: Studio, words: str) -> None:
    visitor = Visitor(described)

    answer = visitor.do(
        "compare/start",
        **{"methods[]": "noisy_pegs"},
        epsilons=words,
        repeats="1",
        once=f"k{words}",
    )

    assert answer.status_code == 422
    assert "-NUMBER<" in answer.text
    assert described.jobs.newest("compare") is None


@pytest.mark.slow
def test_a_study_reads_the_file_as_it_was_mended(described: Studio, folder: Path) -> None:
    from tests.studio.conftest import CSV

    (folder / "people.csv").write_text(CSV.replace(",", ";"))
    described.place.save({"studio.sep": ";"})
    visitor = Visitor(described)

    form = {"methods[]": "noisy_pegs", "epsilons": "1, 2", "repeats": "1", "once": "c"}
    assert visitor.do("compare/start", **form).status_code == 303
    visitor.settle()

    assert '[reading]\nsep = ";"' in (folder / "study.toml").read_text()
    answer = described.jobs.answer(described.jobs.newest("compare"))
    assert {p["epsilon"] for p in answer["points"] if p.get("mechanism")} == {1, 2}


@pytest.mark.slow
def test_the_unit_is_changed_after_it_was_saved(described: Studio, folder: Path) -> None:
    visitor = Visitor(described)

    for k in ("3", "4"):
        form = {"unit": "person", "person": "age", "k": k}
        assert visitor.do("budget/unit", **form).status_code == 303
        page = visitor.get("budget").text
        assert '<option value="age" selected>' in page
    assert load_schema(folder / "schema.toml").unit.words() == "one person (age), at most 4 rows"  # type: ignore[union-attr]
    visitor.do("budget/unit", unit="person", person="income", k="2")
    assert load_schema(folder / "schema.toml").ignore == ("age",)
    visitor.do("budget/unit", unit="row")
    schema = load_schema(folder / "schema.toml")
    assert (schema.names, set(schema.ignore)) == (("sex",), {"age", "income"})
    visitor.do("describe/back", column="age")
    back = load_schema(folder / "schema.toml")
    assert (back.names, back.ignore, back["age"].bins) == (("sex", "age"), ("income",), 10)
    visitor.do("describe/check", once="q")
    visitor.settle()
    assert described.jobs.newest("schema", "check").state == "done"  # type: ignore[union-attr]


@pytest.mark.slow
def test_another_file_gets_a_schema_of_its_own_and_the_first_is_taken_back(
    described: Studio, folder: Path
) -> None:
    (folder / "other.csv").write_text("x,y\n" + "1,a\n2,b\n" * 200)
    visitor = Visitor(described)

    visitor.do("data/choose", file="other.csv", sure="yes", once="a")
    visitor.settle()
    assert load_schema(folder / "schema.toml").names == ("x", "y")
    assert (folder / "schema.before-1.toml").read_text() == SCHEMA
    visitor.do("data/demo", sure="yes", once="b")
    visitor.settle()
    assert "mdvis" in load_schema(folder / "schema.toml").names
    assert load_schema(folder / "schema.before-2.toml").names == ("x", "y")
    visitor.do("data/back", kept="schema.before-1.toml")
    assert (folder / "schema.toml").read_text() == SCHEMA
    assert "mdvis" in load_schema(folder / "schema.before-3.toml").names
    assert visitor.do("data/back", kept="../schema.before-1.toml").status_code == 422


def test_the_next_year_of_the_same_columns_keeps_the_schema(
    described: Studio, folder: Path
) -> None:
    (folder / "next.csv").write_bytes(
        (folder / "people.csv").read_bytes()[:3000].rpartition(b"\n")[0]
    )
    visitor = Visitor(described)

    answer = visitor.do("data/choose", file="next.csv", once="a")

    assert answer.headers["location"] == "/describe"
    assert (folder / "schema.toml").read_text() == SCHEMA


@pytest.mark.slow
def test_a_wrong_separator_is_mended_beside_a_schema_that_stays(
    described: Studio, folder: Path
) -> None:
    text = (folder / "people.csv").read_text()
    (folder / "people.csv").write_text(text.replace(",", ";"))
    described.place.save({"data": None})
    visitor = Visitor(described)

    visitor.do("data/choose", file="people.csv", once="a")
    visitor.settle()
    assert re.search(r'<input type="hidden" name="sep" value=";"><button', visitor.get("data").text)
    visitor.do("data/mend", sep=";", once="b")
    visitor.settle()

    assert (folder / "schema.toml").read_text() == SCHEMA
    assert described.place.reading() == ("--sep", ";")


def test_a_request_keeps_numbers_in_tables_and_sections_of_others(
    described: Studio, folder: Path
) -> None:
    request = (
        'data = "people.csv"\nschema = "schema.toml"\n[privacy]\nepsilon = 1\n[mechanism]\n'
        'name = "adaptive_gibbs"\nweights = {age = 2.5, "age*income" = [1.5, 2]}\n[audit]\nruns = 3\n'
        "[custom]\nfoo = 1\n"
    )
    (folder / "release.toml").write_text(request)
    before = described.place.request()

    Visitor(described).do("budget/spend", epsilon="1", delta="0", own="", size="10", sets="1")

    after = described.place.request()
    assert {key: after[key] for key in before if key != "privacy.epsilon"} == {
        key: value for key, value in before.items() if key != "privacy.epsilon"
    }
    assert after["custom.foo"] == 1
    assert float(after["privacy.delta"]) == 0
    assert "Decimal" not in (folder / "release.toml").read_text()


DRAFT = SCHEMA.replace('levels = ["F", "M"]', 'levels = ["F", "M"]\nsource = "inferred"')


@pytest.mark.slow
def test_what_was_looked_at_is_known_under_every_name_of_the_records(
    described: Studio, folder: Path
) -> None:
    (folder / "schema.toml").write_text(DRAFT)
    visitor = Visitor(described)
    visitor.do("describe/look", column="sex")
    lines = (folder / "people.csv").read_text().splitlines()
    (folder / "again.csv").write_text("\n".join([lines[0], *reversed(lines[1:])]) + "\n")
    (folder / "else.csv").write_text("\n".join(lines[:200]) + "\n")
    form = {"column": "sex", "kind": "binary", "levels": "F\nM", "reason": "codebook"}

    visitor.do("data/choose", file="again.csv", sure="yes", once="a")
    visitor.do("describe/declare", **form)
    same = load_schema(folder / "schema.toml").inferred()
    visitor.do("data/choose", file="else.csv", sure="yes", once="b")
    visitor.do("describe/declare", **form)
    other = load_schema(folder / "schema.toml").inferred()

    assert "sex: levels" in same
    assert "sex: levels" not in other


@pytest.mark.slow
def test_a_codebook_that_is_imported_after_a_look_declares_nothing_of_that_column(
    described: Studio, folder: Path
) -> None:
    (folder / "schema.toml").write_text(DRAFT)
    (folder / "book.csv").write_text("variable,value,meaning\nsex,F,female\nsex,M,male\n")
    visitor = Visitor(described)

    visitor.do("describe/look", column="sex")
    visitor.do("describe/book", path="book.csv", once="b")
    visitor.settle()

    job = described.jobs.newest("schema", "declare")
    assert job is not None
    assert (job.state, "--inferred sex" in job.shell) == ("done", True)
    schema = load_schema(folder / "schema.toml")
    assert {"sex: kind", "sex: levels"} <= set(schema.inferred())
    assert dict(schema["sex"].level_labels) == {"F": "female", "M": "male"}


@pytest.mark.slow
def test_an_upload_is_called_as_it_was_sent(studio: Studio, folder: Path) -> None:
    from tests.studio.test_door import upload

    visitor = Visitor(studio)
    sent = upload(visitor, (folder / "people.csv").read_bytes(), "my survey.csv").text
    visitor.do("data/choose", upload=sent, once="a")
    visitor.settle()

    assert load_schema(folder / "schema.toml").name == "my-survey"
    for wrong in ("../uploads/" + sent, sent + "/..", sent.replace("/", "/../")):
        assert visitor.do("data/choose", upload=wrong, once=wrong).status_code == 422


def test_every_fact_of_a_column_is_said_and_only_those_that_change(
    described: Studio, folder: Path
) -> None:
    visitor = Visitor(described)
    sex = {"column": "sex", "kind": "binary", "levels": "F\nM", "missing": "no", "other": ""}
    age = {"column": "age", "kind": "numeric", "lower": "0", "upper": "100", "missing": "yes"}

    assert (
        visitor.do("describe/declare", **sex, labels="female\nmale", reason="book").status_code
        == 303
    )
    assert (
        visitor.do("describe/declare", **age, bins="", cuts="18 65", reason="law").status_code
        == 303
    )
    schema = load_schema(folder / "schema.toml")
    assert schema["sex"].level_labels == (("F", "female"), ("M", "male"))
    assert schema["age"].edges == (0, 18, 65, 100)
    assert schema["age"].note == "bounds, bins, missing: law."
    before = (folder / "schema.toml").read_text()
    page = visitor.get("describe").text
    assert 'value="18 65"' in page
    assert "--cuts 18,65" in html.unescape(page)

    known = age | {"bins": "", "cuts": "18 65", "reason": "", "label": "years lived"}
    assert visitor.do("describe/declare", **known).status_code == 303
    assert load_schema(folder / "schema.toml")["age"].label == "years lived"
    assert (folder / "schema.toml").read_text().replace('label = "years lived"\n', "") == before
    nominal = sex | {"kind": "nominal", "other": "else", "reason": "", "labels": "female\nmale"}
    assert visitor.do("describe/declare", **nominal).status_code == 422
    assert visitor.do("describe/declare", **nominal | {"reason": "book"}).status_code == 303
    assert load_schema(folder / "schema.toml")["sex"].other == "else"


def test_rules_are_written_once_and_removed(described: Studio, folder: Path) -> None:
    visitor = Visitor(described)
    rule = {"if": "", "then": "age < income"}

    assert visitor.do("describe/rule", **rule).status_code == 303
    assert "GB2-RULE" in visitor.do("describe/rule", **rule).text
    assert visitor.do("describe/leave", column="age").status_code == 422
    assert visitor.do("describe/unrule", number="0").status_code == 303
    assert load_schema(folder / "schema.toml").rules == ()
    assert visitor.do("describe/leave", column="age").status_code == 303


def test_a_budget_is_one_row_however_it_is_written(described: Studio) -> None:
    visitor = Visitor(described)
    visitor.do("budget/spend", epsilon="1", delta="1e-9", own="", size="10", sets="1")

    page = visitor.get("budget").text

    assert page.count('name="epsilon" value="1"') == 1
    assert 'value="1.0"' not in page
    assert 'value="1e-9"' in page
    assert "mu of" not in page


def test_the_sheet_names_the_method_that_was_chosen(described: Studio, folder: Path) -> None:
    (folder / "schema.toml").write_text(SCHEMA.replace("bins = 10", "bins = 1"))
    visitor = Visitor(described)
    visitor.do("budget/spend", epsilon="1", delta="1e-9", own="", size="10", sets="1")

    assert "adaptive_gibbs, on bins that are bought first (paid_bins)" in shown(visitor, "run")
    visitor.do("method/choose", method="noisy_pegs")
    assert "noisy_pegs, on bins that are bought first (paid_bins)" in shown(visitor, "run")


def test_what_no_release_takes_is_refused_before_the_run(described: Studio) -> None:
    visitor = Visitor(described)

    assert "GB2-IMPRINT" in visitor.do("run/texts", date="yesterday", out="release").text
    assert "GB2-NICKNAME" in visitor.do("ledger/name", nickname="9bad", once="n").text
    assert described.place.value("output.date") == ""
    assert described.jobs.all() == []


def test_a_release_without_a_bound_is_confirmed_in_words_of_its_own(described: Studio) -> None:
    visitor = Visitor(described)
    visitor.do("budget/spend", epsilon="1", delta="1e-9", own="", size="10", sets="1")
    visitor.do("method/choose", method="bootstrap")

    page = shown(visitor, "run")
    assert "Type no bound to confirm that nothing bounds" in page


def test_errors_of_screens_name_flags_as_commands_do(described: Studio, folder: Path) -> None:
    (folder / "release.toml").write_text("= [")

    assert "gibbous synthesize --config reads" in shown(Visitor(described), "run")


def test_every_card_says_what_its_method_needs_here(described: Studio) -> None:
    visitor = Visitor(described)
    visitor.do("budget/spend", epsilon="1", delta="1e-9", own="", size="10", sets="1")

    page = shown(visitor, "method")

    cards = page.count("Claimed by the paper")
    assert cards > 20
    assert page.count("MB beyond the records") + page.count("Not for this schema") == cards
    assert page.count("Takes about") == page.count("MB beyond the records") > 5


POINTS = [
    {"label": "noisy_pegs", "mechanism": "noisy_pegs", "epsilon": 0.5, "epsilon_proven": 0.5,
     "seconds": 1.5, "rows": 400, "tv1": 0.02, "tv2": 0.05},
    {"label": "resampled records", "mechanism": "", "tv1": 0.01, "tv2": 0.03},
]  # fmt: skip


def test_a_point_of_the_map_is_drawn_by_the_axes_of_choice_and_taken_over(
    described: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gibbous.studio.jobs import Jobs

    monkeypatch.setattr(Jobs, "answer", lambda self, job: {"points": POINTS})
    described.place.save({"mechanism.name": "privbayes", "mechanism.parents": 3})
    study = described.place.folder / "study.toml"
    study.write_text('[[methods]]\nname = "noisy_pegs"\n')
    visitor = Visitor(described)

    page = visitor.get("compare?x=seconds&y=tv1").text
    usual = visitor.get("compare?x=nonsense&y=%3Cscript%3E").text
    taken = visitor.do("compare/take", method="noisy_pegs", label="noisy_pegs", epsilon="0.5")

    assert "noisy_pegs: Seconds of one run 1.5, Distance of single columns 0.02" in page
    label = re.search(r'<text x="([0-9.]+)" y="([0-9.]+)"[^>]*>resampled records<', page)
    mark = re.search(r"translate\(([0-9.]+) ([0-9.]+)\)", page)
    assert label
    assert mark
    assert abs(float(label[1]) - float(mark[1])) > 60 or abs(float(label[2]) - float(mark[2])) > 12
    assert "noisy_pegs: Proven epsilon of the file 0.5, Distance of pairs 0.05" in usual
    assert page.count('name="method" value=') == 1
    assert taken.headers["location"] == "/budget"
    request = described.place.request()
    assert (request["mechanism.name"], float(request["privacy.epsilon"])) == ("noisy_pegs", 0.5)
    assert "mechanism.parents" not in request


def test_risks_are_compared_once_keys_are_chosen(described: Studio, folder: Path) -> None:
    visitor = Visitor(described)
    assert 'value="intruder_mode"' not in visitor.get("compare").text
    described.place.save({"evaluate.keys": ["age"], "evaluate.sensitive": ["sex"]})
    assert 'value="intruder_mode"' in visitor.get("compare").text

    form: dict[str, Any] = {"methods[]": "noisy_pegs", "epsilons": "1", "repeats": "1", "once": "c"}
    visitor.do("compare/start", **form, **{"metrics[]": ["tv2", "intruder_mode"]})

    study = (folder / "study.toml").read_text()
    assert 'metrics = ["tv2", "intruder_mode"]' in study
    assert '[evaluate]\nkeys = ["age"]' in study


def test_a_provisional_answer_is_shown_while_the_final_one_is_made(
    described: Studio, folder: Path
) -> None:
    import json
    import subprocess
    import sys

    from gibbous.studio.jobs import Jobs, _born

    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(99)"]) as fit:
        job = folder / ".studio" / "jobs" / "a1"
        job.mkdir(parents=True)
        one = {"name": "Intercept", "estimate": 1.5, "se": 0.1, "df": 9, "low": 1, "high": 2}
        line = {
            "provisional": {
                "estimates": [one],
                "references": {},
                "why": "",
                "warnings": [],
                "remarks": [],
            }
        }
        words = ["infer", "--family", "gaussian", "--", "release", "income ~ age"]
        facts = {
            "words": words,
            "shell": "",
            "python": "",
            "screen": "analyse",
            "once": "",
            "then": None,
        }
        (job / "err.txt").write_text(
            '{"stage": "noise again", "done": 1}\n' + json.dumps(line) + "\n"
        )
        (job / "out.json").write_text("")
        (job / "job.json").write_text(json.dumps(facts | {"pid": fit.pid, "born": _born(fit.pid)}))
        jobs = Jobs(folder / ".studio" / "jobs", folder)
        assert jobs.provisional(jobs.get("a1"))["estimates"] == [one]
        release = folder / "release"
        release.mkdir()
        (release / "manifest.json").write_text("{}")
        (release / "schema.toml").write_text(SCHEMA)
        visitor = Visitor(described)

        page = visitor.get("analyse").text

        assert "Provisional, from few redraws" in page
        assert "Intercept" in page
        assert visitor.get("jobs/a1").json()["more"] is True
        assert visitor.get("document/estimates.csv").status_code == 404
        fit.kill()


FINDINGS = [
    {"name": "tv1", "title": "One-way", "group": "utility", "value": 0.1, "null": {"bootstrap": 0.05}},
    {"name": "marginal_distance", "title": "Marginal", "group": "utility", "value": 0.02, "detail": [
        {"column": "age", "distance": 0.01, "bootstrap": 0.009},
        {"column": "sex", "distance": 0.3, "bootstrap": 0.002}]},
    {"name": "intruder_mode", "title": "Intruder", "group": "risk", "value": 0.41, "null": {}},
]  # fmt: skip


def test_risks_stand_beside_utility_and_the_worst_columns_first(
    described: Studio, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gibbous.studio.jobs import Jobs

    monkeypatch.setattr(Jobs, "answer", lambda self, job: {"findings": FINDINGS})
    (folder / "release").mkdir()
    (folder / "release" / "manifest.json").write_text("{}")
    (folder / "held.csv").write_text("age,sex,income\n")
    visitor = Visitor(described)

    page = shown(visitor, "assess")

    assert re.search(r"Utility.*One-way.*Risk\s+Intruder\s+0\.41", page, re.DOTALL)
    assert re.search(r"furthest.*sex\s+0\.3000\s+0\.0020\s+age\s+0\.0100", page, re.DOTALL)
    assert '<option value="held.csv">' in visitor.get("assess").text
    monkeypatch.setattr(Jobs, "answer", lambda self, job: {"findings": FINDINGS[:2]})
    assert "None is measured: choose keys" in shown(visitor, "assess")


def test_keys_are_suggested_by_names_and_kinds_and_ticked_by_a_click(
    described: Studio, folder: Path
) -> None:
    release = folder / "release"
    release.mkdir()
    (release / "manifest.json").write_text("{}")
    (folder / "people.csv").unlink()  # no record is read for it
    (folder / "people.csv").touch()
    (folder / "held.csv").touch()
    visitor = Visitor(described)

    before = shown(visitor, "assess")
    ticked = visitor.get("assess?suggest=keys").text

    assert re.search(r"others may know:\s+age\s*,\s+sex\s*\.\s+Tick these", before)
    boxes = re.findall(r'name="keys\[\]" value="(\w+)"( checked)?', ticked)
    assert boxes == [("age", " checked"), ("sex", " checked"), ("income", "")]
    assert "Tick these" not in ticked
    picker = re.search(r'<select id="f-holdout".*?</select>', ticked, re.DOTALL)
    assert picker is not None
    assert re.findall(r'value="([^"]*)"', picker[0]) == ["", "held.csv"]
    assert described.place.value("evaluate.keys", []) == []


def test_what_bought_facts_cost_and_miss_is_said_before_they_are_bought(
    described: Studio, folder: Path
) -> None:
    import gibbous as gb
    from gibbous.schema_discovery import plan_discovery

    (folder / "people.csv").unlink()  # no record is needed, and none is read
    visitor = Visitor(described)

    usual = shown(visitor, "describe")
    answer = visitor.do("describe/price", epsilon="2", delta="1e-9", person="age", rows="3")
    asked = shown(visitor, answer.headers["location"].strip("/").partition("#")[0])
    wrong = shown(visitor, "describe?epsilon=none")

    names = ("age", "sex", "income")
    for page, epsilon, unit in (
        (usual, "0.25", gb.Unit()),
        (asked, "2", gb.Unit("person", "age", 3)),
    ):
        made = plan_discovery(gb.Discovery(names, unit), epsilon=epsilon, delta="1e-9")
        assert made.headline() in page
        for part in made.spends:
            assert part.what in page
            assert part.claim.amount() in page
        (name, rows), *_ = made.errors
        assert re.search(rf"{name}: *{rows:,.0f}\b", page)
    assert "-NUMBER" in wrong or "epsilon is 'none'" in wrong
    assert described.jobs.all() == []


@pytest.mark.slow
def test_facts_of_a_table_of_a_database_are_bought_by_its_names(
    studio: Studio, folder: Path
) -> None:
    import sqlite3

    with sqlite3.connect(folder / "people.sqlite") as held:
        held.execute("CREATE TABLE people (age INTEGER, sex TEXT)")
        held.executemany(
            "INSERT INTO people VALUES (?, ?)", [(20 + i % 15, "FM"[i % 2]) for i in range(6000)]
        )
    held.close()
    visitor = Visitor(studio)
    visitor.do("data/database", address=f"sqlite://{folder}/people.sqlite::people", once="a")
    visitor.settle()

    form = {"epsilon": "4", "delta": "1e-9", "person": "", "rows": "", "agree": "yes", "once": "b"}
    assert visitor.do("describe/buy", **form).status_code == 303
    visitor.settle()

    job = studio.jobs.newest("schema", "discover")
    assert job is not None
    assert (job.state, job.error) == ("done", ("", ""))
    assert "--names .studio/names.txt" in job.shell
    schema = load_schema(folder / "schema.toml")
    assert (set(schema["sex"].levels), schema.inferred()) == ({"F", "M"}, ())


@pytest.mark.slow
def test_a_table_of_a_database_is_assessed_as_the_file_of_its_rows_is(
    described: Studio, folder: Path
) -> None:
    import sqlite3

    import polars as pl

    import gibbous as gb

    frame = pl.read_csv(folder / "people.csv")
    with sqlite3.connect(folder / "people.sqlite") as held:
        held.execute("CREATE TABLE people (age INTEGER, sex TEXT, income INTEGER)")
        held.executemany("INSERT INTO people VALUES (?, ?, ?)", frame.rows())
    held.close()
    method, ledger = gb.Laplace(epsilon=1), gb.Ledger.ephemeral()
    schema = folder / "schema.toml"
    gb.synthesize(frame, schema, method, rows=50, ledger=ledger, out=folder / "release")
    described.place.save({"data": f"sqlite://{folder}/people.sqlite::people"})
    visitor = Visitor(described)

    form: dict[str, Any] = {"keys[]": ["age", "sex"], "sensitive[]": "income", "once": "e"}
    assert visitor.do("assess/evaluate", holdout="people.csv", **form).status_code == 303
    visitor.settle()
    job = described.jobs.newest("evaluate")
    crossed = visitor.do("assess/cross", first="age", second="sex")

    assert job is not None
    assert (job.state, job.error) == ("done", ("", ""))
    found = described.jobs.answer(job)["findings"]
    usual = gb.evaluate(
        frame, folder / "release", schema, keys=["age", "sex"], sensitive="income", holdout=frame
    ).to_json()["findings"]
    assert [one["value"] for one in found] == [one["value"] for one in usual] != []
    assert crossed.status_code == 303
    assert visitor.get("assess?first=age&second=sex").text.count("<svg") == 3


def test_nothing_is_spent_before_a_budget_was_chosen(described: Studio) -> None:
    visitor = Visitor(described)

    page = visitor.get("run").text
    answer = visitor.do("run/start", confirm="1", once="r")

    assert 'action="/run/start"' not in page
    assert '<a href="/budget">' in page
    assert answer.status_code == 422
    assert described.jobs.newest("synthesize") is None
