"""Public tables <-> the folder `tables/`: one Parquet file a table, and tables.json; no pickle."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from gibbous.core.context import Context, Radix, strides
from gibbous.core.schema import Schema
from gibbous.core.tables import (
    Cells,
    Criterion,
    Dense,
    Fallback,
    Fit,
    Recipe,
    Sparse,
    Table,
    Tables,
)
from gibbous.write.durable_files import (
    check_format,
    make_folder,
    new_file,
    read_json,
    refusing,
    rejected,
    sync_folder,
    write_json,
)
from gibbous.write.model_files import model_files, noise_of, read_model, write_model
from gibbous.write.release_digest import recipe_json, table_json

if TYPE_CHECKING:
    import polars as pl

FORMAT = "gibbous-tables/1"
MAX_CELLS = 1 << 28  # of one table: 2 GiB of counts
MAX_SWEEPS = 1 << 20
MAX_MEMBERS = 9_999  # sets, or parts
MAX_DEPTH = 2
MODELS = ("loglinear", "cells")  # recipes whose rows come from a model
_NAME = re.compile(r"(table|extra)_[0-9]{3,6}\.parquet")
_ROW_GROUP = 1 << 20


def write_tables(tables: Tables, folder: Path) -> None:
    """Write a new folder of tables, on disk when this returns; the same tables give the same bytes."""
    make_folder(folder)
    listed: dict[str, list[dict[str, Any]]] = {}
    for group, members in (("table", tables.items), ("extra", tables.extra)):
        listed[group] = []
        for number, table in enumerate(members, 1):
            name = f"{group}_{number:03d}.parquet"
            frame = _frame(table, tables.schema)
            with new_file(folder / name) as file:
                frame.write_parquet(file, compression="zstd", row_group_size=_ROW_GROUP)
            listed[group].append({"file": name, "rows": frame.height, **table_json(table)})
    recipe = recipe_json(tables)
    document: dict[str, Any] = {
        "format": FORMAT,
        "recipe": recipe,
        "items": listed["table"],
        "extra": listed["extra"],
    }
    if tables.model is not None:
        document["model"] = write_model(tables.model, folder)
    for kind, others in (("set", tables.copies), ("part", tables.parts)):
        if others:
            document[f"{kind}s"] = len(others)
            for name, other in zip(member_names(kind, len(others)), others, strict=True):
                write_tables(other, folder / name)
    if tables.shares:
        document["shares"] = list(tables.shares)
    write_json(folder / "tables.json", document)
    sync_folder(folder)


def read_tables(folder: Path, schema: Schema, *, depth: int = 0) -> Tables:
    """Read what `write_tables` wrote; nothing in it is trusted: ModelRejected for what is wrong.

    `depth` is how deep in a release of several sets or parts the folder lies.
    """
    document = read_json(folder / "tables.json")
    with refusing("TABLES", "tables.json does not describe tables"):
        check_format(document["format"], FORMAT, "its tables have")
        model = read_model(folder, document["model"], schema) if "model" in document else None
        sizes = schema.sizes if model is None else model.sizes
        items = tuple(_read_table(folder, entry, schema, sizes) for entry in document["items"])
        extra = tuple(_read_table(folder, entry, schema, sizes) for entry in document["extra"])
        copies, parts = (
            tuple(read_tables(folder / name, schema, depth=depth + 1) for name in names)
            for names in (_members(document, "set", depth), _members(document, "part", depth))
        )
        recipe = _recipe(document["recipe"], items, schema, parted=bool(parts))
        if (recipe.draw in MODELS) != (model is not None):
            raise rejected("RECIPE", "its recipe and its model do not go together")
        return Tables(
            schema, items, recipe, extra, model, copies, parts, _shares(document, len(parts))
        )


def listed_files(folder: Path, *, depth: int = 0) -> tuple[str, ...]:
    """Names of the files below the folder that its tables.json lists, itself included."""
    document = read_json(folder / "tables.json")
    with refusing("TABLES", "tables.json does not describe tables"):
        entries = [*document["items"], *document["extra"]]
        names = ["tables.json", *(_file_name(entry["file"]) for entry in entries)]
        names += model_files(document["model"]) if "model" in document else ()
        for kind in ("set", "part"):
            for name in _members(document, kind, depth):
                below = listed_files(folder / name, depth=depth + 1)
                names += [f"{name}/{one}" for one in below]
    return tuple(names)


def member_names(kind: str, count: int) -> tuple[str, ...]:
    """Folders of the tables of sets 2, 3, ... or of parts 1, 2, ...; sets have the numbers of their rows."""
    first = 2 if kind == "set" else 1
    return tuple(f"{kind}_{number:03d}" for number in range(first, first + count))


def _members(document: dict[str, Any], kind: str, depth: int) -> tuple[str, ...]:
    count = document.get(f"{kind}s", 0)
    if type(count) is not int or not 0 <= count <= MAX_MEMBERS or (count and depth >= MAX_DEPTH):
        raise rejected("MEMBERS", f"tables.json lists an impossible number of {kind}s")
    return member_names(kind, count)


def _shares(document: dict[str, Any], parts: int) -> tuple[float, ...]:
    shares = document.get("shares", [])
    whole = all(type(share) in (int, float) and 0 <= share <= 1 for share in shares)
    if not whole or (shares and (len(shares) != parts or not 0.99 < sum(shares) < 1.01)):
        raise rejected("MEMBERS", "the shares of its parts are not shares")
    return tuple(float(share) for share in shares)


def _frame(table: Table, schema: Schema) -> pl.DataFrame:
    import polars as pl

    context, cells = table.context, table.cells
    if isinstance(cells, Dense):
        keys = np.repeat(np.arange(context.keys, dtype=np.uint64), context.levels)
        levels = np.tile(np.arange(context.levels, dtype=np.uint64), context.keys)
        values = cells.values.reshape(-1)
    else:
        keys, levels, values = cells.keys, cells.levels, cells.values
    columns = []
    if isinstance(context.key, Radix):
        columns += _code_columns(keys, context.parents, context.parent_sizes, schema)
    else:
        columns.append(pl.Series("key", keys))
    columns += _code_columns(levels, context.targets, context.target_sizes, schema)
    columns.append(pl.Series("count", values.astype(np.int64)))
    return pl.DataFrame(columns)


def _code_columns(
    mixed: np.ndarray, columns: tuple[int, ...], sizes: tuple[int, ...], schema: Schema
) -> list[pl.Series]:
    import polars as pl

    kind = schema.code_dtype()
    return [
        pl.Series(
            f"code.{schema.names[column]}",
            (mixed // np.uint64(step) % np.uint64(size)).astype(kind),
        )
        for column, size, step in zip(columns, sizes, strides(sizes), strict=True)
    ]


def _read_table(
    folder: Path, entry: dict[str, Any], schema: Schema, merged: tuple[int, ...]
) -> Table:
    name = _file_name(entry["file"])
    with refusing("TABLE", f"tables.json does not describe {name}"):
        context = _context(entry["context"], schema, merged, name)
        noise = noise_of(entry["noise"], name)
        dense, rows = entry["cells"] == "dense", entry["rows"]
        if entry["cells"] not in ("dense", "sparse") or type(rows) is not int:
            raise rejected("TABLE", f"{name} is neither dense nor sparse")
        # Sizes are compared before anything is allocated.
        if not 0 <= rows <= min(context.cells, MAX_CELLS) or (dense and rows != context.cells):
            raise rejected("SHAPE", f"{name} cannot have {rows} cells")
        frame = _read_frame(folder / name, _column_names(context, schema), rows)
    return Table(context, _cells(frame, context, dense, name), noise)


def _read_frame(path: Path, names: list[str], rows: int) -> pl.DataFrame:
    import polars as pl

    from gibbous.write.parquet_guard import guarded_read, metadata

    footer = metadata(path)
    if list(footer.columns) != names or footer.rows != rows:
        raise rejected("SHAPE", f"{path.name} does not have the columns or cells that are listed")
    if any(not kind.is_integer() for kind in footer.columns.values()) or (
        footer.columns["count"] != pl.Int64
    ):
        raise rejected("TYPE", f"{path.name} holds something else than whole numbers")
    frame = guarded_read(path)
    if frame.height != rows or any(frame.null_count().row(0)):
        raise rejected("SHAPE", f"{path.name} has missing cells")
    return frame


def _cells(frame: pl.DataFrame, context: Context, dense: bool, name: str) -> Cells:
    width = len(context.parents) if isinstance(context.key, Radix) else 1
    columns = [series.to_numpy() for series in frame]
    if isinstance(context.key, Radix):
        keys = _mixed(columns[:width], context.parent_sizes, frame.height, name)
    else:
        keys = columns[0].astype(np.uint64)
        if len(keys) and int(keys.max()) >= context.keys:
            raise rejected("KEY", f"{name} has a key outside its table")
    levels = _mixed(columns[width:-1], context.target_sizes, frame.height, name)
    values = np.ascontiguousarray(columns[-1], dtype=np.int64)
    if dense:
        position = keys * np.uint64(context.levels) + levels
        if not np.array_equal(position, np.arange(len(position), dtype=np.uint64)):
            raise rejected("ORDER", f"{name} does not have each cell once and in order")
        return Dense(values.reshape(context.keys, context.levels))
    later = (keys[1:] > keys[:-1]) | ((keys[1:] == keys[:-1]) & (levels[1:] > levels[:-1]))
    if not later.all():
        raise rejected("ORDER", f"{name} has cells twice or out of order")
    return Sparse(keys, levels, values)


def _mixed(codes: list[np.ndarray], sizes: tuple[int, ...], rows: int, name: str) -> np.ndarray:
    total = np.zeros(rows, dtype=np.uint64)
    for column, size, step in zip(codes, sizes, strides(sizes), strict=True):
        if rows and (int(column.min()) < 0 or int(column.max()) >= size):
            raise rejected("CODE", f"{name} has a code outside its column")
        total += column.astype(np.uint64) * np.uint64(step)
    return total


def _column_names(context: Context, schema: Schema) -> list[str]:
    radix = isinstance(context.key, Radix)
    coded = (context.parents if radix else ()) + context.targets
    return ([] if radix else ["key"]) + [f"code.{schema.names[c]}" for c in coded] + ["count"]


def _context(data: dict[str, Any], schema: Schema, merged: tuple[int, ...], name: str) -> Context:
    """A context; its columns have the levels of the schema, or the groups of the model."""
    context = Context.from_json(data)
    columns = context.columns
    if len(set(columns)) != len(columns) or not context.targets:
        raise rejected("CONTEXT", f"{name} uses a column twice, or counts none")
    if any(c >= len(schema) for c in columns):
        raise rejected("CONTEXT", f"{name} uses a column that the schema does not have")
    sizes = zip(columns, context.parent_sizes + context.target_sizes, strict=True)
    if any(size not in (schema.sizes[c], merged[c]) for c, size in sizes):
        raise rejected("CONTEXT", f"{name} has other numbers of levels than the schema")
    if context.levels > 1 << 63 or context.keys > 1 << 63:
        raise rejected("CONTEXT", f"{name} has more keys or levels than 63 bits")
    if not isinstance(context.key, Radix) and not 0 <= context.key.seed < 1 << 64:
        raise rejected("CONTEXT", f"{name} has a hash seed outside 64 bits")
    return context


def _recipe(
    data: dict[str, Any], items: tuple[Table, ...], schema: Schema, *, parted: bool
) -> Recipe:
    recipe = Recipe(
        draw=data["draw"],
        order=tuple(data["order"]),
        sweeps=data["sweeps"],
        kappa=data["kappa"],
        fallback=data["fallback"],
        floor=data["floor"],
        fit=data.get("fit", "clip"),
        diverse=tuple((column, least) for column, least in data.get("diverse", ())),
        criterion=data.get("criterion", "entropy"),
    )
    words: tuple[tuple[str, tuple[str, ...]], ...] = (
        (recipe.fallback, get_args(Fallback)),
        (recipe.fit, get_args(Fit)),
        (recipe.criterion, get_args(Criterion)),
    )
    if any(word not in allowed for word, allowed in words):
        raise rejected("RECIPE", "its recipe has an unknown word")
    whole = all(type(v) is int for v in (recipe.sweeps, recipe.floor, *recipe.order))
    if not whole or not 1 <= recipe.sweeps <= MAX_SWEEPS:
        raise rejected("RECIPE", "its recipe has a number out of range")
    if type(recipe.kappa) not in (int, float) or not 0 <= recipe.kappa < math.inf:
        raise rejected("RECIPE", "its kappa is not a finite number >= 0")
    _check_diverse(recipe, items, schema)
    if recipe.draw in MODELS or parted:
        if recipe.order or (parted and recipe.draw in MODELS):
            raise rejected("RECIPE", "its order names tables that no row is drawn from")
        return recipe
    if sorted(recipe.order) != list(range(len(items))):
        raise rejected("RECIPE", "its order does not name each table once")
    if recipe.draw == "ancestral":
        _check_ancestral(recipe, items, schema)
    elif recipe.draw == "gibbs":
        if sorted(t.context.targets for t in items) != [(c,) for c in range(len(schema))]:
            raise rejected("RECIPE", "its Gibbs tables are not one a column")
    else:
        raise rejected("RECIPE", "its recipe draws in an unknown way")
    return recipe


def _check_diverse(recipe: Recipe, items: tuple[Table, ...], schema: Schema) -> None:
    # What a diverse column promises rests on its being drawn alone, by a table, and no one's context.
    drawn = {table.context.targets for table in items}
    contexts = {column for table in items for column in table.context.parents}
    for column, l in recipe.diverse:  # noqa: E741
        named = type(column) is int and 0 <= column < len(schema) and type(l) in (int, float)
        if not named or not 1 < l <= schema.sizes[column]:
            raise rejected("RECIPE", "its diversity names no column, or more levels than it has")
        if (column,) not in drawn or column in contexts or recipe.fallback == "reject":
            raise rejected("RECIPE", "its diversity does not hold for how the column is drawn")


def _check_ancestral(recipe: Recipe, items: tuple[Table, ...], schema: Schema) -> None:
    # A table whose parents were not drawn before draws them together with its targets.
    known: set[int] = set()
    for table in recipe.order:
        context = items[table].context
        fresh = set(context.targets) | (set(context.parents) - known)
        if set(context.targets) & known:
            raise rejected("RECIPE", "its order draws a column twice (a cycle)")
        if not isinstance(context.key, Radix) and not set(context.parents) <= known:
            raise rejected("RECIPE", "its order needs a hashed column before it is drawn")
        known |= fresh
    if known != set(range(len(schema))):
        raise rejected("RECIPE", "its tables do not draw every column")


def _file_name(name: object) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise rejected("NAME", "it lists a table file with a name that is not ours")
    return name
