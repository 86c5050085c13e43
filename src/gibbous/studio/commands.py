"""The commands that the studio runs, as a shell takes them, each beside the Python that does the same."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gibbous.read.declaring import Declared


@dataclass(frozen=True, slots=True)
class Command:
    """One command of gibbous: `words` are verb and arguments, `python` is the same in Python."""

    words: tuple[str, ...]
    python: str

    @property
    def shell(self) -> str:
        """As it is typed."""
        return shlex.join(("gibbous", *self.words))

    @property
    def verb(self) -> str:
        """Its first word."""
        return self.words[0]


def _python(call: str, *, before: str = "", reading: Sequence[str] = ()) -> str:
    lines = ["import gibbous as gb"]
    if reading:
        told = dict(zip(reading[::2], reading[1::2], strict=True))
        options = ", ".join(f"{flag[2:]}={text!r}" for flag, text in told.items())
        lines += [
            "from gibbous.read.source import ReadOptions",
            f"options = ReadOptions({options})",
        ]
    return "\n".join([*lines, *([before] if before else []), call])


def _options(reading: Sequence[str]) -> str:
    return ", options=options" if reading else ""


def draft(data: str, out: str, reading: Sequence[str]) -> Command:
    """Draft a schema from the data."""
    return Command(
        ("schema", "infer", data, "--out", out, "--overwrite", *reading),
        _python(f"schema = gb.infer_schema({data!r}{_options(reading)})", reading=reading),
    )


def bought(
    data: str,
    out: str,
    price: Mapping[str, str],
    unit: str,
    reading: Sequence[str],
    names: str = "",
) -> Command:
    """Buy a schema. `unit` is "row", or COLUMN:ROWS; `names` a file of them, for a table of a database."""
    person, _, most = unit.rpartition(":")
    known = ("--names", names) if names else ("--header-is-public",)
    protect = ("--id", unit) if person else ("--unit", "row")
    made = f'gb.Unit("person", {person!r}, {most})' if person else 'gb.Unit("row")'
    return Command(
        ("schema", "discover", data, "--out", out, "--overwrite", "--epsilon", price["epsilon"],
         "--delta", price["delta"], *protect, *known, *reading),
        _python(
            f"schema = gb.discover_schema({data!r}, known, epsilon={price['epsilon']}, "
            f"delta={price['delta']}{_options(reading)})",
            before="from gibbous.schema_discovery import plan_discovery\n"
            f"names = (...)  # the public header of the file\n"
            f"known = gb.Discovery(names, {made})\n"
            f"print(plan_discovery(known, epsilon={price['epsilon']}, delta={price['delta']}))",
            reading=reading,
        ),
    )  # fmt: skip


def imported(book: str, schema: str, seen: Sequence[str]) -> Command:
    """Take every fact of a codebook; those of columns that were looked at stay inferred."""
    return Command(
        ("schema", "declare", schema, "--all-of", book, *_inferred(seen)),
        _python(f"schema = gb.import_schema({book!r})"),
    )


def declared(schema: str, column: str, facts: Declared) -> Command:
    """Facts of one column. Labels of levels have no flag: Python writes them."""
    flags = [("--kind", facts.kind), ("--levels", ",".join(map(str, facts.levels))), ("--other", facts.other),
             ("--lower", facts.lower), ("--upper", facts.upper), ("--cuts", ",".join(facts.cuts)),
             ("--bins", facts.bins), ("--label", dict(facts.texts).get("label"))]  # fmt: skip
    words = [word for flag, value in flags if value for word in (flag, str(value))]
    if facts.missing is not None:
        words.append("--missing" if facts.missing else "--no-missing")
    given = ", ".join(
        f"{f.name}={getattr(facts, f.name)!r}"
        for f in fields(facts)
        if getattr(facts, f.name) != f.default
    )
    return Command(
        (
            "schema",
            "declare",
            schema,
            column,
            *words,
            *_inferred([column] if facts.inferred else []),
        ),
        _python(
            f"text, _ = declare(Path({schema!r}).read_text(), {column!r}, Declared({given}))\n"
            f"Path({schema!r}).write_text(text)",
            before="from pathlib import Path\nfrom gibbous.read.declaring import Declared, declare",
        ),
    )


def _inferred(seen: Sequence[str]) -> tuple[str, ...]:
    return tuple(word for name in seen for word in ("--inferred", name))


def suggested(schema: str, seen: Sequence[str]) -> Command:
    """Write what names of columns and public lists say; of columns looked at it stays inferred."""
    return Command(
        ("schema", "suggest", schema, "--accept", *_inferred(seen)),
        _python(
            f"found = suggestions(gb.load_schema({schema!r}))",
            before="from gibbous.read.public_lists import suggestions",
        ),
    )


def checked(schema: str, data: str, reading: Sequence[str]) -> Command:
    """Check the data against the schema."""
    return Command(
        ("schema", "check", schema, data, *reading),
        _python(
            f"encode(read_columns({data!r}, schema=schema{_options(reading)}), schema)",
            before="from gibbous.encode.encode import encode\n"
            "from gibbous.read.source import read_columns\n"
            f"schema = gb.load_schema({schema!r})",
            reading=reading,
        ),
    )


def planned(values: Mapping[str, Any], accept: bool) -> Command:
    """What a run costs, from the schema alone."""
    more = ", accept_inferred=True" if accept else ""
    return Command(
        ("plan", "--config", "release.toml", *(("--accept-inferred",) if accept else ())),
        _python(f"print(gb.plan({_method(values)}{more}))"),
    )


def synthesized(
    values: Mapping[str, Any], reading: Sequence[str], accept: bool, locked: bool = False
) -> Command:
    """Spend, and write the release."""
    more = ("--accept-inferred",) if accept else ()
    secret = ("--passphrase-file", "-") if locked else ()
    extra = ", accept_inferred=True" if accept else ""
    if values.get("output.sign"):
        extra += f", sign={values['output.sign']!r}"
    out = values.get("output.path", "release")
    return Command(
        ("synthesize", "--config", "release.toml", *more, *secret, *reading),
        _python(
            f"release = gb.synthesize({values.get('data')!r}, {_method(values)}, out={out!r}"
            f"{extra}{_options(reading)})",
            reading=reading,
        ),
    )


def _method(values: Mapping[str, Any]) -> str:
    words = [repr(values.get("schema", "schema.toml"))]
    words.append(repr(values.get("mechanism.name", "adaptive_gibbs")))
    for key in ("privacy.epsilon", "privacy.delta", "output.rows", "output.sets", "output.seed"):
        if key in values:
            words.append(f"{key.partition('.')[2]}={values[key]}")
    given = [k for k in values if k.startswith("mechanism.") and k != "mechanism.name"]
    words += [f"{key.partition('.')[2]}={values[key]!r}" for key in given]
    return ", ".join(words)


def verified(release: str, key: str = "") -> Command:
    """Check a release without the data; with a public key, who signed it, too."""
    words = ("verify", release, *(("--key", key) if key else ()))
    more = f", key={key!r}" if key else ""
    return Command(words, _python(f"print(gb.verify({release!r}{more}))"))


def public_report(release: str, key: str = "", locked: bool = False) -> Command:
    """The page of a release for everybody; the key of a signed one signs it again."""
    words = ("report", release, *(("--sign", key) if key else ()))
    more = f", sign={key!r}" if key else ""
    secret = ("--passphrase-file", "-") if locked else ()
    return Command((*words, *secret), _python(f"gb.report({release!r}{more})"))


def mapped(release: str, destination: str, coordinates: str, out: str) -> Command:
    """The flows to one destination on their map, made from the release and public places alone."""
    words = ("map", release, f"--destination={destination}", f"--coordinates={coordinates}")
    call = f"gb.flow_map({release!r}, {destination!r}, {coordinates!r}, {out!r}, overwrite=True)"
    return Command((*words, "--out", out, "--overwrite"), _python(call))


def evaluated(
    data: str,
    release: str,
    chosen: Mapping[str, Sequence[str]],
    holdout: str,
    reading: Sequence[str],
) -> Command:
    """Compare a release with the records; the page is internal."""
    words = ["evaluate", data, release, "--schema", f"{release}/schema.toml", "--out", "internal"]
    more = ""
    for name, columns in chosen.items():
        if columns:
            words += [word for column in columns for word in (f"--{name}", column)]
            more += f", {name}={list(columns)!r}"
    if holdout:
        words += ["--holdout", holdout]
        more += f", holdout={holdout!r}"
    return Command(
        (*words, *reading),
        _python(
            f"found = gb.evaluate({data!r}, {release!r}, {release + '/schema.toml'!r}{more}"
            f"{_options(reading)})\nfound.report('report.internal.html')",
            reading=reading,
        ),
    )


def inferred(
    release: str, formula: str, family: str, references: Sequence[tuple[str, str]] = ()
) -> Command:
    """Fit a model to every set, and combine; references are columns with the level to compare with."""
    flags = [word for name, level in references for word in ("--reference", f"{name}={level}")]
    more = f", reference={dict(references)!r}" if references else ""
    return Command(
        ("infer", "--family", family, *flags, "--", release, formula),
        _python(
            f"fit = load_release({release!r}).glm({formula!r}, {family!r}{more})\nprint(fit.summary())",
            before="from gibbous.infer import load_release",
        ),
    )


def compared() -> Command:
    """Methods side by side."""
    return Command(
        ("compare", "--config", "study.toml", "--out", "study"),
        _python(
            "plan = load('study.toml')\nstudy = gb.compare(plan.source, plan.schema, plan.methods, "
            "resume='study', **plan.settings)",
            before="from gibbous.frontier.study_file import load",
        ),
    )


def account(data: str, reading: Sequence[str]) -> Command:
    """What a data set has spent."""
    return Command(
        ("ledger", "show", data, *reading), _python("print(gb.Ledger.open().accounts())")
    )


def capped(data: str, epsilon: str, delta: str, reading: Sequence[str]) -> Command:
    """The most that a data set may ever spend."""
    return Command(
        ("ledger", "cap", data, "--epsilon", epsilon, "--delta", delta, *reading),
        _python(
            f"ledger.cap(ledger.dataset({data!r}), Fraction('{epsilon}'), Fraction('{delta}'), "
            "'add_remove')",
            before="from fractions import Fraction\nledger = gb.Ledger.open()",
        ),
    )


def named(data: str, nickname: str, reading: Sequence[str]) -> Command:
    """A nickname for a data set."""
    return Command(
        ("ledger", "name", data, nickname, *reading),
        _python(
            f"ledger.nickname(ledger.dataset({data!r}), {nickname!r})",
            before="ledger = gb.Ledger.open()",
        ),
    )


def new_key(path: str, name: str, locked: bool) -> Command:
    """A key to sign with."""
    secret = ("--passphrase-file", "-") if locked else ("--no-passphrase",)
    return Command(
        ("keys", "new", path, "--name", name, *secret),
        _python(f"new_key(Path({path!r}), {name!r}, getpass())",
                before="from getpass import getpass\nfrom pathlib import Path\n"
                "from gibbous.write.signature import new_key"),
    )  # fmt: skip
