"""Words and reading grade (Flesch-Kincaid) of pages, now and at a commit: `reading.py COMMIT PAGE ...`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def prose(text: str) -> str:
    """Sentences alone: no code block, table, heading or link target; quoted code counts as its name."""
    text = "\n".join(
        part for part in re.split(r"(```.*?```)", text, flags=re.DOTALL) if "```" not in part
    )
    text = re.sub(r"^ *\|.*$|^#.*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    text = re.sub(r"\n\s*\n", ". ", text)  # a paragraph and a list end a sentence
    return re.sub(r"\n *(?:[-*]|\d+\.) ", ". ", text)


def syllables(word: str) -> int:
    """Groups of vowels, without a silent e at the end; at least one."""
    groups = len(re.findall(r"[aeiouy]+", word))
    silent = word.endswith("e") and not word.endswith(("le", "ee")) and groups > 1
    return max(1, groups - silent)


def grade(text: str) -> tuple[int, float]:
    """Words, and 0.39 words/sentence + 11.8 syllables/word - 15.59."""
    plain = prose(text)
    sentences = [
        part for part in re.split(r"[.!?;:](?:\s|$)", plain) if re.search("[A-Za-z]{2}", part)
    ]
    words = re.findall(r"[a-z]+", plain.lower())
    spoken = sum(map(syllables, words))
    return len(plain.split()), 0.39 * len(words) / len(sentences) + 11.8 * spoken / len(
        words
    ) - 15.59


def main(commit: str, pages: list[str]) -> None:
    """A row a page."""
    print("| page | words before | after | grade before | after |\n|---|---|---|---|---|")
    for page in pages:
        shown = ["git", "show", f"{commit}:{page}"]
        old = subprocess.run(shown, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        (w0, g0), (w1, g1) = grade(old), grade((ROOT / page).read_text(encoding="utf-8"))
        print(f"| {page} | {w0} | {w1} | {g0:.1f} | {g1:.1f} |")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
