"""Mechanisms are found by name, the built-in ones by the same road as others."""

from __future__ import annotations

import inspect
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from gibbous.core.about import About
from gibbous.core.errors import EngineFailure, UsageError
from gibbous.mechanisms import registry

BUILT_IN = {
    "contingency",
    "bootstrap",
    "pegs",
    "block_pegs",
    "diverse_pegs",
    "exponential_pegs",
    "laplace",
    "sba",
    "sbhg",
    "noisy_pegs",
}


def test_all_built_in_methods_are_registered() -> None:
    assert set(registry.names()) >= BUILT_IN


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_a_method_is_named_after_its_file(name: str) -> None:
    kind = registry.load(name)

    assert kind.about.name == name
    assert kind.__module__ == f"gibbous.mechanisms.{name}"
    assert kind.__name__ == "".join(part.capitalize() for part in name.split("_"))


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_each_docstring_has_claim_proof_and_source(name: str) -> None:
    text = inspect.getdoc(registry.load(name)) or ""

    for word in ("Guarantee:", "Source:", "Claimed by the paper" if name[6:] != "pegs" else "laim"):
        assert word in text or name in ("noisy_pegs", "diverse_pegs")


def test_cards_are_complete_and_sorted() -> None:
    cards = registry.methods()

    assert [card.name for card in cards] == sorted(card.name for card in cards)
    for card in cards:
        assert all(getattr(card, field) for field in About.__slots__ if field != "shared")


@pytest.mark.parametrize(
    ("typed", "meant"), [("noisypegs", "noisy_pegs"), ("sbgh", "sbhg"), ("Laplace", "laplace")]
)
def test_a_misspelt_name_is_answered_with_the_nearest(typed: str, meant: str) -> None:
    with pytest.raises(UsageError, match=f"Did you mean '{meant}'"):
        registry.load(typed)


def test_an_unlike_name_is_answered_with_the_list() -> None:
    with pytest.raises(UsageError, match="gibbous methods"):
        registry.load("quux")


@pytest.mark.parametrize("value", ["no_such_module_here:Kind", "json:loads", "json:no_such_name"])
def test_a_broken_registration_names_the_package(value: str, monkeypatch: Any) -> None:
    point = EntryPoint("other", value, registry.GROUP)
    monkeypatch.setattr(registry, "_found", lambda: {"other": point})

    with pytest.raises(EngineFailure, match="uninstall the package"):
        registry.load("other")
