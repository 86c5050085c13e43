"""`gibbous evaluate`: one call of the evaluation, its findings as a table, and both files of its report."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gibbous.cli import show
from gibbous.cli.progress import Bars
from gibbous.core.errors import UsageError
from gibbous.core.extras import require
from gibbous.core.finding import Finding
from gibbous.evaluation.findings import Findings

if TYPE_CHECKING:
    from gibbous.cli.flags import ReadingFlags, ScreenFlags
    from gibbous.cli.measuring_verbs import ComparedFlags, EvaluateFlags
    from gibbous.core.schema import Schema
    from gibbous.flows import Geography

REPORT, JSON = "report.internal.html", "findings.json"
ARROWS = {"lower": "\u2193", "higher": "\u2191", "near": "\u2192"}
REFERENCES = ("bootstrap", "holdout", "independent")
GROUPS = {
    "utility": "Utility: how well the synthetic rows stand for the real ones",
    "risk": "Risk: what the synthetic rows give away",
    "flows": "Flows: origins and distances, by destination",
}
CONFIDENTIAL = "Confidential: comparisons with real records, outside the guarantee of any release."


def run(
    wanted: EvaluateFlags, reading: ReadingFlags, out: Path | None, screen: ScreenFlags
) -> None:
    """Evaluate, print the findings, and write the report."""
    if (wanted.schema is None) == (wanted.geography is None):
        raise UsageError(
            "NOSCHEMA",
            "No schema was given." if wanted.schema is None else "Two schemas were given.",
            "Both tables are read under one declared schema, or, if they are flows, one geography.",
            "Pass --schema FILE; a release has its own in schema.toml. For flows: --geography FILE.",
        )
    if out is not None:
        require(("altair", "vl_convert"), "report")
    from gibbous.evaluation.evaluation import write_findings

    with _folder(out, wanted.real) as folder, Bars(quiet=screen.quiet, json=screen.json) as bars:
        bars.compiling()
        found = _findings(wanted, reading, bars)
        if folder is not None:
            bars("report", 0, 1)
            write_findings(found, folder / JSON)
            found.report(folder / REPORT)
    if screen.json:
        show.as_json(found.to_json() | {"path": str(out) if out else None})
        return
    if not screen.quiet:
        _details(found)
    where = (
        f"{show.quoted(out)} holds {REPORT} and {JSON}: keep them with the records."
        if out
        else f"Nothing was written; --out FOLDER writes {REPORT} and {JSON}."
    )
    show.line(f"{show.counted(len(found), 'finding')}. {CONFIDENTIAL} {where}")


def _findings(wanted: EvaluateFlags, reading: ReadingFlags, bars: Bars) -> Findings:
    releases = [path for path in wanted.synth if path.is_dir()]
    one = releases[0] if len(wanted.synth) == len(releases) == 1 else None
    return compared(
        wanted.real,
        one or list(wanted.synth),
        wanted,
        reading,
        bars,
        given=wanted.given,
        fraction=wanted.fraction,
        only=_split(wanted.only) or None,
    )


def compared(
    real: str,
    synthetic: Path | list[Path],
    flags: ComparedFlags,
    reading: ReadingFlags,
    bars: Bars,
    *,
    given: Sequence[str] | None = None,
    **more: Any,
) -> Findings:
    """Findings about rows, or about flows, with the report that they write; `more` is handed on."""
    from gibbous.reporting import evaluate_and_report

    schema: Schema | Geography
    if flags.geography is not None:
        from gibbous.flows import load_geography
        from gibbous.flows.geography_file import cuts_of

        schema = load_geography(flags.geography)
        if flags.cuts is not None:
            schema = replace(schema, cuts=cuts_of(flags.cuts))
        names = [schema.destination, schema.origin]
    else:
        from gibbous.read.schema_file import load_schema

        assert flags.schema is not None, "checked before"
        if flags.cuts is not None:
            raise UsageError(
                "CUTS",
                "--cuts was given without --geography.",
                "It cuts the trips of flows, whose places a geography declares.",
                "Leave it out, or pass --geography FILE.",
            )
        schema = load_schema(flags.schema)
        names = list(schema.names)
    return evaluate_and_report.evaluate(
        real,
        synthetic,
        schema,
        keys=_columns(flags.keys, names),
        sensitive=_columns(flags.sensitive, names) or None,
        targets=_columns(flags.targets, names),
        formulas=flags.formula or (),
        given=_columns(given, names),
        holdout=flags.holdout,
        seed=flags.seed,
        progress=bars,
        options=reading.options(),
        **more,
    )


@contextlib.contextmanager
def _folder(out: Path | None, source: str) -> Iterator[Path | None]:
    if out is None:
        yield None
        return
    from gibbous.write import durable_files
    from gibbous.write.output_path import check_output

    target = check_output(out, source=source)
    fresh = target.with_name(f".{target.name}.partial")
    durable_files.remove_folder(fresh)
    durable_files.make_folder(fresh)
    try:
        yield fresh
        durable_files.move_into_place(fresh, target, overwrite=False)
    finally:
        durable_files.remove_folder(fresh)


def _columns(values: Sequence[str] | None, names: Sequence[str]) -> tuple[str, ...]:
    # A name may hold a comma: what is a column as a whole is not split.
    found = [[v] if v in names else _split([v]) for v in values or ()]
    return tuple(name for part in found for name in part)


def _split(values: Sequence[str] | None) -> tuple[str, ...]:
    return tuple(
        part.strip() for value in values or () for part in value.split(",") if part.strip()
    )


def _details(found: Findings) -> None:
    facts = found.facts
    keys = facts.get("keys", ())
    for sentence in _flows(facts) if "cuts" in facts else _compared(facts):
        show.line(sentence)
    for group, title in GROUPS.items():
        mine = [one for one in found if one.group == group]
        if mine:
            show.line()
            show.line(title)
            _table(mine, keys)
    show.line()
    for sentence in _notes(found):
        show.line(f"  {sentence}")
    show.line(f"  {_legend()}")


def _compared(facts: Mapping[str, Any]) -> Iterator[str]:
    sets, held = facts["rows"]["synthetic"], facts["rows"]["holdout"]
    yield (
        f"{show.counted(facts['rows']['real'], 'real record')}; "
        f"{show.counted(len(sets), 'synthetic set')} of {show.counted(sets[0], 'row')}; "
        + (f"{show.counted(held, 'holdout record')}." if held else "no holdout.")
    )
    if facts["keys"]:
        wanted = f"; sensitive: {', '.join(facts['sensitive'])}" if facts["sensitive"] else ""
        yield f"  keys: {', '.join(facts['keys'])}{wanted}"
    for release in facts["releases"]:
        yield f"  made by {release['method']}: {release['words']}"


def _flows(facts: Mapping[str, Any]) -> Iterator[str]:
    people, pairs = facts["rows"], facts["pairs"]
    yield (
        f"{people['real']:,} real people in {show.counted(pairs['real'], 'pair')}; "
        f"{show.counted(len(people['synthetic']), 'synthetic set')} of {people['synthetic'][0]:,} in "
        f"{show.counted(pairs['synthetic'][0], 'pair')}."
    )
    places, (short, long) = facts["places"], facts["cuts"]
    yield (
        f"  {show.counted(places['destinations'], 'destination')}, "
        f"{show.counted(places['origins'], 'origin')}; short is below {short:.4g} miles, long from "
        f"{long:.4g}"
    )
    if facts["without_coordinates"]:
        yield f"  {facts['without_coordinates']:,} real people have a place without coordinates"


def _table(mine: Sequence[Finding], keys: Sequence[str]) -> None:
    rows = []
    for one in mine:
        null = dict(one.null)
        arrow = ARROWS[one.better] if _can_print(ARROWS[one.better]) else one.better
        also = [f"{name} {_number(v)}" for name, v in one.null if name not in REFERENCES]
        rows.append(
            (
                one.name + _about(one, keys),
                _number(one.value),
                f"{arrow} {_number(one.ideal)}" if one.better == "near" else arrow,
                " to ".join(map(_number, one.interval or ())),
                *(_number(null.get(name)) for name in REFERENCES),
                ", ".join(also),
            )
        )
    show.table(("finding", "value", "better", "95 %", *REFERENCES, "also"), rows)


def _about(one: Finding, keys: Sequence[str]) -> str:
    # Keys are told once, above; of a formula the first column, its target, is enough (a key, perhaps).
    known = keys if one.group == "risk" else ()
    columns = [name for name in one.subject if name not in known]
    if not columns:
        return ""
    return f" ({columns[0]}{', ...' if len(columns) > 1 else ''})"


def _legend() -> str:
    if not _can_print("".join(ARROWS.values())):
        return "References are other tables scored in the same way; there are no thresholds."
    arrows = ", ".join(
        f"{ARROWS[name]} {words}"
        for name, words in [
            ("lower", "lower is better"),
            ("higher", "higher is better"),
            ("near", "nearer to the number is better"),
        ]
    )
    return f"{arrows}. References are other tables scored in the same way; there are no thresholds."


def _notes(found: Findings) -> Iterator[str]:
    """What to know to read the table: notes of findings that are not defined, and what was left out."""
    notes: dict[str, list[str]] = {}
    for one in found:
        if math.isnan(one.value) and one.note:
            notes.setdefault(one.note, []).append(one.name)
    for note, names in notes.items():
        yield f"{', '.join(dict.fromkeys(names))}: {note}"
    needs: dict[str, list[str]] = {}
    for name, need in found.facts.get("left_out", {}).items():
        needs.setdefault(need, []).append(name)
    for need, names in needs.items():
        yield f"left out, because they need {need}: {', '.join(names)}"


def _number(value: float | None) -> str:
    if value is None or math.isnan(value):
        return "-"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 1e-4 or value == 0 else f"{value:.1e}"


def _can_print(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
