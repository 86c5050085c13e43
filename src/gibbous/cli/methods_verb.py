"""`gibbous methods`: the table of methods, one method in detail, or a new mechanism file."""

from __future__ import annotations

import dataclasses

from gibbous.cli import show
from gibbous.cli.defaults import DEFAULT_METHOD
from gibbous.core.about import About
from gibbous.core.errors import UsageError


def run(name: str | None, scaffold: str | None, json: bool) -> None:
    """Print what was asked for.

    Args:
        name: one method, or None for all.
        scaffold: name of a mechanism to begin, or None.
        json: a list of objects, one a method, with at least name, paper, unit, claimed, proven.
    """
    if scaffold is not None:
        from gibbous.cli.scaffold import mechanism_file

        print(mechanism_file(scaffold), end="")
        return
    from gibbous.mechanisms.registry import methods

    abouts = methods()
    if name is not None:
        abouts = (_find(name, abouts),)
    if json:
        show.as_json([card(about) for about in abouts])
    elif name is not None:
        _detail(abouts[0])
    else:
        _list(abouts)


def card(about: About) -> dict[str, object]:
    """Everything known of one method, as JSON values."""
    from gibbous.core.params import describe
    from gibbous.mechanisms.registry import load

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
    return facts | {"default": about.name == DEFAULT_METHOD, "parameters": parameters}


def _find(name: str, abouts: tuple[About, ...]) -> About:
    for about in abouts:
        if about.name == name:
            return about
    from gibbous.cli.mistakes import nearest

    names = [about.name for about in abouts]
    near = nearest(name.lower().replace("-", "_"), names)
    raise UsageError(
        "UNKNOWNMETHOD",
        f"There is no method {name!r}.",
        f"Methods are {', '.join(names)}.",
        f"Did you mean {near!r}?" if near else "`gibbous methods` describes them.",
    )


def _list(abouts: tuple[About, ...]) -> None:
    rows = [
        (
            about.name + (" *" if about.name == DEFAULT_METHOD else ""),
            about.paper,
            about.unit if about.kind != "none" else "-",
            about.releases,
            show.NOT_DP if about.kind == "none" else about.kind.replace("_", "-"),
        )
        for about in abouts
    ]
    show.plain(("method", "paper", "unit", "releases", "kind of claim"), rows)
    show.line()
    for about in abouts:
        show.line(f"  {about.name}: {about.title}")
        show.line(f"      published: {about.claimed}")
        show.line(f"      proven:    {about.proven}")
    show.line()
    show.line("  * default. `gibbous methods NAME` shows one in detail, with its parameters.")


def _detail(about: About) -> None:
    from gibbous.core.params import describe
    from gibbous.mechanisms.registry import load

    show.line(f"{about.name}: {about.title}")
    for label, text in (
        ("paper", about.paper),
        ("releases", f"{about.releases}; one claim per {about.unit}"),
        ("published", about.claimed),
        ("proven", about.proven),
        ("audited", about.audited),
    ):
        show.line(f"  {label:<10} {text}")
    if about.kind in ("none", "l_diversity"):
        show.line(f"  {show.NOT_DP}")
    show.line()
    rows = [
        (p.name, repr(p.default), p.allowed, p.unit or "-", p.help)
        for p in describe(load(about.name))
    ]
    if rows:
        show.table(("parameter", "default", "allowed", "unit", "meaning"), rows)
        show.line()
    show.line(f"  gibbous synthesize DATA --schema FILE --method {about.name} ... --out FOLDER")
