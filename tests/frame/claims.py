"""What an edit of a page may not lose: its numbers with units, and its words of certainty.

python -m tests.frame.claims docs/how-to/NAME.md ...    # before editing: adds the page to claims.json
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KEPT = Path(__file__).with_name("claims.json")
CODE = re.compile(r"^ *```.*?^ *```[^\n]*$", re.DOTALL | re.MULTILINE)
UNITS = (
    "%|KB|MB|GB|MiB|GiB|nats|bytes|CPU seconds|seconds|minutes|hours|"
    "rows|records|cells|sets|columns|people|miles|runs|draws|times"
)
NUMBER = re.compile(
    rf"(?<![\w.])[-+]?(?:\d[\d,]*(?:\.\d+)?|\.\d+)(?:e-?\d+)?(?![\w])(?: ?(?:{UNITS})(?!\w))?"
)
CERTAIN = (
    "proven", "proof", "claimed", "guarantee", "audited", "measured", "unbiased", "exact", "assumes", "never",
    "always", "refused", "cannot", "confidential", "provisional", "rough",
)  # fmt: skip


def claims(text: str) -> dict[str, list[str]]:
    """Distinct numbers with their units, and the words of certainty, outside code blocks."""
    plain = " ".join(CODE.sub(" ", text).split())
    words = set(re.findall(r"[a-z]+", plain.lower()))
    return {
        "numbers": sorted({hit.rstrip(",") for hit in NUMBER.findall(plain)}),
        "words": [word for word in CERTAIN if word in words],
    }


def kept() -> dict[str, dict[str, list[str]]]:
    """By page, what it said before it was edited."""
    found: dict[str, dict[str, list[str]]] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    return found


def lost(before: dict[str, list[str]], text: str) -> list[str]:
    """What an edited page no longer says, and words of certainty that it did not have."""
    now = claims(text)
    numbers = set(before["numbers"]) - set(now["numbers"])
    return sorted(numbers | (set(before["words"]) ^ set(now["words"])))


def main(paths: list[str]) -> None:
    """Write what pages say now."""
    said = kept() | {path: claims((ROOT / path).read_text(encoding="utf-8")) for path in paths}
    KEPT.write_text(json.dumps(dict(sorted(said.items())), indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
