"""A table of a PostgreSQL server from its draft to its assessment; its password is in one private file.

Skipped where there is no server program or no driver.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import gibbous as gb
from gibbous.studio.app import Studio
from gibbous.studio.two_way import crossed
from tests.needs import need
from tests.read.databases.test_postgresql import KEEPER, server
from tests.studio.conftest import CSV, SCHEMA, Visitor

__all__ = ["server"]  # the fixture

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning:starlette"),
]

SECRET = "pa:ss\\wörd 7"


@pytest.fixture
def tables(server: str) -> str:
    """Address of a database with the tables people and spare, which takes a password."""
    need("PostgreSQL")
    from adbc_driver_postgresql import dbapi

    rows = pl.read_csv(io.StringIO(CSV))
    with dbapi.connect(server) as held, held.cursor() as cursor:
        for name, some in (("people", rows), ("spare", rows.head(150))):
            cursor.adbc_ingest(name, some.to_arrow(), mode="replace")
        cursor.execute(f"DROP ROLE IF EXISTS {KEEPER}")
        cursor.execute(f"CREATE ROLE {KEEPER} LOGIN PASSWORD '{SECRET}'")
        cursor.execute(f"GRANT pg_read_all_data TO {KEEPER}")
        held.commit()
    return server.replace("tester@", f"{KEEPER}@")


def told(folder: Path, secret: bytes) -> list[str]:
    """Files below a folder that hold a secret."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path.name for path in files if secret in path.read_bytes()]


def released(visitor: Visitor, studio: Studio, address: str, password: str) -> Any:
    """Open a table, declare its schema, and run; the newest job."""
    place = studio.place
    visitor.do("data/database", address=address, password=password, once="a")
    visitor.settle()
    if (job := studio.jobs.newest("schema")) and job.state != "done":
        return job
    drafted = place.schema()
    assert drafted is not None
    assert drafted.names == ("age", "sex", "income")
    place.schema_file.write_text(SCHEMA)
    visitor.do("budget/spend", epsilon="1", delta="1e-9", own="", size="300", sets="1")
    visitor.do("run/start", confirm="1", once="r")
    visitor.settle()
    return studio.jobs.newest("synthesize")


def test_a_release_of_a_table_is_assessed_as_one_of_a_file_of_its_rows(
    studio: Studio, folder: Path, tables: str
) -> None:
    visitor, address = Visitor(studio), f"{tables}::people"
    job = released(visitor, studio, address, SECRET)
    assert (job.state, job.error) == ("done", ("", ""))

    visitor.do(
        "assess/evaluate",
        **{"keys[]": ["age"], "sensitive[]": ["sex"], "path": f"{tables}::spare", "once": "e"},
    )
    visitor.settle()
    job = studio.jobs.newest("evaluate")
    answer = studio.jobs.answer(job)
    visitor.do("compare/start", **{"methods[]": "noisy_pegs"}, epsilons="1", repeats="1", once="c")
    visitor.settle()
    study = studio.jobs.answer(studio.jobs.newest("compare"))
    asked = visitor.do("assess/cross", first="age", second="income")
    page = visitor.get(asked.headers["location"][1:].partition("#")[0]).text

    assert job is not None
    assert (job.state, job.error) == ("done", ("", ""))
    (folder / "spare.csv").write_text("".join(CSV.splitlines(keepends=True)[:151]))
    truth = gb.evaluate(
        folder / "people.csv", folder / "release", folder / "schema.toml",
        keys=["age"], sensitive=["sex"], holdout=folder / "spare.csv",
    ).to_json()["findings"]  # fmt: skip
    values = {one["name"]: one["value"] for one in truth}
    assert {one["name"]: one["value"] for one in answer["findings"]} == values
    distance = crossed(folder, "people.csv", "release", ("age", "income"), ())["distance"]
    assert {p["label"] for p in study["points"] if p.get("mechanism")} == {"noisy_pegs"}
    assert f"Total variation distance {distance:.3f}" in page
    quoted = SECRET.replace("\\", "\\\\").replace(":", "\\:")
    assert told(folder, SECRET.encode()) == []
    assert told(folder, quoted.encode()) == ["pgpass"]
    assert not any(SECRET in word for job in studio.jobs.all() for word in job.words)
    assert SECRET not in page


def test_a_wrong_password_is_said_without_it(studio: Studio, folder: Path, tables: str) -> None:
    job = released(Visitor(studio), studio, f"{tables}::people", "another")

    assert job.state == "failed"
    assert job.error[0] == "GB11-CONNECTION"
    assert "PGPASSFILE" in job.error[1]
    assert told(folder, b"another") == ["pgpass"]
