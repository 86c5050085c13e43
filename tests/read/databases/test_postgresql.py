"""A PostgreSQL server of its own: the same rows, the same counts; what a lost connection says and costs.

Skipped where there is no server program or no driver. The server listens on a socket in a private
folder and on no port.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import gibbous as gb
from gibbous.core.discovery import Discovery
from gibbous.privacy.ledger import Ledger
from tests.discovery.conftest import bought_from, visits
from tests.discovery.test_sources import facts
from tests.needs import need, program
from tests.read.databases.test_sources import FRAME, SCHEMA, assert_counted
from tests.read.refusal import MARKER, refused

pytestmark = pytest.mark.slow

# The server ends the process that sends the rows when half of them are sent.
LOST = f"""
CREATE VIEW lost AS SELECT
  CASE WHEN i = 200000 AND pg_terminate_backend(pg_backend_pid()) THEN '{MARKER}'
       ELSE 'north' END AS place, 1 AS n, 0.5::float8 AS share, 1 AS big
FROM generate_series(1, 400000) AS i
"""


PLAIN = ("--encoding", "UTF8", "--locale", "C", "--no-sync")
KEEPER = "keeper"
"""A user that has to give a password, where one is made."""
SMALL = ("-c", "listen_addresses=", "-c", "fsync=off", "-c", "shared_buffers=8MB")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """URL of a running server's database, to which a table is added by "::table"."""
    need("PostgreSQL")
    programs = {name: str(program(name)) for name in ("initdb", "postgres")}
    # pytest's own folders are closed to other users, and the server does not run as root.
    root = os.geteuid() == 0
    folder = Path(tempfile.mkdtemp(prefix="gb-pg-", dir="/tmp" if root else None))
    user: dict[str, Any] = {}
    if root:
        nobody = pwd.getpwnam("nobody")
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    quiet = {"cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **user}
    running: subprocess.Popen[bytes] | None = None
    try:
        subprocess.run(
            [programs["initdb"], "-D", folder / "data", "-A", "trust", "-U", "tester", *PLAIN],
            check=True,
            **quiet,
        )
        access = folder / "data" / "pg_hba.conf"
        access.write_text(f"local all {KEEPER} scram-sha-256\n{access.read_text()}")
        running = subprocess.Popen(
            [programs["postgres"], "-D", folder / "data", "-k", folder, *SMALL], **quiet
        )
        url = f"postgresql://tester@/postgres?host={quote(str(folder))}"
        _fill(url, running)
        yield url
    finally:
        if running is not None:
            running.send_signal(signal.SIGQUIT)  # at once, with all its processes
            running.wait(60)
        shutil.rmtree(folder)


def test_a_table_of_a_server_counts_and_is_named_as_its_rows_are_anywhere(
    server: str, tmp_path: Path
) -> None:
    assert_counted(f"{server}::stays", tmp_path)


def test_a_draft_of_a_table_is_that_of_a_file_of_its_rows(server: str, tmp_path: Path) -> None:
    from gibbous.read.infer import propose

    FRAME.write_parquet(tmp_path / "stays.parquet")

    assert propose(f"{server}::stays") == propose(tmp_path / "stays.parquet")


def test_a_schema_is_bought_from_a_server_as_from_the_same_rows_anywhere(server: str) -> None:
    """At a budget at which noise changes no fact but cut points."""
    from adbc_driver_postgresql import dbapi

    rows = visits(1500)
    with dbapi.connect(server) as held, held.cursor() as cursor:
        cursor.adbc_ingest("visits", rows.to_arrow(), mode="create")
        held.commit()
    known = Discovery(tuple(rows.columns), gb.Unit("person", "patient", 2))

    bought = bought_from(f"{server}::visits", known, rho=1e6)

    assert facts(bought) == facts(bought_from(rows, known, rho=1e6))


def test_a_connection_that_is_lost_while_rows_come_costs_nothing_and_shows_none(
    server: str,
) -> None:
    ledger = Ledger.ephemeral()

    with refused(11, "CONNECTION") as caught:
        gb.synthesize(f"{server}::lost", SCHEMA, gb.Laplace(), rows=5, ledger=ledger)

    assert ledger.entries() == ()
    assert "no budget was spent" in caught.text
    assert "terminat" not in caught.text  # the server's own text is withheld


def _fill(url: str, running: subprocess.Popen[bytes]) -> None:
    from adbc_driver_postgresql import dbapi

    until = time.monotonic() + 240
    while True:
        try:
            held = dbapi.connect(url)
        except dbapi.Error:
            if running.poll() is not None or time.monotonic() > until:
                raise
            time.sleep(0.05)
        else:
            break
    with held, held.cursor() as cursor:
        cursor.adbc_ingest("stays", FRAME.to_arrow(), mode="create")
        cursor.execute(LOST)
        held.commit()
