"""The proof book: every statement, assumption and proof in one document, in the order a reviewer reads.

python website/proof_book.py > proof-book.md
"""

from __future__ import annotations

import re
from pathlib import Path

from gibbous.mechanisms import registry

ROOT = Path(__file__).resolve().parent.parent
PROOFS = ROOT / "docs" / "proofs"
FOUNDATIONS = ("noise", "gaussian", "accounting", "stable", "truncation", "discovery")
HEAD = """# The proof book

All statements of gibbous with their assumptions and proofs, in one document made for outside review. Print it from the
browser, or read it here. It is generated from [docs/proofs](../proofs/noise.md); nothing in it stands only here.

**How to read it.** Part 1 is what every mechanism rests on: how noise is drawn, what it costs, how costs add up. Part 2 has the
mechanisms with a claim of differential privacy. Part 3 has the methods with another claim or with none, and why. The words
(unit, neighbors, relation) are defined in [neighbors and units](../concepts/neighbors.md).

**What to attack first.** Each chapter begins with its statement. Each ends with the tests that try to break it; the running
code is named at its head. The proofs are ours and have had no outside review. How to tell us of a fault: [security](../../SECURITY.md).

"""
PATH = re.compile(r"`((?:src/gibbous|tests|bench)/[\w/.-]+?\.\w+)(::\w+)?`")
SHORT = re.compile(
    r"`((?:core|disintegrate|encode|evaluation|mechanisms|perturb|privacy|sampling|structure|contract)/[\w/]+\.py)`"
)


def page() -> str:
    """The book, Markdown, with links as from docs/proofs/book.md."""
    parts = chapters()
    names = [name for _, group in parts for name in group]
    text = [HEAD, "**Contents**\n\n"]
    for title, group in parts:
        text.append(f"- {title}\n")
        text += [f"    - [{_title(name)}](#{_anchor(name)})\n" for name in group]
    for number, (title, group) in enumerate(parts, 1):
        text.append(f"\n## Part {number}: {title}\n")
        text += [_chapter(name, names) for name in group]
    return "".join(text)


def chapters() -> list[tuple[str, list[str]]]:
    """(title, proofs) of each part; a proof that no part names is an error."""
    claimed, others = [], []
    for about in registry.methods():
        proofs = _proofs_of(about.name)
        (others if about.kind in ("none", "l_diversity") else claimed).extend(proofs)
    claimed = [p for p in dict.fromkeys(claimed) if p not in FOUNDATIONS]
    others = [p for p in dict.fromkeys(others) if p not in (*FOUNDATIONS, *claimed)]
    rest = sorted({p.stem for p in PROOFS.glob("*.md")} - {*FOUNDATIONS, *claimed, *others})
    return [
        ("what everything rests on", [*FOUNDATIONS, *rest]),
        ("mechanisms with a claim of differential privacy", claimed),
        ("methods with another claim, or with none", others),
    ]


def _proofs_of(mechanism: str) -> list[str]:
    text = (ROOT / "docs" / "mechanisms" / f"{mechanism}.md").read_text(encoding="utf-8")
    return re.findall(r"\(\.\./proofs/([\w-]+)\.md", text)


def _title(name: str) -> str:
    return (PROOFS / f"{name}.md").read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")


def _anchor(name: str) -> str:
    return f"proof-{name.replace('_', '-')}"


def _chapter(name: str, names: list[str]) -> str:
    text = (PROOFS / f"{name}.md").read_text(encoding="utf-8")
    head, _, body = text.partition("\n")
    body = re.sub(
        r"^(#+) (.+)$", rf"##\1 \2 {{ #{_anchor(name)}-\2-end }}", body, flags=re.MULTILINE
    )
    body = re.sub(r"\{ #([^}]*)-end \}", lambda m: "{ #" + _slug(m[1]) + " }", body)

    def lead(match: re.Match[str]) -> str:
        proof, anchor = match[1], match[2]
        if proof not in names:
            return match[0]
        return f"(#{_anchor(proof)}{'-' + _slug(anchor) if anchor else ''})"

    body = re.sub(r"\(([\w-]+)\.md(?:#([\w-]+))?\)", lead, body)
    body = re.sub(r"\(#(?!proof-)([\w-]+)\)", rf"(#{_anchor(name)}-\1)", body)
    code = ROOT / "src" / "gibbous" / "mechanisms" / f"{name}.py"
    runs = (
        f"\nCode: [`mechanisms/{name}.py`](../../src/gibbous/mechanisms/{name}.py).\n"
        if code.exists()
        else ""
    )
    page = f"[this chapter as a page]({name}.md)"
    return (
        f"\n### {head.removeprefix('# ')} {{ #{_anchor(name)} }}\n{runs}\n({page})\n{_linked(body)}"
    )


def _linked(text: str) -> str:
    """Paths of tests and code in a proof, as links to them."""

    def lead(match: re.Match[str], folder: str = "") -> str:
        path = folder + match[1]
        return f"[{match[0]}](../../{path})" if (ROOT / path).is_file() else match[0]

    return SHORT.sub(lambda m: lead(m, "src/gibbous/"), PATH.sub(lead, text))


def _slug(text: str) -> str:
    return re.sub(r"[^\w-]", "", re.sub(r"[`*]", "", text).strip().lower().replace(" ", "-"))


if __name__ == "__main__":
    print(page())
