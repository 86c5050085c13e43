"""The catalogue of faults as a page: `python -m tests.faults.catalogue` writes docs/reference/faults.md."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from tests.frame.tree import DOCS

CASES = Path(__file__).with_name("catalogue.toml")
PAGE = DOCS / "reference" / "faults.md"
GROUPS = {
    "A": "Text input", "B": "Parquet, Arrow, databases", "C": "Shape and values", "D": "Schema",
    "E": "Privacy parameters", "F": "Traps of methods", "G": "Randomness", "H": "Ledger",
    "I": "Output and crashes", "J": "Engines", "K": "Releases as input", "L": "A server",
    "M": "Leaks", "N": "Resources and long jobs",
}  # fmt: skip
HEAD = """\
# Faults

```sh
./dev test tests/faults
```

Tests run {run} of {all} cases of bad input, misuse, crashes and leaks. Each test says what must happen: a
refusal with its exit code and sentence, or a right result. The other cases say why no test runs them.
[Mutants](guarantees.md) and [fuzzing](tests.md#fuzzing) break gibbous in other ways.

To add a case, edit `tests/faults/catalogue.toml` and run `python -m tests.faults.catalogue`. A test compares
page and catalogue, and looks for every test named here.
"""


@dataclass(frozen=True, slots=True)
class Case:
    """One case.

    Attributes:
        id: letter of its group, and number.
        case: what goes wrong, in words.
        tests: files below tests/, with the test and perhaps its case; none where `why` says why.
    """

    id: str
    case: str
    tests: tuple[str, ...] = ()
    why: str = ""


def cases() -> list[Case]:
    """All cases, in order."""
    listed = tomllib.loads(CASES.read_text(encoding="utf-8"))["case"]
    return [Case(c["id"], c["case"], tuple(c.get("tests", ())), c.get("why", "")) for c in listed]


def page() -> str:
    """The page."""
    found = cases()
    text = HEAD.format(run=sum(bool(case.tests) for case in found), all=len(found))
    for letter, title in GROUPS.items():
        text += f"\n## {letter}. {title}\n\n| # | case | run by |\n|---|---|---|\n"
        for case in found:
            if case.id[0] == letter:
                run = ", ".join(f"`{test}`" for test in case.tests)
                text += f"| {case.id} | {case.case} | {run or f'not run: {case.why}'} |\n"
    return text


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
