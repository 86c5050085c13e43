"""Proof pages name tests that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("page", ["noise", "stable", "accounting", "gaussian", "discovery"])
def test_every_test_that_a_proof_relies_on_exists(page):
    text = (ROOT / "docs" / "proofs" / f"{page}.md").read_text(encoding="utf-8")
    files = (
        p
        for folder in ("privacy", "structure", "discovery", "pipeline")
        for p in (ROOT / "tests" / folder).glob("*.py")
    )
    here = "\n".join(p.read_text(encoding="utf-8") for p in files)
    named = set(re.findall(r"`(test_\w+)`", text)) | set(re.findall(r"`(test_\w+)\b(?!\.py)", text))

    assert len(named) >= 8
    assert not {name for name in named if f"def {name}(" not in here}
