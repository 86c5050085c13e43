"""Words that the pages do not use, each with a better one: `./dev lint` and a test run it.

    python .ci/words.py [FILE ...]      # all pages by default; prints file:line, exit code 1 if it found any

The list is small on purpose. It holds phrases that readers stumbled over, words that promise too much, and
words that mean nothing. Code blocks and quoted code are not read.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BETTER = {
    r"what pays once": "name what the budget buys",
    r"\bpays once for (its|any)\b": "one budget covers",
    r"known to be present apart": "say whose two values, and what the attacker knows",
    r"takes in becomes": "say which value becomes which level",
    r"\bto the (highest|utmost) degree\b": "say how much",
    r"\bsimply\b|\bobviously\b|\bof course\b|\bneedless to say\b": "leave it out",
    r"\bin order to\b": "to",
    r"\butili[sz]e[sd]?\b|\bleverag(e|es|ed|ing)\b": "use",
    r"\bplease note\b|\bit should be noted\b": "say it",
    r"\bwhitelist|\bblacklist": "list of what is allowed, of what is refused",
    r"\bsanity[- ]check": "check",
    r"\band/or\b": "or",
    r"\bseamless(ly)?\b|\brobustly\b|\bblazing|\bcutting[- ]edge\b|\bworld[- ]class\b": "a number",
    r"\banonymi[sz]ed data\b": "synthetic rows, or say what was done to the data",
    r"\bguarantees (your )?privacy\b|\bfully anonymous\b": "state kind, unit, relation, epsilon, delta",
    r"\bgibbous the (first|only|best)\b": "claim nothing that was not compared",
    r"\bcomprise[sd]? of\b": "consists of",
    r"\bneighbour|\bbehaviour|\bcolour\b": "American spelling",
}
CODE = re.compile(r"^ *```.*?^ *```[^\n]*$|`[^`\n]*`|\]\([^)]*\)", re.DOTALL | re.MULTILINE)


def pages() -> list[Path]:
    """Every page that people read; quotes of older pages stand in CHANGELOG, which is not held to it."""
    top = ("README", "CONTRIBUTING", "SECURITY", "ROADMAP", "CODE_OF_CONDUCT")
    return [*(ROOT / f"{name}.md" for name in top), *sorted((ROOT / "docs").rglob("*.md"))]


def found(text: str) -> Iterator[tuple[int, str, str]]:
    """(line, what stands there, what is better) of each hit."""
    plain = CODE.sub(lambda code: re.sub(r"[^\n]", " ", code.group()), text)
    for pattern, better in BETTER.items():
        for hit in re.finditer(pattern.replace(" ", r"\s+"), plain, re.IGNORECASE):
            yield plain.count("\n", 0, hit.start()) + 1, " ".join(hit.group().split()), better


def main(paths: list[Path]) -> int:
    """Print what was found; 1 where there was anything."""
    wrong = [
        f"{path}:{line}: {said!r}; better: {better}"
        for path in paths
        for line, said, better in sorted(found(path.read_text(encoding="utf-8")))
    ]
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main([Path(word) for word in sys.argv[1:]] or pages()))
