"""Editing a page for its language changes no number, and makes no claim weaker or stronger."""

from __future__ import annotations

import pytest

from tests.frame.claims import claims, kept, lost
from tests.frame.tree import ROOT


@pytest.mark.parametrize("page", kept())
def test_the_page_says_what_it_said(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")

    assert not lost(kept()[page], text), (
        f"if the fact itself changed: python -m tests.frame.claims {page}"
    )


OLD = "The scale is proven. V_s is within about 45 %, after 10 times; epsilon is 0.5, delta 1e-9."


@pytest.mark.parametrize(
    ("new", "missing"),
    [
        ("Proven: the scale. After 10 times V_s is within 45 %. Epsilon 0.5, delta 1e-9.", []),
        (OLD.replace("45 %", "54 %"), ["45 %"]),
        (OLD.replace("45 %", "45 MB"), ["45 %"]),
        (OLD.replace("0.5", "5"), ["0.5"]),
        (OLD.replace("1e-9", "1e-8"), ["1e-9"]),
        (OLD.replace("proven", "likely"), ["proven"]),
        (OLD.replace("is proven", "is proven and always exact"), ["always", "exact"]),
    ],
)
def test_a_changed_claim_is_found_and_a_new_sentence_is_not(new: str, missing: list[str]) -> None:
    assert lost(claims(OLD), new) == missing
