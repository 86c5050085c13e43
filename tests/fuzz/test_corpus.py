"""Every input that our programs write is taken; every one that was a fault once is refused in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.targets import CORPUS, TARGETS, attempt, inputs, taken

KEPT = sorted(path for path in CORPUS.rglob("*") if path.is_file())


@pytest.mark.parametrize("name", TARGETS)
def test_a_seed_of_the_target_is_taken(name: str) -> None:
    target = TARGETS[name]

    assert taken(target, target.seeds()[0])


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.slow
def test_no_seed_or_kept_input_escapes(name: str) -> None:
    escaped = [error for data in inputs(name) if (error := attempt(TARGETS[name], data))]

    assert not escaped


FAULTS = [path for path in KEPT if not path.name.startswith("reach-")]


@pytest.mark.parametrize("path", FAULTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_kept_input_is_refused(path: Path) -> None:
    assert not taken(TARGETS[path.parent.name], path.read_bytes())


def test_every_kept_input_is_of_a_target_and_all_are_small() -> None:
    assert {path.parent.name for path in KEPT} <= TARGETS.keys()
    assert len(KEPT) > 15
    assert sum(path.stat().st_size for path in KEPT) < 300_000
