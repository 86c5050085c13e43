"""The cards of `gibbous methods` are those of the classes."""

from __future__ import annotations

from gibbous.cli.methods_verb import cards
from gibbous.core.method_card import About
from gibbous.mechanisms import registry


def test_cards_are_those_of_the_classes() -> None:
    shown = cards()

    assert [card["name"] for card in shown] == list(registry.names())
    for card in shown:
        about: About = registry.load(card["name"]).about
        assert (card["title"], card["kind"], card["proven"]) == (
            about.title,
            about.kind,
            about.proven,
        )
