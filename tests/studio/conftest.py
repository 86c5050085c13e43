"""A studio without a port: the application, asked over HTTP in this process."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gibbous.studio.app import Studio, application
from gibbous.studio.door import Door
from gibbous.studio.jobs import Jobs
from gibbous.studio.workplace import Workplace

HOST = "127.0.0.1:8642"
ORIGIN = f"http://{HOST}"
CSV = "age,sex,income\n" + "".join(
    f"{20 + i % 50},{'FM'[i % 2]},{1000 + 13 * (i % 90)}\n" for i in range(400)
)
SCHEMA = """
format = "gibbous-schema/1"
name = "people"
null = ""
ignore = []

[unit]
kind = "row"

[[column]]
name = "age"
kind = "numeric"
lower = 0
upper = 100
bins = 10

[[column]]
name = "sex"
kind = "binary"
levels = ["F", "M"]

[[column]]
name = "income"
kind = "numeric"
lower = 0
upper = 5000
bins = 10
"""


class Visitor:
    """A browser that came in, without the browser.

    Args:
        studio: what it asks.
        entered: whether it has the cookie.
    """

    def __init__(self, studio: Studio, *, entered: bool = True, **limits: Any) -> None:
        from starlette.testclient import TestClient

        self.studio = studio
        self.app = application(studio, **limits)
        self.client = TestClient(
            self.app, base_url=ORIGIN, follow_redirects=False, raise_server_exceptions=False
        )
        if entered:
            answer = self.send("enter", token=studio.door.token)
            assert answer.status_code == 303

    def get(self, path: str, /, **more: Any) -> Any:
        """One page."""
        return self.client.get(f"/{path}", **more)

    def send(self, path: str, /, **fields: Any) -> Any:
        """One form, from a page of the studio."""
        return self.client.post(f"/{path}", data=fields, headers={"origin": ORIGIN})

    @property
    def key(self) -> str:
        """What its forms carry."""
        return self.key_of("ledger")

    def key_of(self, screen: str) -> str:
        """What the forms of a screen carry."""
        found = re.search(r'name="key" value="([^"]+)"', self.get(screen).text)
        assert found
        return found.group(1)

    def do(self, path: str, /, **fields: Any) -> Any:
        """One form with its key."""
        return self.send(path, key=self.key, **fields)

    def settle(self, patience: float = 240) -> None:
        """Wait until no job runs."""
        deadline = time.monotonic() + patience
        while self.studio.jobs.running():
            assert time.monotonic() < deadline
            time.sleep(0.1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a table."""
    place = tmp_path / "work"
    place.mkdir()
    (place / "people.csv").write_text(CSV)
    return place


@pytest.fixture
def studio(folder: Path) -> Iterator[Studio]:
    """A studio of that folder; its jobs are ended."""
    place = Workplace(folder)
    place.prepare()
    made = Studio(place, Jobs(place.scratch / "jobs", folder), Door(HOST))
    yield made
    for job in made.jobs.all():
        made.jobs.cancel(job.id)


@pytest.fixture
def visitor(studio: Studio) -> Visitor:
    """Somebody with the token."""
    return Visitor(studio)


@pytest.fixture
def described(studio: Studio, folder: Path) -> Studio:
    """The same with a declared schema and an open data set."""
    (folder / "schema.toml").write_text(SCHEMA)
    studio.place.save({"data": "people.csv", "schema": "schema.toml"})
    return studio
