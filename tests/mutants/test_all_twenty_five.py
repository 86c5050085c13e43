"""Every mutant of the list is tried by some test, and the two that cannot exist yet are named."""

from __future__ import annotations

import re
from pathlib import Path

NOT_YET = {
    13: "an engine that draws noise in tasks: none counts on other machines yet, and no file of "
    "disintegrate reaches the noise (tests/mutants/test_catalogue.py)",
    19: "accept and reject under a claim: no mechanism here rejects rows by the records",
}


def test_every_mutant_is_tried() -> None:
    names = "\n".join(p.read_text() for p in Path(__file__).parent.glob("test_*_mutants.py"))
    functions = re.findall(r"def test_((?:m\d\d_)+)", names)
    tried = {int(number) for found in functions for number in re.findall(r"m(\d\d)_", found)}

    assert tried == set(range(1, 26)) - NOT_YET.keys()
