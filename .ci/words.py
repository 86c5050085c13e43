"""Words that pages, messages and docstrings do not use, each with a better one: `./dev lint` runs it.

    python .ci/words.py [FILE ...]   # everything by default; prints file:line, exit code 1 if any is found

The list is small on purpose. It holds phrases that readers stumbled over, words that promise too much, and
words that mean nothing. Of pages, code blocks and quoted code are not read; of a .py file, only its texts:
docstrings, messages, help. Studio words (a .toml file) are read whole.
"""

from __future__ import annotations

import ast
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
# Said by programs only: older pages, and proofs, may still use some of these.
SPOKEN = {
    r"\b(which|that|it|they) (is|are) no (?!longer|more|less|fewer|such)": "is not a",
    r"\b(was|were) to be (read|bought|divided|printed|priced|written|split)": "cannot be, or must be",
    r"\bhold (it|them|the data|data) against|\bheld against": "check against",
    r"\bfor ever\b": "forever",
    r"\bin silence\b": "silently",
    r"\bunasked\b": "name the option that was not given",
    r"\bnobody said\b": "you did not say",
    r"\b(made|there) already\b": "already made, already there",
    r"\bshall\b": "must, or will",
    r"\bwithout a word\b": "without a message",
}
CODE = re.compile(r"^ *```.*?^ *```[^\n]*$|`[^`\n]*`|\]\([^)]*\)", re.DOTALL | re.MULTILINE)


def pages() -> list[Path]:
    """Every page that people read; quotes of older pages stand in CHANGELOG, which is not held to it."""
    top = ("README", "CONTRIBUTING", "SECURITY", "ROADMAP", "CODE_OF_CONDUCT")
    return [*(ROOT / f"{name}.md" for name in top), *sorted((ROOT / "docs").rglob("*.md"))]


def sources() -> list[Path]:
    """Every file of the package that holds texts: Python, and the words of the studio."""
    package = ROOT / "src" / "gibbous"
    return [*sorted(package.rglob("*.py")), *sorted(package.rglob("words.toml"))]


def found(text: str, *, spoken: bool = False) -> Iterator[tuple[int, str, str]]:
    """(line, what stands there, what is better) of each hit; spoken: by a program."""
    plain = CODE.sub(lambda code: re.sub(r"[^\n]", " ", code.group()), text)
    for pattern, better in (BETTER | SPOKEN if spoken else BETTER).items():
        for hit in re.finditer(pattern.replace(" ", r"\s+"), plain, re.IGNORECASE):
            yield plain.count("\n", 0, hit.start()) + 1, " ".join(hit.group().split()), better


def found_in(path: Path) -> list[tuple[int, str, str]]:
    """The hits of one file: a page, the words of the studio, or the texts of a module."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return sorted(found(text, spoken=path.suffix == ".toml"))
    return sorted(
        (line + at - 1, said, better)
        for line, words in texts(ast.parse(text))
        for at, said, better in found(words, spoken=True)
    )


def texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, text) of each text of three words or more; what an f-string fills in is {}."""
    parts: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts.update(id(part) for part in node.values)
            said = "".join(
                str(v.value) if isinstance(v, ast.Constant) else "{}" for v in node.values
            )
        elif (
            isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts
        ):
            said = node.value
        else:
            continue
        if said.count(" ") >= 2:
            yield node.lineno, said


def main(paths: list[Path]) -> int:
    """Print what was found; 1 where there was anything."""
    wrong = [
        f"{path}:{line}: {said!r}; better: {better}"
        for path in paths
        for line, said, better in found_in(path)
    ]
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main([Path(word) for word in sys.argv[1:]] or [*pages(), *sources()]))
