"""Calls of the Python face, for the target `arguments`: a function, and whatever JSON has."""

from __future__ import annotations

import functools
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import gibbous as gb
from gibbous.core.errors import GibbousError
from gibbous.mechanisms import registry
from gibbous.privacy.ledger import Ledger
from tests.fuzz import codebooks
from tests.fuzz.taking import done, folder_of
from tests.pipeline.test_pipeline import SCHEMA, table
from tests.write import made

PATHS = ("path", "out", "ledger", "key", "sign", "anchor", "release", "findings", "geography")
MOST = 50  # rows, sets and runs


class Enough(GibbousError):
    """What an audit is stopped by once its arguments were taken."""

    exit_code = 2


def called(data: bytes) -> bool:
    """A call of the Python face with arguments of any kind."""
    try:
        document = json.loads(data)
        call, given = document["call"], dict(document["with"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return False
    if not isinstance(call, str) or call not in CALLS or not all(isinstance(k, str) for k in given):
        return False
    if any(isinstance(given.get(k), int) and given[k] > MOST for k in ("rows", "sets", "runs")):
        return False  # it may take as long as it was asked for
    return done(lambda: CALLS[call](_usable(given)))


@functools.cache
def _home() -> Path:
    """A folder with a release, a ledger, a private key and a codebook, which no call changes."""
    home = folder_of("arguments-home")
    made.draw_plainly()
    ledger = Ledger.open(home / "ledger")
    made.write(home / "release", ledger, format="csv")
    ledger.close()  # or a file beside it goes when it is collected, which may be while all are copied
    codebooks.written(home, "metadata.csv", codebooks.SHEET.encode())
    _key(home / "key")
    return home


def _key(path: Path) -> None:
    from gibbous.write.signature import new_key

    new_key(path, "office", b"")


def _usable(given: dict[str, Any]) -> dict[str, Any]:
    """Arguments with paths that lie in a folder of this process, and what JSON cannot write."""
    folder = folder_of("arguments")
    named = [name for name in PATHS if isinstance(given.get(name), str)]
    if named:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(_home(), folder)
    for name in named:
        inside = given[name].replace("/", "_").replace("..", "_")
        given[name] = folder / inside if len(inside) % 2 else str(folder / inside)
    if isinstance(given.get("imprint"), dict):
        given["imprint"] = gb.Imprint(**_fields(gb.Imprint, given["imprint"]))
    if given.get("progress") == "told":
        given["progress"] = lambda *told: None
    if isinstance(given.get("engine"), str) and "spark" in given["engine"].lower():
        del given["engine"]  # it takes a minute to start
    return given


def _synthesize(given: dict[str, Any]) -> None:
    if not isinstance(given.get("rows"), int) and given.get("epsilon") != 1:
        given["rows"] = 5  # nor as many rows as a very noisy number says, in memory
    given = {"method": "sbhg", "ledger": Ledger.ephemeral(), "engine": "numpy"} | given
    gb.synthesize(table(40), SCHEMA, **given)


def _fields(kind: type, given: dict[str, Any]) -> dict[str, Any]:
    """Arguments of a dataclass: with tuples where JSON has lists, and no name that it does not have."""
    known = [field.name for field in fields(kind)]
    return {k: tuple(v) if isinstance(v, list) else v for k, v in given.items() if k in known}


def _column(given: dict[str, Any]) -> None:
    gb.Schema((gb.Column(**{"name": "a", "kind": "nominal"} | _fields(gb.Column, given)),))


def _schema(given: dict[str, Any]) -> None:
    gb.Schema(**{"columns": SCHEMA.columns} | given)


def _rule(given: dict[str, Any]) -> None:
    gb.load_schema(gb.Schema(SCHEMA.columns, rules=(gb.Rule(**given),)))


def _method(given: dict[str, Any]) -> None:
    name, rows, sets = given.pop("method", "sbhg"), given.pop("rows", None), given.pop("sets", 1)
    kind = registry.load(name)
    gb.plan(SCHEMA, kind(**given), rows=rows, sets=sets)


def _capped(given: dict[str, Any]) -> None:
    Ledger.ephemeral().cap(**{"dataset": bytes(32), "epsilon": None, "delta": None} | given)


def _audit(given: dict[str, Any]) -> None:
    def stop(*told: object) -> None:
        raise Enough("ENOUGH", "It would run.", "That takes long.", "Nothing.")

    gb.audit(**{"method": "laplace", "runs": 4, "progress": stop} | given)


def _evaluate(given: dict[str, Any]) -> None:
    gb.evaluate(table(40), table(30), SCHEMA, **{"only": ["tv1"]} | given)


CALLS: dict[str, Callable[[dict[str, Any]], object]] = {
    "synthesize": _synthesize,
    "plan": lambda given: gb.plan(SCHEMA, **given),
    "method": _method,
    "column": _column,
    "schema": _schema,
    "discovery": lambda given: gb.Discovery(
        **{"names": ["a"], "unit": gb.Unit()} | _fields(gb.Discovery, given)
    ),
    "unit": lambda given: gb.Unit(**_fields(gb.Unit, given)),
    "rule": _rule,
    "cap": _capped,
    "open": lambda given: Ledger.open(**given).close(),
    "verify": lambda given: gb.verify(**{"path": "x"} | given),
    "load": lambda given: gb.load(**{"path": "x"} | given).sets[0],
    "evaluate": _evaluate,
    "audit": _audit,
    "report": lambda given: gb.report(**{"release": "x"} | given),
    "import_schema": lambda given: gb.import_schema(**{"path": "x"} | given),
}


def seeds() -> list[bytes]:
    """Calls that are taken."""
    plain = {"rows": 5, "sets": 2, "seed": 3, "budget": 9, "part_rows": 3, "format": "csv"}
    who = {"issuer": "Office", "contact": "a@b", "date": "2026-05-01", "license": "CC0"}
    kept = {"out": "new", "ledger": "ledger", "engine": "local", "imprint": who, "mode": "0640"}
    columns: Iterator[dict[str, Any]] = iter((
        {"name": "a", "kind": "nominal", "levels": ["x", "y"], "missing": True, "other": "z"},
        {"name": "n", "kind": "numeric", "edges": [0.0, 1.0, 2.5], "integer": False, "decimals": 2},
        {"name": "d", "kind": "date", "edges": [700000.0, 700100.0]},
    ))  # fmt: skip
    calls: list[tuple[str, dict[str, Any]]] = [
        (
            "synthesize",
            plain | kept | {"epsilon": 1} | {"overwrite": True, "strict": True, "fresh": True},
        ),
        ("synthesize", {"rows": 5, "out": "new", "sign": "key", "progress": "told"}),
        ("synthesize", {"method": "pegs", "rows": 3, "understand": True, "new_data": "others"}),
        ("plan", {"rows": 9, "sets": 2, "accept_inferred": True, "budget": "1.5"}),
        *(("column", one) for one in columns),
        ("schema", {"null": "NA", "ignore": ["z"], "name": "x", "description": "y", "rules": []}),
        ("discovery", {"names": ["a", "b"], "numeric": ["a"], "levels": {"b": ["x"]}}),
        ("unit", {"kind": "person", "column": "id", "max_rows": 3}),
        ("rule", {"when": "sex == 'f'", "then": "region == '01'"}),
        ("rule", {"columns": ["sex", "region"], "forbidden": [["f", "01"]], "bought": False}),
        (
            "rule",
            {"detail": "region", "group": "sex", "map": dict.fromkeys(("01", "02", "NA"), "f")},
        ),
        ("cap", {"epsilon": 1, "delta": "1e-6", "relation": "add_remove", "account": "sum"}),
        ("open", {"path": "ledger", "anchor": "anchor", "allow_network": True}),
        ("verify", {"path": "release", "ledger": "ledger", "key": None, "progress": "told"}),
        ("verify", {"path": "release", "key": "other.pub"}),
        ("load", {"path": "release"}),
        ("evaluate", {"keys": ["sex"], "sensitive": "region", "fraction": None, "seed": 3}),
        ("audit", {"epsilon": 1, "params": {"relation": "add_remove"}, "seconds": 9, "seed": 3}),
        ("report", {"release": "release", "audience": "public", "out": "page.html", "axes": ["a"]}),
        ("report", {"release": "release", "overwrite": True, "sign": None, "destinations": []}),
        ("import_schema", {"path": "metadata.csv", "data": None}),
    ]
    known = {"epsilon": 1.0, "delta": 1e-6, "parents": 2, "passes": 1, "block": 10, "bins": 4}
    for name in registry.names():
        fields = registry.load(name).__dataclass_fields__
        own = {k: v for k, v in known.items() if k in fields}
        calls.append(("method", {"method": name, "rows": 9} | own))
    return [json.dumps({"call": name, "with": given}).encode() for name, given in calls]
