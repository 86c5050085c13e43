"""`gibbous audit`: try to refute what a method claims, on constructed tables."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

from gibbous.cli import show
from gibbous.cli.config import number
from gibbous.cli.progress import Bars
from gibbous.core.documents import Unreadable, toml
from gibbous.core.errors import UsageError

BUDGETS = ("epsilon", "delta")
VIOLATION, CANNOT_TELL = 5, 10


def run(
    method: str,
    budget: tuple[str | None, str | None],
    relation: str | None,
    setting: Sequence[str],
    effort: tuple[float, int | None, int],
    out: Path | None,
    json: bool,
    quiet: bool,
) -> int:
    """Audit a method and print what was found.

    Args:
        method: registered name.
        budget: epsilon and delta, decimal text; None for the method's defaults.
        relation: only this one; None for all that the method offers.
        setting: texts "key=value", parameters of the method.
        effort: CPU seconds, runs of each part (None: what the seconds allow), seed of the coins.
        out: also write the JSON document there; an existing file is refused before anything runs.
        json: print that document and nothing else.
        quiet: only the last line.
    Returns:
        Exit code: 0 nothing found, or nothing to audit; 5 a violation; 10 too few runs to tell.
    """
    from gibbous.contract.auditor.run import audit
    from gibbous.write.files import exists, write_json

    if out is not None and out.exists():
        raise exists(out)
    params = _params(setting)
    given = {"epsilon": budget[0], "delta": budget[1]}
    params |= {key: number(key, text) for key, text in given.items() if text is not None}
    if relation is not None:
        params["relation"] = relation
    seconds, runs, seed = effort
    with Bars(quiet=quiet or json) as bars:
        found = audit(method, params=params, seconds=seconds, runs=runs, seed=seed, progress=bars)
    if out is not None:
        write_json(out, found.to_json())
    if json:
        show.as_json(found.to_json())
    elif quiet:
        show.line(found.headline())
    else:
        for line in found.lines():
            show.line(line)
    return {"VIOLATION": VIOLATION, "cannot tell": CANNOT_TELL}.get(found.verdict, 0)


def _params(setting: Sequence[str]) -> dict[str, object]:
    params: dict[str, object] = {}
    for text in setting:
        key, equals, value = text.partition("=")
        name = key.strip().replace("-", "_").removeprefix("mechanism.").removeprefix("privacy.")
        if not equals or not name or name in params:
            raise UsageError(
                "SET",
                f"--set {text!r} is not KEY=VALUE, or gives a key twice.",
                "KEY is a parameter of the method, for example --set parents=3.",
                "Put one = between key and value, without spaces; give each key once.",
            )
        params[name] = _literal(name, value.strip())
    return params


def _literal(name: str, text: str) -> object:
    """A value as TOML, else as text; lists are tuples, as in the methods."""
    if name in BUDGETS:
        return number(name, text)
    try:
        value = toml(f"value = {text}", parse_float=Decimal)["value"]
    except Unreadable:
        return text
    if isinstance(value, Decimal):
        return number(name, value)
    return tuple(value) if isinstance(value, list) else value
