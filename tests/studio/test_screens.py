"""What screens show and what their forms do, over HTTP; jobs are the commands that are shown."""

from __future__ import annotations

import ast
import html
import json
import re
import shlex
import stat
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

from gibbous.core.errors import UsageError
from gibbous.read.schema_file import load_schema
from gibbous.studio import commands
from gibbous.studio.app import Studio
from gibbous.studio.door import Door
from gibbous.studio.jobs import Jobs
from gibbous.studio.workplace import Workplace
from gibbous.write.signature import SigningKey
from tests.studio.conftest import HOST, SCHEMA, Visitor

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:starlette")

HOSTILE = (
    "<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "'; DROP TABLE x; --", "{{ 1234567*7 }}",
    "{% raw %}", "</textarea><b>", "javascript:alert(1)", "=cmd|' /C calc'!A0", "\u202eevil", "a&b<c>",
    "--help", "line\u2028end",
)  # fmt: skip


def declared(visitor: Visitor, epsilon: str = "1", rows: str = "300") -> None:
    answer = visitor.do("budget/spend", epsilon=epsilon, delta="1e-9", own="", size=rows, sets="1")
    assert answer.status_code == 303


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Visitor:
    """A studio whose run ended, with its release verified."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "people.csv").write_text(
        "age,sex,income\n"
        + "".join(f"{20 + i % 50},{'FM'[i % 2]},{1000 + i}\n" for i in range(300))
    )
    (folder / "schema.toml").write_text(SCHEMA)
    place = Workplace(folder)
    place.prepare()
    visitor = Visitor(Studio(place, Jobs(place.scratch / "jobs", folder), Door(HOST)))
    visitor.do("data/choose", file="people.csv", once="open")
    visitor.do("run/texts", title="people", contact="the office", out="release", format="csv")
    declared(visitor)
    assert visitor.do("run/start", confirm="1", once="run").status_code == 303
    visitor.settle()
    visitor.do("release/verify", once="verify")
    visitor.settle()
    return visitor


@pytest.mark.slow
def test_the_whole_way_ends_in_a_verified_zip(finished: Visitor) -> None:
    page = finished.get("release").text

    assert finished.do("release/zip").status_code == 303
    got = finished.get("document/zip")
    path = finished.studio.place.folder / "release.zip"
    assert got.content == path.read_bytes()
    with zipfile.ZipFile(path) as made:
        names = {name.removeprefix("release/") for name in made.namelist()}
    assert {"manifest.json", "SHA256SUMS", "METHODS.md", "synthetic_1.csv"} <= names
    assert "every row of 1 sets lies in the schema" in page
    assert "the office" in finished.get("document/methods").text


@pytest.mark.slow
def test_the_bar_says_what_was_spent(finished: Visitor) -> None:
    bar = (
        'data-bar="spent" title="epsilon = 1 in total (add or remove one, proven)">epsilon = 1</dd>'
    )
    assert bar in finished.get("data").text


@pytest.mark.slow
def test_what_runs_is_what_is_shown(finished: Visitor) -> None:
    for job in finished.studio.jobs.all():
        shown = shlex.split(job.shell)

        assert shown[0] == "gibbous"
        assert tuple(shown[1:]) == job.words
        ast.parse(job.python)


@pytest.mark.slow
def test_l10_a_double_click_charges_once(finished: Visitor) -> None:
    before = len(finished.studio.jobs.all())

    for _ in range(2):
        assert finished.do("run/start", confirm="1", once="run").status_code == 303

    assert len(finished.studio.jobs.all()) == before
    assert len(account(finished).releases) == 1


@pytest.mark.slow
def test_the_sheet_says_how_long_the_last_run_took(finished: Visitor) -> None:
    from gibbous.studio.pages import duration

    job = finished.studio.jobs.newest("synthesize")
    assert job is not None
    seconds = finished.studio.jobs.took(job)
    assert seconds is not None
    assert 0.5 < seconds < 240
    page = finished.get("run").text

    assert f"{duration(seconds)}, as the last run of this method here did (300 rows" in page
    finished.do("method/choose", method="noisy_pegs")
    other = finished.get("run").text
    finished.do("method/choose", method="adaptive_gibbs")
    assert "not known before a first run of this method" in other


def test_the_sheet_says_what_memory_the_plan_needs_and_that_no_run_was_timed(
    described: Studio,
) -> None:
    visitor = Visitor(described)
    declared(visitor)
    from gibbous.studio.screens.budget import plan_of

    made, _ = plan_of(described, {})
    assert made is not None
    page = visitor.get("run").text

    assert f"{max(1, round(made.memory_bytes / 1e6)):,} MB beyond the records" in page
    assert f"{made.cells:,} cells to count" in page
    assert "not known before a first run of this method" in page


def account(visitor: Visitor) -> Any:
    """What the ledger holds of the data set that is open; other tests may have spent on others."""
    from gibbous.studio.accounts import known

    found = known(visitor.studio)
    assert found is not None
    return found


@pytest.mark.slow
def test_the_ledger_names_the_method_inside_paid_bins(studio: Studio, folder: Path) -> None:
    (folder / "schema.toml").write_text(SCHEMA.replace("bins = 10", "bins = 1"))
    studio.place.save({"data": "people.csv", "schema": "schema.toml"})
    visitor = Visitor(studio)
    declared(visitor)
    visitor.do("run/start", confirm="1", once="run")
    visitor.settle()

    page = html.unescape(visitor.get("ledger").text)
    (folder / "release" / "ledger.json").write_text('{"method": 1, "ledger": []}')
    other = html.unescape(visitor.get("ledger").text)

    spent = account(visitor).releases[-1].id
    row = page.partition(spent)[2].partition("</tr>")[0]
    assert "adaptive_gibbs, on bins that are bought first (paid_bins)" in row
    assert "<bdi>paid_bins</bdi>" in other.partition(spent)[2].partition("</tr>")[0]


@pytest.mark.slow
def test_a_model_is_fitted_without_the_records(finished: Visitor) -> None:
    finished.do("analyse/fit", formula="income ~ age + sex", family="gaussian", once="fit")
    finished.settle()
    page = finished.get("analyse").text

    assert "sex[T.M]" in page
    assert r"\begin{tabular}" in page
    assert "sex[T.M]," in html.unescape(page)
    assert '<option value="sex=F" selected>F</option>' in page
    assert 'data-insert="income"' in page
    csv = finished.get("document/estimates.csv")
    assert csv.headers["content-disposition"] == 'attachment; filename="estimates.csv"'
    assert csv.text.startswith("name,estimate,se,df,low,high\n")
    assert csv.text in html.unescape(page)
    assert finished.get("document/estimates.tex").text.startswith(r"\begin{tabular}")

    again = {"reference[]": "sex=M", "formula": "income ~ age + sex", "family": "gaussian"}
    finished.do("analyse/fit", **again, once="again")
    finished.settle()
    page = finished.get("analyse").text

    assert "sex[T.F]" in page
    assert '<option value="sex=M" selected>M</option>' in page
    assert "--reference sex=M" in page
    assert "reference={&#39;sex&#39;: &#39;M&#39;}" in page


@pytest.mark.slow
def test_a_board_sees_the_release_alone(finished: Visitor, tmp_path: Path) -> None:
    folder = finished.studio.place.folder
    place = Workplace(folder, board="release", elsewhere=tmp_path)
    place.prepare()
    before = {p: p.read_bytes() for p in (folder / "release").rglob("*") if p.is_file()}
    board = Visitor(Studio(place, Jobs(tmp_path / "jobs", folder), Door(HOST), board=True))

    page = board.get("board").text
    assert "Rows are shown once the release is verified." in page
    board.send("board/verify", key=board.key_of("analyse"), once="v")
    board.settle()
    page = board.get("board").text

    assert "people.csv" not in page
    assert "synthetic" in page
    for path in ("data", "run", "assess", "ledger", "document/internal"):
        assert board.get(path).status_code == 404
    assert {p: p.read_bytes() for p in (folder / "release").rglob("*") if p.is_file()} == before


@pytest.mark.slow
def test_l8_hostile_names_and_levels_are_text(studio: Studio, folder: Path) -> None:
    from gibbous.core.schema import Column, Schema
    from gibbous.read.schema_write import schema_toml

    names = [name for name in HOSTILE if name.isprintable()]
    columns = tuple(Column(name, "nominal", levels=(*names, "plain")) for name in names)
    (folder / "schema.toml").write_text(schema_toml(Schema(columns, name=HOSTILE[0])))
    hostile = folder / "<img src=x onerror=alert(1)>.csv"
    hostile.write_text("a\n1\n")
    studio.place.save({"data": hostile.name, "schema": "schema.toml"})
    visitor = Visitor(studio)

    for screen in ("data", "describe", "budget", "method", "run", "compare", "ledger"):
        page = visitor.get(screen).text
        assert page.count("<script") == 1, screen
        assert "<img" not in page
        assert "8641969" not in page
    assert html.escape(HOSTILE[0]) in visitor.get("describe").text


@pytest.mark.slow
def test_the_drafted_levels_are_hidden_until_they_are_asked_for_and_the_asking_is_kept(
    described: Studio, folder: Path
) -> None:
    draft = SCHEMA.replace('levels = ["F", "M"]', 'levels = ["F", "M"]\nsource = "inferred"')
    (folder / "schema.toml").write_text(draft)
    visitor = Visitor(described)
    before = visitor.get("describe").text

    visitor.do("describe/look", column="sex")
    after = visitor.get("describe?column=sex").text
    visitor.do(
        "describe/declare", column="sex", kind="binary", levels="F\nM", reason="", missing=""
    )

    assert ">F\nM</textarea>" not in before
    assert ">F\nM</textarea>" in after
    assert '<td class="n">200</td>' in after
    log = [
        json.loads(line) for line in (folder / ".studio" / "looked.log").read_text().splitlines()
    ]
    assert [(one["column"], one["data"]) for one in log] == [("sex", "people.csv")]
    assert "sex: levels" in load_schema(folder / "schema.toml").inferred()


def test_a_fact_that_is_known_without_looking_is_declared_with_its_reason(
    described: Studio, folder: Path
) -> None:
    draft = SCHEMA.replace('levels = ["F", "M"]', 'levels = ["F", "M"]\nsource = "inferred"')
    (folder / "schema.toml").write_text(draft)
    visitor = Visitor(described)
    fields = {"column": "sex", "kind": "binary", "levels": "F\nM", "missing": "no"}

    refused = visitor.do("describe/declare", reason="", **fields)
    done = visitor.do("describe/declare", reason="codebook, page 3", **fields)

    assert "GB2-REASON" in refused.text
    assert done.status_code == 303
    schema = load_schema(folder / "schema.toml")
    assert schema.inferred() == ()
    assert "codebook, page 3" in (schema["sex"].note or "")


def test_nothing_is_spent_without_the_typed_amount(described: Studio) -> None:
    visitor = Visitor(described)
    declared(visitor, "0.5")

    for typed in ("", "1", "0.50001", "yes"):
        assert "GB2-CONFIRM" in visitor.do("run/start", confirm=typed, once=typed or "x").text
    assert described.jobs.newest("synthesize") is None


def test_inferred_facts_are_accepted_by_a_box_of_their_own(described: Studio, folder: Path) -> None:
    (folder / "schema.toml").write_text(SCHEMA + 'source = "inferred"\n')
    visitor = Visitor(described)
    declared(visitor)

    assert "GB2-INFERRED" in visitor.do("run/start", confirm="1", once="x").text


def test_a_person_unit_takes_its_column_out_of_the_release(described: Studio, folder: Path) -> None:
    visitor = Visitor(described)

    assert visitor.do("budget/unit", unit="person", person="age", k="3").status_code == 303
    schema = load_schema(folder / "schema.toml")
    assert (schema.unit.words(), schema.names) == (
        "one person (age), at most 3 rows",
        ("sex", "income"),
    )  # type: ignore[union-attr]


@pytest.mark.slow
def test_a_wrong_separator_is_mended_by_one_click(studio: Studio, folder: Path) -> None:
    (folder / "semi.csv").write_text("age;sex\n1;F\n2;M\n")
    visitor = Visitor(studio)

    visitor.do("data/choose", file="semi.csv", once="a")
    visitor.settle()
    page = visitor.get("data").text
    assert re.search(r'<input type="hidden" name="sep" value=";"><button', page)
    visitor.do("data/mend", sep=";", once="b")
    visitor.settle()

    assert load_schema(folder / "schema.toml").names == ("age", "sex")
    assert studio.place.reading() == ("--sep", ";")


def test_a_password_is_in_no_command_and_no_request(studio: Studio, folder: Path) -> None:
    visitor = Visitor(studio)

    visitor.do(
        "data/database", address="postgres://me@localhost/db::t", password="s3cr:et", once="a"
    )
    refused = visitor.do("data/database", address="postgres://me:s3cr@localhost/db::t", once="b")
    kept = folder / ".studio" / "pgpass"

    assert kept.read_text() == "*:*:*:*:s3cr\\:et\n"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert "GB2-PASSWORD" in refused.text
    told = [p for p in folder.rglob("*") if p.is_file() and p != kept and b"s3cr" in p.read_bytes()]
    assert told == []
    visitor.do("data/forget")
    assert not kept.exists()


@pytest.mark.slow
def test_an_upload_that_no_request_names_is_swept(studio: Studio, folder: Path) -> None:
    from tests.studio.test_door import upload

    visitor = Visitor(studio)
    first, second = (upload(visitor, b"a,b\n1,2\n").text for _ in range(2))
    visitor.do("data/choose", upload=second, once="a")
    uploads = folder / ".studio" / "uploads"

    assert [str(p.relative_to(uploads)) for p in uploads.glob("*/*")] == [second]
    assert first != second
    visitor.settle()
    visitor.do("data/forget")
    assert list(uploads.iterdir()) == []


@pytest.mark.slow
def test_m3_the_processes_of_jobs_show_no_secret(described: Studio, folder: Path) -> None:
    visitor = Visitor(described)

    visitor.do("run/key", name="office", passphrase="correct horse", once="k")
    visitor.settle()

    job = described.jobs.newest("keys", "new")
    assert job is not None
    assert job.state == "done"
    with pytest.raises(UsageError, match="encrypted"):
        SigningKey.load(folder / "sign.key")
    for path in folder.rglob("*"):
        assert path.is_dir() or b"correct horse" not in path.read_bytes(), path


@pytest.mark.slow
def test_m3_a_signed_run_goes_on_with_its_passphrase_which_no_file_keeps(
    described: Studio, folder: Path
) -> None:
    visitor = Visitor(described)
    visitor.do("run/key", name="office", passphrase="correct horse", once="k")
    visitor.settle()
    declared(visitor)
    visitor.do("run/texts", sign="sign.key")
    visitor.do("run/start", confirm="1", passphrase="wrong horse", once="r")
    visitor.settle()
    failed = described.jobs.newest("synthesize")
    assert failed is not None
    assert failed.state == "failed"
    assert 'name="passphrase"' in visitor.get("run").text

    visitor.do(f"jobs/{failed.id}/again", passphrase="correct horse")
    visitor.settle()

    done = described.jobs.newest("synthesize")
    assert done is not None
    assert (done.state, done.id != failed.id) == ("done", True)
    assert (folder / "release" / "manifest.sig").exists()
    for path in folder.rglob("*"):
        assert path.is_dir() or b"correct horse" not in path.read_bytes(), path


@pytest.mark.slow
def test_l11_a_job_goes_on_without_its_studio_and_its_state_is_true(
    studio: Studio, folder: Path
) -> None:
    job = studio.jobs.start(commands.draft("people.csv", "schema.toml", ()), "data")
    later = Jobs(folder / ".studio" / "jobs", folder)

    assert later.get(job).state == "running"  # type: ignore[union-attr]
    for _ in range(1200):
        if later.get(job).state != "running":  # type: ignore[union-attr]
            break
        time.sleep(0.1)
    assert later.get(job).state == "done"  # type: ignore[union-attr]
    assert later.answer(later.get(job))["columns"]


def test_l11_a_job_that_was_killed_is_not_called_done(studio: Studio, folder: Path) -> None:
    import os
    import signal

    job = studio.jobs.start(commands.draft("people.csv", "schema.toml", ()), "data")
    pid = json.loads((folder / ".studio" / "jobs" / job / "job.json").read_text())["pid"]
    os.kill(pid, signal.SIGKILL)
    while studio.jobs.running():
        time.sleep(0.05)
    (folder / ".studio" / "jobs" / job / "code").unlink(missing_ok=True)

    assert Jobs(folder / ".studio" / "jobs", folder).get(job).state == "failed"  # type: ignore[union-attr]


def test_every_word_of_the_screens_is_in_one_file() -> None:
    from gibbous.studio import pages

    words, used = pages.words(), set()
    for path in (pages.HERE / "templates").glob("*.html"):
        text = path.read_text()
        used |= set(re.findall(r"\bw\.(\w+)\.(\w+)", text))
        shown = re.sub(
            r"\{[{%].*?[%}]\}|<(style|script|pre).*?</\1>|<[^>]+>", " ", text, flags=re.DOTALL
        )
        assert not re.findall(r"\b[A-Z]?[a-z]{3,}\b (?:[a-z]+\b ?){2,}", shown), path.name

    assert {f"{a}.{b}" for a, b in used if b not in words.get(a, {})} == set()


@pytest.mark.slow
def test_no_sentence_of_the_studio_stands_in_its_code() -> None:
    """Beside docstrings, what is read by machines, and code that is shown."""
    from gibbous.studio import pages

    found = []
    for path in sorted(pages.HERE.rglob("*.py")):
        if path.name in ("commands.py", "door.py"):
            continue
        tree = ast.parse(path.read_text())
        docs = [n.value for n in ast.walk(tree) if isinstance(n, ast.Expr)]
        texts = [n for n in ast.walk(tree) if isinstance(n, ast.Constant) and n not in docs]
        said = (n.value for n in texts if isinstance(n.value, str))
        found += [text for text in said if re.search(r"[A-Za-z]{2,}( [a-z]{2,}){2,}", text)]
    script = (pages.HERE / "static" / "studio.js").read_text()
    found += re.findall(r'"[A-Z][a-z]+( [a-z]+)+\."', re.sub(r"//.*", "", script))

    assert found == []


def test_python_of_every_command_is_python() -> None:
    values = {"data": "a.csv", "privacy.epsilon": 1, "output.sign": "k"}
    reading = ("--sep", ";")
    made = [
        commands.draft("a.csv", "s.toml", reading),
        commands.bought("a", "s", {"epsilon": "1", "delta": "1e-9"}, "id:3", ()),
        commands.imported("b", "s", ["x"]), commands.suggested("s", ()), commands.checked("s", "a", reading),
        commands.planned(values, accept=True), commands.synthesized(values, reading, accept=True),
        commands.verified("r", "k.pub"), commands.public_report("r"), commands.mapped("r", "d", "p", "o"),
        commands.evaluated("a", "r", {"keys": ["x"]}, "h", reading),
        commands.inferred("r", "y ~ x", "gaussian"), commands.compared(), commands.account("a", reading),
        commands.capped("a", "1", "1e-9", ()), commands.named("a", "n", ()),
        commands.new_key("k", "n", locked=False),
    ]  # fmt: skip

    for command in made:
        for node in ast.walk(ast.parse(command.python)):
            if isinstance(node, ast.ImportFrom) and node.module:
                module = __import__(node.module, fromlist=["x"])
                assert all(hasattr(module, alias.name) for alias in node.names), command.python
            if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "gb":
                import gibbous

                assert hasattr(gibbous, node.attr), command.python


@pytest.mark.slow
def test_a_table_of_a_database_is_drafted_and_held_against_its_draft(
    studio: Studio, folder: Path
) -> None:
    import sqlite3

    with sqlite3.connect(folder / "people.sqlite") as held:
        held.execute("CREATE TABLE people (age INTEGER, sex TEXT)")
        held.executemany(
            "INSERT INTO people VALUES (?, ?)", [(20 + i % 15, "FM"[i % 2]) for i in range(60)]
        )
    held.close()
    visitor = Visitor(studio)

    visitor.do("data/database", address=f"sqlite://{folder}/people.sqlite::people", once="a")
    visitor.settle()
    schema = load_schema(folder / "schema.toml")
    visitor.do("describe/check", once="c")
    visitor.settle()

    assert (schema.names, schema["sex"].levels) == (("age", "sex"), ("F", "M"))
    assert len(schema.inferred()) > 3
    held_against = studio.jobs.newest("schema", "check")
    assert studio.jobs.answer(held_against)["conforms"] is True
