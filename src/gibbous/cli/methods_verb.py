"""`gibbous methods`: the table of methods, one method in detail, or a new mechanism file."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from gibbous.cli import show
from gibbous.core.keywords import DEFAULT_METHOD

Card = dict[str, Any]


def run(name: str | None, scaffold: str | None, json: bool) -> None:
    """Print what was asked for; as JSON a list of objects, one a method."""
    if scaffold is not None:
        from gibbous.cli.scaffold import mechanism_file

        print(mechanism_file(scaffold), end="")
        return
    shown = cards(name)
    if json:
        show.as_json(shown)
    elif name is not None:
        _detail(shown[0])
    else:
        _list(shown)


def cards(name: str | None = None) -> list[Card]:
    """Everything known of every method, as JSON values, sorted by name.

    Returns:
        One object a method: the fields of its `About`, whether it is the default, its parameters.
    Raises:
        UsageError: there is no such method.
        EngineFailure: a package that registers a method cannot be imported.
    """
    from gibbous.core.params import describe
    from gibbous.mechanisms.registry import load, methods

    out = []
    for about in methods() if name is None else (load(name).about,):
        facts = {f.name: getattr(about, f.name) for f in dataclasses.fields(about)}
        parameters = [
            {
                "name": p.name,
                "type": p.type,
                "default": list(p.default) if isinstance(p.default, tuple) else p.default,
                "allowed": p.allowed,
                "unit": p.unit,
                "help": p.help,
            }
            for p in describe(load(about.name))
        ]
        out.append(facts | {"default": about.name == DEFAULT_METHOD, "parameters": parameters})
    return out


def _list(cards: Sequence[Card]) -> None:
    rows = [
        (
            card["name"] + (" *" if card["default"] else ""),
            card["paper"],
            card["unit"] if card["kind"] != "none" else "-",
            card["releases"],
            show.NOT_DP if card["kind"] == "none" else card["kind"].replace("_", "-"),
        )
        for card in cards
    ]
    show.plain(("method", "paper", "unit", "releases", "kind of claim"), rows)
    show.line()
    for card in cards:
        show.line(f"  {card['name']}: {card['title']}")
        show.line(f"      published: {card['claimed']}")
        show.line(f"      proven:    {card['proven']}")
    show.line()
    show.line("  * default. `gibbous methods NAME` shows one in detail, with its parameters.")


def _detail(card: Card) -> None:
    claims = "no claim" if card["kind"] == "none" else f"one claim per {card['unit']}"
    show.line(f"{card['name']}: {card['title']}")
    for label, text in (
        ("paper", card["paper"]),
        ("releases", f"{card['releases']}; {claims}"),
        ("published", card["claimed"]),
        ("proven", card["proven"]),
        ("audited", card["audited"]),
    ):
        show.line(f"  {label:<10} {text}")
    if card["kind"] in ("none", "l_diversity"):
        show.line(f"  {show.NOT_DP}")
    show.line()
    rows = [
        (p["name"], _written(p["default"]), p["allowed"], p["unit"] or "-", p["help"])
        for p in card["parameters"]
    ]
    if rows:
        show.table(("parameter", "default", "allowed", "unit", "meaning"), rows)
        show.line()
    show.line(f"  gibbous synthesize DATA --schema FILE --method {card['name']} ... --out FOLDER")


def _written(default: object) -> str:
    if default is None or default in ("", [], ()):
        return "-"  # nothing: the meaning says what that stands for
    return repr(tuple(default) if isinstance(default, list) else default)
