"""The cards of all methods, kept between processes: a listing need not import a single mechanism.

Importing every mechanism takes numpy and a hundred modules. What a listing shows depends on those
files alone, so it is kept beside the compiled kernels and used while none of them has changed.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from gibbous.cli.defaults import DEFAULT_METHOD
from gibbous.core.compiled import cache_folder

Card = dict[str, Any]
NAME = "methods.json"
WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def cards() -> list[Card]:
    """Everything known of every method, as JSON values, sorted by name.

    Returns:
        One object a method: the fields of its `About`, whether it is the default, its parameters.
    Raises:
        EngineFailure: a package that registers a method cannot be imported.
    """
    folder = cache_folder()
    kept = None if folder is None else _kept(folder / NAME)
    if kept is not None:
        return kept
    made = _made()
    if folder is not None:
        _keep(folder / NAME, made)
    return made


def _made() -> list[Card]:
    import dataclasses

    from gibbous.core.params import describe
    from gibbous.mechanisms.registry import load, methods

    out = []
    for about in methods():
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


def _kept(path: Path) -> list[Card] | None:
    """What was kept, if it is ours and nothing that made it has changed since."""
    try:
        with path.open(encoding="utf-8") as file:
            facts = os.fstat(file.fileno())
            if hasattr(os, "getuid") and (
                facts.st_uid != os.getuid() or facts.st_mode & WRITABLE_BY_OTHERS
            ):
                return None
            found = json.load(file)
        marks: dict[str, list[int]] = found["files"]
        if found["python"] != _python() or any(_mark(name) != marks[name] for name in marks):
            return None
        cards: list[Card] = found["cards"]
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return cards


def _keep(path: Path, made: list[Card]) -> None:
    owners = {name.partition(".")[0] for name in _homes(made)}
    loaded = [
        str(getattr(module, "__file__", None) or "")
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] in owners
    ]
    # A package that comes or goes changes the folder that it is installed in.
    files = {name: _mark(name) for name in {*loaded, *sys.path} if name}
    beside = path.with_name(f"{NAME}.{os.getpid()}")
    with suppress(OSError, ValueError, TypeError):
        text = json.dumps({"python": _python(), "files": files, "cards": made}, allow_nan=False)
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
        beside.replace(path)
    with suppress(OSError):
        beside.unlink()


def _homes(made: list[Card]) -> set[str]:
    from gibbous.mechanisms.registry import load

    return {load(card["name"]).__module__ for card in made} | {__name__}


def _python() -> list[Any]:
    return [sys.version, sys.prefix, [name for name in sys.path if name]]


def _mark(name: str) -> list[int]:
    """Time and size of a file or folder; of one that is not there, nothing."""
    try:
        facts = os.stat(name)
    except OSError:
        return []
    return [facts.st_mtime_ns, facts.st_size]
