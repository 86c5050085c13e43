"""What strangers can hand us, as functions of bytes: each returns, or refuses in a documented sentence."""

from __future__ import annotations

import functools
import io
import json
import shutil
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl

from gibbous.cli.config import request_of, resolve
from gibbous.core.errors import GibbousError
from gibbous.disintegrate.records import LocalEngine
from gibbous.flows import flow_schema, load_geography
from gibbous.flows.table import read_flows
from gibbous.frontier import study_file
from gibbous.privacy.ledger import Ledger
from gibbous.privacy.ledger.store import Store
from gibbous.promise import planned
from gibbous.read.infer import infer_schema
from gibbous.read.metadata.files import import_schema
from gibbous.read.schema_file import load_schema
from gibbous.read.schema_write import schema_toml
from gibbous.read.source import read_columns
from gibbous.write import load, verify
from tests.flows import made as flows_made
from tests.frontier.test_compare import EXAMPLE
from tests.fuzz import calls, codebooks
from tests.fuzz.taking import done, folder_of, named
from tests.hostile import ABORT
from tests.pipeline.test_pipeline import SCHEMA, table
from tests.write import made

CORPUS = Path(__file__).with_name("corpus")
EDITS = "+"  # behind the name of a file: what follows are edits of it, as JSON


@dataclass(frozen=True, slots=True)
class Target:
    """One way in.

    Attributes:
        run: given an input; whether it was taken: refusals are told by False, anything else raises.
        seeds: whole inputs that our own programs write.
        named: an input begins with a line that names one of several files.
    """

    run: Callable[[bytes], bool]
    seeds: Callable[[], list[bytes]]
    named: bool = False


def taken(target: Target, data: bytes) -> bool:
    """Whether an input is taken; warnings are not looked at."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return target.run(data)


def attempt(target: Target, data: bytes) -> BaseException | None:
    """What escaped, or None: the input was taken, or refused in three parts."""
    try:
        taken(target, data)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is what we look for
        return error
    return None


def inputs(name: str) -> list[bytes]:
    """Seeds of a target, and its corpus: what found something once, and what reached far."""
    kept = sorted((CORPUS / name).glob("*"))
    return [*TARGETS[name].seeds(), *(path.read_bytes() for path in kept)]


def _csv(data: bytes) -> bool:
    path = folder_of("csv") / "data.csv"
    path.write_bytes(data)
    drafted = done(lambda: infer_schema(path))
    return done(lambda: LocalEngine().scan(path, SCHEMA, key=bytes(32))) and drafted


def _csv_seeds() -> list[bytes]:
    quoted = b'sex,region,age\r\n"f","0""1",3\r\n"m","a\nb",-1e3\r\nf,NA,\r\n'
    dates = b"day,n;m,x\n2020-02-01,1,0.5\n01/02/2020,2,nan\n"
    return [table(40).write_csv().encode(), quoted, dates, b"\xef\xbb\xbfsex\nf\n"]


def _parquet_input(data: bytes) -> bool:
    path = folder_of("parquet_input") / "data.parquet"
    path.write_bytes(data)
    drafted = done(lambda: infer_schema(path))
    return done(lambda: read_columns(path, schema=SCHEMA)) and drafted


def _parquet_seeds() -> list[bytes]:
    return [_parquet(table(60), c) for c in ("uncompressed", "zstd", "snappy")] + [ABORT]


def _parquet(frame: pl.DataFrame, compression: Any) -> bytes:
    file = io.BytesIO()
    frame.write_parquet(file, compression=compression)
    return file.getvalue()


def _schema(data: bytes) -> bool:
    path = folder_of("schema") / "schema.toml"
    path.write_bytes(data)

    def again() -> None:
        """What was read can be written, and says the same."""
        schema = load_schema(path)
        text = schema_toml(schema)
        path.write_text(text, encoding="utf-8")
        assert load_schema(path) == schema, "a schema is another one when it was written and read"

    return done(again)


def _schema_seeds() -> list[bytes]:
    page = schema_toml(made.SCHEMA).encode()
    rules = b'[[impossible]]\nsex = ["f"]\nregion = ["NA"]\n'
    unit = b'[unit]\nkind = "person"\ncolumn = "id"\nmax_rows = 2\n'
    return [page, schema_toml(SCHEMA).encode(), page + rules, unit + page]


def _request(data: bytes) -> bool:
    folder = folder_of("request")
    name, body = named(data, "release.toml", "study.toml", *codebooks.NAMES)
    if not name:
        return False
    name = codebooks.written(folder, name, body)
    if not (folder / "schema.toml").exists():
        (folder / "schema.toml").write_text(schema_toml(SCHEMA))
        table(40).write_csv(folder / "data.csv")
    if name == "study.toml":
        return done(lambda: study_file.load(folder / name))
    if name != "release.toml":
        return done(lambda: import_schema(folder / name))
    return done(lambda: _planned(folder / name))


def _planned(path: Path) -> None:
    request = request_of(resolve(path, [], {}))
    planned(request.privacy, request.output)


def _request_seeds() -> list[bytes]:
    release = (
        b'data = "data.csv"\nschema = "schema.toml"\n[privacy]\nepsilon = 1\ndelta = 1e-6\n'
        b'[mechanism]\nname = "%s"\n[output]\nrows = 9\nsets = 2\nseed = 5\nformat = "csv"\n'
        b'path = "out"\ndate = 2020-02-01\n[engine]\nname = "numpy"\n'
    )
    methods = [
        b"sbhg",
        b"noisy_pegs",
        b"adaptive_gibbs",
        b"modips",
        b"pegs",
        b"perturbed_histogram",
    ]
    return [
        *(b"release.toml\n" + release % name for name in methods),
        b"study.toml\n" + EXAMPLE.encode(),
        *codebooks.seeds(),
    ]


def _geography(data: bytes) -> bool:
    folder = folder_of("geography")
    path = flows_made.files(folder)
    name, body = named(data, "geography.toml", "homes.csv", "plants.csv", "flows.csv")
    if not name:
        return False
    (folder / name).write_bytes(body)

    def read() -> None:
        found = load_geography(path)
        flow_schema(found)
        read_flows(folder / "flows.csv", found)

    return done(read)


def _geography_seeds() -> list[bytes]:
    folder = folder_of("geography")
    flows_made.files(folder, "reach = 50\n" + flows_made.FORM)
    names = ("geography.toml", "homes.csv", "plants.csv", "flows.csv")
    return [name.encode() + b"\n" + (folder / name).read_bytes() for name in names]


@functools.cache
def _release() -> Path:
    """A release of this process, and a whole copy of it."""
    folder = folder_of("release")
    made.draw_plainly()
    made.write(folder / "whole", Ledger.ephemeral(), format="csv")
    return Path(shutil.copytree(folder / "whole", folder / "rel"))


def _forged(data: bytes) -> bool:
    """A file of a release was changed, and whoever changed it sealed the release again."""
    from tests.write.test_verify import reseal

    folder = _release()
    names = [p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()]
    name, body = named(data, *names, *(f"{name}{EDITS}" for name in names))
    if name.endswith(EDITS):
        name = name.removesuffix(EDITS)
        edited = _edited((folder / name).read_text(encoding="utf-8"), body)
        if edited is None:
            return False
        body = edited
    if not name:
        return False
    sealed = ("manifest.json", "SHA256SUMS")
    try:
        (folder / name).write_bytes(body)
        if name not in sealed:
            reseal(folder)
        whole = done(lambda: verify.verify(folder))
        return done(lambda: load.load(folder).sets[0]) and whole
    finally:
        for changed in {name, *sealed}:
            shutil.copyfile(folder.parent / "whole" / changed, folder / changed)


def _edited(text: str, edits: bytes) -> bytes | None:
    """A JSON document after edits: each a list of a place and, unless it is left out, a value."""
    try:
        document = json.loads(text)
        for place, *value in json.loads(edits):
            holder = functools.reduce(lambda found, key: found[key], place[:-1], document)
            if value:
                holder[place[-1]] = value[0]
            else:
                del holder[place[-1]]
        return json.dumps(document).encode()
    except (ValueError, TypeError, LookupError, RecursionError):
        return None


def _release_file(name: str) -> bytes:
    return name.encode() + b"\n" + (_release() / name).read_bytes()


def _release_json_seeds() -> list[bytes]:
    names = ("ledger.json", "tables/tables.json", "schema.toml", "manifest.json", "SHA256SUMS")
    edits = {
        "ledger.json": [[["seed"], 3], [["plan", "cells"], 9], [["total", "epsilon"], "2"]],
        "tables/tables.json": [
            [["recipe", "sweeps"], 3],
            [["items", 0, "context", "targets"], [0]],
        ],
        "manifest.json": [[["files", 0, "bytes"], 3]],
    }
    return [
        *(_release_file(name) for name in (*names[:2], *names)),
        *(f"{name}{EDITS}\n{json.dumps(each)}".encode() for name, each in edits.items()),
    ]


def _release_parquet_seeds() -> list[bytes]:
    names = ("tables/table_001.parquet", "tables/table_003.parquet", "synthetic_1.parquet")
    return [
        *map(_release_file, names),
        names[0].encode() + b"\n" + ABORT,
        _release_file("synthetic_1.csv"),
    ]


def _ledger(data: bytes) -> bool:
    """A file at the ledger's place; or, as JSON, entries that somebody chained as it should be."""
    folder = folder_of("ledger")
    shutil.rmtree(folder)
    folder.mkdir(mode=0o700)
    path = folder / "ledger.sqlite"
    if data.startswith(b"["):
        if not _chained(path, data):
            return False
    else:
        path.write_bytes(data)

    def read() -> None:
        book = Ledger.read(path)
        book.entries()
        book.close()

    def use() -> None:
        book = Ledger.open(path)
        try:
            book.verify()
            for account in book.accounts():
                str(account)
            book.find(b"x")
            book.reserve(bytes(32), made.TOTAL, mechanism="pegs", request=b"new").release()
        finally:
            book.close()

    readable = done(read)
    return done(use) and readable


def _chained(path: Path, data: bytes) -> bool:
    try:
        entries = json.loads(data)
        store = Store(path)
        with store.appending() as appender:
            for public, private in entries:
                appender.append(dict(public), dict(private))
        store.close()
    except (GibbousError, ValueError, TypeError, RecursionError):
        return False  # not what a ledger can hold
    return True


def _ledger_seeds() -> list[bytes]:
    folder = folder_of("ledger")
    shutil.rmtree(folder)
    folder.mkdir(mode=0o700)
    book = Ledger.open(folder / "ledger.sqlite")
    book.cap(bytes(32), Fraction(9), Fraction(1, 1000))
    book.reserve(bytes(32), made.TOTAL, mechanism="pegs", request=b"x", label="a").commit("ab" * 32)
    book.link(bytes(31) + b"1", bytes(32))
    book.nickname(bytes(32), "census")
    book.reserve(bytes(32), made.TOTAL, mechanism="pegs", request=b"y").release()
    links = [[one.public, one.private] for one in book._store.links()]
    book.close()
    return [(folder / "ledger.sqlite").read_bytes(), json.dumps(links).encode()]


TARGETS = {
    "csv": Target(_csv, _csv_seeds),
    "parquet_input": Target(_parquet_input, _parquet_seeds),
    "schema": Target(_schema, _schema_seeds),
    "request": Target(_request, _request_seeds, named=True),
    "geography": Target(_geography, _geography_seeds, named=True),
    "release_json": Target(_forged, _release_json_seeds, named=True),
    "release_parquet": Target(_forged, _release_parquet_seeds, named=True),
    "ledger": Target(_ledger, _ledger_seeds),
    "arguments": Target(calls.called, calls.seeds),
}
