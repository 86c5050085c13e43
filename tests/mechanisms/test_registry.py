"""Mechanisms are found by name, the built-in ones by the same road as others."""

from __future__ import annotations

import inspect
from importlib.metadata import EntryPoint
from typing import Any

import pytest

import gibbous
from gibbous.core.errors import EngineFailure, UsageError
from gibbous.core.method_card import About
from gibbous.mechanisms import registry
from tests.frame.tree import ROOT, mechanism_names

BUILT_IN = mechanism_names()


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_built_in_method_is_listed_wherever_methods_are(name: str) -> None:
    """Its file, one line of pyproject, proof, page and test are work; these lines are copied from here."""
    kind = "".join(part.title() for part in name.split("_"))
    lines = {
        "src/gibbous/__init__.py": (f"    from gibbous.mechanisms.{name} import {kind}",),
        "README.md": (f"| [`{name}`](docs/mechanisms/{name}.md)",),
        "docs/README.md": (f"| [{name}](mechanisms/{name}.md) | [",),
        f"docs/mechanisms/{name}.md": (f"# {name}: ", "../proofs/"),
    }

    missing = [
        f"{path} lacks: {line.strip()}"
        for path, wanted in lines.items()
        for line in wanted
        if line not in ((ROOT / path).read_text() if (ROOT / path).exists() else "")
    ]

    if kind not in gibbous.__all__:
        missing.append(f"src/gibbous/__init__.py lacks in _MECHANISMS: {kind}")
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_method_is_named_after_its_file(name: str) -> None:
    kind = registry.load(name)

    assert kind.about.name == name
    assert kind.__module__ == f"gibbous.mechanisms.{name}"
    assert kind.__name__ == "".join(part.capitalize() for part in name.split("_"))


@pytest.mark.parametrize("name", BUILT_IN)
def test_each_docstring_has_a_guarantee_and_a_source(name: str) -> None:
    text = inspect.getdoc(registry.load(name)) or ""

    assert "Guarantee:" in text
    assert "Source:" in text


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
