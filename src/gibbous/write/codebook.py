"""The codebook of a release: what every column and code means, from its public schema, as one page.

The page asks for nothing outside itself, runs no script, and needs no library to be made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from gibbous.core.schema import Column, Schema

FIRST = 6  # levels in the overview
MOST = 20_000  # codes that are listed on the page; schema.toml lists all of them
COLUMNS = ("column", "kind", "codes", "values", "missing", "not declared")
_HIDDEN = {
    **{code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))},
    # Marks that reverse or hide text, and halves of characters, which no file can hold.
    **{code: f"\\u{code:04x}" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))},
    **{code: f"\\u{code:04x}" for code in range(0xD800, 0xE000)},
}
_HEAD = """\
<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">"""
_STYLE = """
:root { color-scheme: light dark; --line: #8886; }
body { margin: 0 auto; max-width: 60rem; padding: 0 1.25rem 3rem; overflow-wrap: anywhere;
  font: 1rem/1.55 system-ui, "Segoe UI", "Liberation Sans", Arial, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
div { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; line-height: 1.4; }
th, td { text-align: left; vertical-align: top; padding: .3rem .9rem .3rem 0; font-weight: normal;
  border-bottom: 1px solid var(--line); min-width: 6rem; overflow-wrap: break-word; }
thead th { border-bottom-width: 2px; font-weight: 600; }
th[scope=row], summary { font-weight: 600; }
summary { cursor: pointer; padding: .3rem 0; }
@media print { details::details-content { content-visibility: visible; } }
"""


def codebook_html(schema: Schema) -> str:
    """The page, HTML with no outside request.

    Args:
        schema: of the release; public.
    """
    title = f"Codebook of {schema.name}" if schema.name else "Codebook"
    return "\n".join(
        (
            _HEAD,
            f"<title>{_shown(title)}</title><style>{_STYLE}</style></head><body>",
            f"<h1>{_text(title)}</h1>",
            *(f"<p>{_text(sentence)}</p>" for sentence in _opening(schema)),
            *_table("Columns", COLUMNS, overview(schema)),
            *_codes(schema),
            *_impossible(schema),
            "</body></html>\n",
        )
    )


def overview(schema: Schema) -> Iterator[tuple[str, str, int, str, str, str]]:
    """One row a column: name, kind, number of codes, values, missing, facts that were not declared."""
    for column in schema:
        facts = ", ".join(f"{fact} ({source})" for fact, source in column.sources)
        missing = "a level of its own" if column.missing else "none"
        yield column.name, column.kind, column.size, _values(column), missing, facts or "-"


def combinations(schema: Schema) -> Iterator[str]:
    """Each declared impossible combination as a sentence."""
    for rule in schema.impossible:
        yield " and ".join(_these(schema[name], codes) for name, codes in rule.where)


def _opening(schema: Schema) -> Iterator[str]:
    columns = "1 column" if len(schema) == 1 else f"{len(schema):,} columns"
    unit = f" The privacy unit is {schema.unit.words()}." if schema.unit else ""
    yield f"{columns}.{unit} This page is made from schema.toml alone: it holds no count and no row."
    yield (
        "Declared facts were known without looking at the records; discovered ones were paid for; "
        "inferred ones were read off the records, and no guarantee covers them."
    )
    yield (
        "Codes are the numbers that the noisy tables use, from 0. A bin holds its lower bound and not "
        "its upper one; the last bin of a column holds both."
    )


def _codes(schema: Schema) -> Iterator[str]:
    yield "<h2>Codes</h2>"
    left = MOST
    for column in schema:
        labels = column.labels()
        if len(labels) > left:
            yield f"<p>{_text(column.name)}: {len(labels):,} codes, listed in schema.toml.</p>"
            continue
        left -= len(labels)
        rows = enumerate(labels)
        yield f"<details><summary>{_text(column.name)} ({column.kind}, {len(labels):,})</summary>"
        yield from _table("", ("code", "bin" if column.binned else "level"), rows)
        yield "</details>"


def _impossible(schema: Schema) -> Iterator[str]:
    if schema.impossible:
        rows = ((sentence,) for sentence in combinations(schema))
        yield from _table("Combinations that cannot occur", ("combination",), rows)


def _table(title: str, head: Sequence[str], rows: Iterable[tuple[object, ...]]) -> Iterator[str]:
    if title:
        yield f"<h2>{_text(title)}</h2>"
    yield "<div><table><thead><tr>"
    yield "".join(f'<th scope="col">{_text(name)}</th>' for name in head) + "</tr></thead><tbody>"
    for first, *rest in rows:
        cells = "".join(f"<td>{_text(cell)}</td>" for cell in rest)
        yield f'<tr><th scope="row">{_text(first)}</th>{cells}</tr>'
    yield "</tbody></table></div>"


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


def _text(value: object) -> str:
    """A value inside the page: what is written from right to left does not turn its surroundings."""
    return f"<bdi>{_shown(f'{value:,}' if isinstance(value, int) else str(value))}</bdi>"


def _shown(text: str) -> str:
    return escape(text.translate(_HIDDEN))
