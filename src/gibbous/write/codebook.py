"""The codebook of a release: what every column and code means, from its public schema, as one page.

The page asks for nothing outside itself and runs no script.
"""

from __future__ import annotations

from collections.abc import Iterator

from gibbous.core.schema import Column, Schema
from gibbous.write.rendering import render

FIRST = 6  # levels in the overview
MOST = 20_000  # codes that are listed on the page; schema.toml lists all of them
TEXTS = ("column", "description", "measured in", "note")
COLUMNS = ("column", "label", "kind", "codes", "values", "missing", "not declared")


def codebook_html(schema: Schema) -> str:
    """The page, HTML with no outside request, of a public schema."""
    columns = "1 column" if len(schema) == 1 else f"{len(schema):,} columns"
    unit = f" The privacy unit is {schema.unit.words()}." if schema.unit else ""
    codes, left = [], MOST
    for column in schema:
        labels = column.labels()
        listed = len(labels) <= left
        left -= len(labels) if listed else 0
        meant = {str(level): text for level, text in column.level_labels}
        rows = [(code, label, meant.get(label, "")) for code, label in enumerate(labels)]
        heads = ("code", "bin" if column.binned else "level", "label")
        size = 3 if meant else 2
        codes.append((column, heads[:size], [row[:size] for row in rows], listed))
    page = render(
        "gibbous.write",
        "codebook.html",
        title=f"Codebook of {schema.name}" if schema.name else "Codebook",
        about=schema.description,
        texts=texts(schema),
        said=TEXTS,
        opening=f"{columns}.{unit} This page is made from schema.toml alone: it holds no count and no "
        "row.",
        columns=COLUMNS,
        overview=overview(schema),
        codes=codes,
        combinations=[(sentence,) for sentence in combinations(schema)],
        rules=[(rule.words(),) for rule in schema.rules],
    )
    return page + "\n"


def texts(schema: Schema) -> list[tuple[str, str, str, str]]:
    """One row a column of which the schema says more: name, description, unit of measurement, note."""
    rows = [(c.name, c.description or "", c.measured_in or "", c.note or "") for c in schema]
    return [row for row in rows if any(row[1:])]


def overview(schema: Schema) -> Iterator[tuple[str, str, str, int, str, str, str]]:
    """One row a column: name, label, kind, number of codes, values, missing, facts that were not declared."""
    for column in schema:
        facts = ", ".join(f"{fact} ({source})" for fact, source in column.sources)
        missing = "a level of its own" if column.missing else "none"
        shown = (column.size, _values(column), missing, facts or "-")
        yield column.name, column.label or "", column.kind, *shown


def combinations(schema: Schema) -> Iterator[str]:
    """Each declared impossible combination as a sentence."""
    for rule in schema.impossible:
        yield " and ".join(_these(schema[name], codes) for name, codes in rule.where)


def _values(column: Column) -> str:
    labels = column.labels()[: column.bins]
    if column.binned:
        whole = f"{labels[0].split(',')[0]},{labels[-1].rsplit(',', 1)[-1]}"
        count = "1 bin" if len(labels) == 1 else f"{len(labels):,} bins"
        clamp = "; values outside are moved to the bound" if column.clamp else ""
        return f"{whole} in {count}{clamp}"
    more = f", and {len(labels) - FIRST:,} more" if len(labels) > FIRST else ""
    rest = f"; {column.other}: all others" if column.other is not None else ""
    return ", ".join(labels[:FIRST]) + more + rest


def _these(column: Column, codes: tuple[int, ...]) -> str:
    labels = column.labels()
    shown = " or ".join(labels[code] for code in codes[:FIRST])
    more = f" or {len(codes) - FIRST:,} more" if len(codes) > FIRST else ""
    return f"{column.name} is {shown}{more}"
