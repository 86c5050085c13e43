"""Every mutant of the list is tried by some test; two of them beside the code that they concern."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
ELSEWHERE = {
    13: ("spark/test_mutant.py", "test_m13_the_mutant_that_draws_in_a_task_is_flagged"),
    19: (
        "onthemap/test_enumeration.py",
        "test_rejecting_by_rep_makes_outputs_that_only_one_neighbor_has",
    ),
}


def test_every_mutant_is_tried() -> None:
    names = "\n".join(p.read_text() for p in Path(__file__).parent.glob("test_*_mutants.py"))
    functions = re.findall(r"def test_((?:m\d\d_)+)", names)
    tried = {int(number) for found in functions for number in re.findall(r"m(\d\d)_", found)}

    assert tried == set(range(1, 26)) - ELSEWHERE.keys()


def test_the_mutants_that_are_tried_elsewhere_are() -> None:
    missing = [n for n, (file, name) in ELSEWHERE.items() if name not in (TESTS / file).read_text()]

    assert not missing
