"""`gibbous schema declare | suggest`: facts written into a schema file, and how many are left."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from gibbous.cli import show
from gibbous.cli.flags import ScreenFlags
from gibbous.core.errors import UsageError

if TYPE_CHECKING:
    from gibbous.core.schema import Schema
    from gibbous.read.declaring import Declared

Inferred = Annotated[
    list[str] | None,
    Option(
        "--inferred", help="A column that somebody looked at: its facts stay inferred; repeatable."
    ),
]
SchemaPath = Annotated[Path, Argument(metavar="SCHEMA", help="Schema file; it is edited in place.")]


@dataclass(frozen=True, eq=False, repr=False)
class FactFlags:
    """What is declared of a column."""

    kind: Annotated[
        str | None, Option("--kind", help="nominal, ordinal, binary, numeric or date.")
    ] = None
    levels: Annotated[str | None, Option("--levels", help="All that can occur: a,b,c.")] = None
    lower: Annotated[str | None, Option("--lower", help="Least value: number or day.")] = None
    upper: Annotated[str | None, Option("--upper", help="Greatest value: number or day.")] = None
    bins: Annotated[int | None, Option("--bins", min=1, help="Bins of equal width.")] = None
    cuts: Annotated[
        str | None, Option("--cuts", help="Between bins: 5,10; in place of --bins.")
    ] = None
    other: Annotated[
        str | None, Option("--other", help="Label of a level for all further values.")
    ] = None
    missing: Annotated[
        bool | None, Option("--missing/--no-missing", help="Whether a value can be absent.")
    ] = None
    label: Annotated[str | None, Option("--label", help="What the column is.")] = None
    measured_in: Annotated[str | None, Option("--measured-in", help="Unit, as years.")] = None
    levels_from: Annotated[
        Path | None,
        Option("--levels-from", help="Levels and labels of a codebook; of a .txt file, its lines."),
    ] = None
    inferred: Inferred = None
    all_of: Annotated[
        Path | None, Option("--all-of", help="Every fact of a codebook; without COLUMN, of all.")
    ] = None


def declare(
    schema: SchemaPath,
    given: FactFlags,
    screen: ScreenFlags,
    column: Annotated[str | None, Argument(help="Column.")] = None,
) -> None:
    """Declare facts of a column from public knowledge: the file is edited, comments stay."""
    text, known = _read(schema)
    if column is None and given.all_of is None:
        raise UsageError(
            "NOCOLUMN",
            "No column was named.",
            "Facts are declared of one column; --all-of FILE takes those of all columns.",
            f"Use `gibbous schema declare {show.quoted(schema)} COLUMN --lower 0 --upper 110`.",
        )
    facts = _as_seen(known, _facts(known, column, given), given.inferred)
    _write(schema, text, known, facts, screen)


def suggest(
    schema: SchemaPath,
    screen: ScreenFlags,
    accept: Annotated[
        bool, Option("--accept", help="Write the suggestions into the file.")
    ] = False,
    inferred: Inferred = None,
) -> None:
    """Suggest facts from names of columns and public lists (sex, month, state), and rules from names."""
    from gibbous.read.public_lists import suggestions
    from gibbous.read.rule_suggestions import as_comments, rule_suggestions

    text, known = _read(schema)
    found, rules = suggestions(known), rule_suggestions(known)
    if not screen.silent:
        for one in found:
            basis = "from its name" if one.by_name else "its drafted levels fit: stays inferred"
            show.line(f"  {one.column}: {_words(one.facts)} ({one.source}; {basis})")
        for rule in rules:
            show.line(f"  rule: {rule.words()} (from names alone: to be confirmed)")
    if accept and (found or rules):
        text += as_comments(rules, text)
        marked = [
            (s.column, s.facts if s.by_name else replace(s.facts, inferred=s.facts.named()))
            for s in found
        ]
        _write(schema, text, known, _as_seen(known, marked, inferred), screen)
        return
    if screen.json:
        rows = [{"column": s.column, "facts": _words(s.facts), "by_name": s.by_name} for s in found]
        told = {"path": str(schema), "suggestions": rows, "source": [s.source for s in found]}
        show.as_json(told | {"rules": [rule.words() for rule in rules]})
        return
    count = show.counted(len(found) + len(rules), "suggestion")
    more = "Check them against your codebook, then pass --accept; rules are written as comments."
    show.line(f"{schema}: {count}. {more if found or rules else ''}".rstrip())


def _as_seen(
    known: Schema, facts: list[tuple[str, Declared]], seen: list[str] | None
) -> list[tuple[str, Declared]]:
    """The facts, with those of columns that somebody looked at marked as read off the data."""
    names = {known[name].name for name in seen or ()}
    return [
        (name, replace(one, inferred=one.named()) if name in names else one) for name, one in facts
    ]


def _facts(known: Schema, column: str | None, given: FactFlags) -> list[tuple[str, Declared]]:
    from gibbous.cli.discovery_flags import lines_of
    from gibbous.read.declaring import Declared, typed_levels

    if given.all_of is not None:
        own = [flag for flag in (given.kind, given.levels, given.lower, given.upper) if flag]
        if own or given.levels_from is not None:
            raise UsageError(
                "FACTS",
                "--all-of was given with other facts.",
                "It takes every fact of the codebook.",
                "Declare the others with a second command.",
            )
        return _of_codebook(known, column, given.all_of)
    named, codebook = str(column), given.levels_from
    listed = [word.strip() for word in (given.levels or "").split(",") if word.strip()]
    if codebook is not None and codebook.suffix.lower() == ".txt":
        listed, codebook = lines_of("--levels-from", codebook), None
    texts = (("label", given.label), ("measured_in", given.measured_in))
    facts = Declared(
        given.kind,
        typed_levels(listed, known[named]),
        lower=given.lower,
        upper=given.upper,
        bins=given.bins,
        cuts=tuple(cut.strip() for cut in (given.cuts or "").split(",") if cut.strip()),
        other=given.other,
        missing=given.missing,
        texts=tuple((key, text) for key, text in texts if text),
    )
    if codebook is not None:
        stated = _of_codebook(known, named, codebook)[0][1]
        inferred = tuple(fact for fact in stated.inferred if fact == "levels")
        facts = replace(facts, levels=stated.levels, labels=stated.labels, inferred=inferred)
        if not facts.levels:
            raise _unstated(named, codebook, "levels")
    if facts == Declared():
        raise UsageError(
            "FACTS",
            f"Nothing was declared of column {named!r}.",
            "Facts are --kind, --levels, --other, --lower and --upper, --bins, --cuts, --missing.",
            "Pass one of them, or --all-of FILE.",
        )
    return [(named, facts)]


def _of_codebook(known: Schema, column: str | None, path: Path) -> list[tuple[str, Declared]]:
    """What a codebook states of one column, or of each that the schema has."""
    from gibbous.read.declaring import Declared, declared_of
    from gibbous.read.metadata.files import read_codebook

    facts: dict[str, Declared] = {}
    for one in read_codebook(path).variables:
        found = one.column()
        if found is not None:
            facts[one.name] = declared_of(found)
            if one.whole is None and one.missing is None:
                facts[one.name] = replace(facts[one.name], missing=None)
        else:
            texts = ((key, text) for key, text in one.public_texts().items() if text)
            facts[one.name] = Declared(texts=tuple(texts))
    names = known.names if column is None else (known[column].name,)
    chosen = [(name, facts[name]) for name in names if name in facts and facts[name] != Declared()]
    if not chosen:
        raise _unstated(column, path, "fact")
    return chosen


def _write(
    path: Path, text: str, known: Schema, facts: list[tuple[str, Declared]], screen: ScreenFlags
) -> None:
    from gibbous.cli.schema_verbs import write_text
    from gibbous.read.declaring import declare as write_fact

    for name, declared in facts:
        text, known = write_fact(text, name, declared)
    write_text(path, text, overwrite=True)
    if screen.json:
        from gibbous.cli.schema_verbs import summary

        show.as_json(summary(known) | {"path": str(path)})
        return
    show.line(f"{path}: {left_words(known, path)}")


def left_words(schema: Schema, path: Path) -> str:
    """How many facts are declared, and what to declare next."""
    from gibbous.read.declaring import next_steps, progress

    done, total = progress(schema)
    words = f"{done} of {total} facts are declared or paid for."
    if schema.unit is None:
        words += " The privacy unit is not: set [unit] in the file."
    steps = next_steps(schema, 1)
    if steps:
        name, flags = steps[0]
        words += f" Next: gibbous schema declare {show.quoted(path)} {show.quoted(name)} {flags}"
    return words


def _read(path: Path) -> tuple[str, Schema]:
    from gibbous.core.documents import read_text
    from gibbous.read.schema_file import MAX_BYTES, load_schema

    schema = load_schema(path)
    return read_text(path, MAX_BYTES), schema


def _words(facts: Declared) -> str:
    shown = ", ".join(str(level) for level in facts.levels[:8])
    more = f", and {len(facts.levels) - 8} more" if len(facts.levels) > 8 else ""
    span = f"{facts.lower} to {facts.upper}" if facts.lower is not None else f"{shown}{more}"
    return f"{facts.kind}, {span}"


def _unstated(column: str | None, path: Path, what: str) -> UsageError:
    where = f"column {column!r}" if column else "any column of the schema"
    return UsageError(
        "UNSTATED",
        f"{str(path)!r} states no {what} of {where}.",
        "Names in the codebook and in the schema are the same, letter by letter.",
        "Check the names, or give the facts as flags.",
    )
