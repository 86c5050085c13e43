"""Audit of the words: neighbors are built from the sentences that METHODS.md prints, and held to them.

Checks that build neighbors from the unit of the schema share its mistakes: a table of counts whose page
says "one row" passes them all. Here a reader takes the page and the file, leaves out (or replaces) what
the page says is protected, and the two files must be as near as what was paid for, and no farther.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from gibbous.contract.cases import Neighbors, binary_schema, secret
from gibbous.contract.coupled import coupled
from gibbous.contract.losses import short_of
from gibbous.contract.runs import relation_of
from gibbous.core.claim import Claim, Kind, Relation
from gibbous.core.errors import PrivacyRefused
from gibbous.core.protocols import Engine, Mechanism
from gibbous.core.schema import Schema, Unit, UnitKind
from gibbous.disintegrate import engine
from gibbous.flows import FlowEngine, Geography, coarse, flow_schema, places
from gibbous.privacy import accountant
from gibbous.structure.contexts import joint
from gibbous.write.certificate import Facts
from gibbous.write.release_texts import methods_text

Table = Mapping[str, Sequence[str | int]]
KEY = bytes(32)  # of fingerprints that nobody looks at
CROWD = 60  # records that one row of a table of counts may stand for
MOST = 3  # rows of a person
SLACK = 1 + 1e-9


@dataclass(frozen=True, slots=True)
class Promise:
    """What a page says is protected, from what, and at which price.

    Attributes:
        unit: row, record of a pair, or person.
        column: that names persons; empty for others.
        most: rows of a person, at most; 1 for others.
        fixed: columns that both versions of the data share.
        claim: the price in the first line: kind, epsilon, delta or rho, relation.
    """

    unit: UnitKind
    column: str
    most: int
    fixed: tuple[str, ...]
    claim: Claim


@dataclass(frozen=True, slots=True)
class Form:
    """One way in which records come: a file, its schema, and the engine that reads it.

    Attributes:
        table: columns by name, as a file has them.
        count: name of the column of counts; empty where each row is one record.
    """

    name: str
    table: Table
    schema: Schema
    engine: Callable[[], Engine]
    count: str = ""


def forms(name: str = "local") -> tuple[Form, ...]:
    """Rows, persons, and flows with counts, one row each and by region."""
    rows = _binary([[0, 0, 0]] * 5 + [[1, 1, 1], [0, 1, 0]])
    # Persons with one row, with as many as they may have, and with more: these are alike, so that both
    # versions keep the same ones, whichever are drawn.
    many = [[1, 1, 1], [0, 1, 1], [1, 0, 1]] + [[0, 1, 0]] * 2 * MOST
    people = _binary([[0, 0, 0]] * 4 + many)
    who = [*"abcd", *("e" * MOST), *("f" * 2 * MOST)]
    person = replace(binary_schema(3), unit=Unit("person", "who", MOST))
    homes = [f"h{k}" for k in range(4)]
    regions = {"county": ["south", "south", "north", "north"]}
    origins, work = places(homes, parents=regions), places(["mill", "school"])
    counted = Geography(origins, work, "home", "work", "jobs")
    pairs: Table = {
        "work": ["mill", "mill", "school"], "home": ["h0", "h1", "h3"], "jobs": [CROWD, 1, 5],
    }  # fmt: skip
    single: Table = {"work": ["mill"] * 6 + ["school"], "home": ["h0"] * 5 + ["h1", "h3"]}

    def flows(name: str, table: Table, geography: Geography, level: str = "") -> Form:
        seen = coarse(geography, level) if level else geography
        maker = lambda: FlowEngine(geography, level=level)  # noqa: E731
        return Form(name, table, flow_schema(seen), maker, geography.count or "")

    return (
        Form("rows", rows, binary_schema(3), lambda: engine(name)),
        Form("persons", {"who": who, **people}, person, lambda: engine(name)),
        flows("flows with counts", pairs, counted),
        flows("flows, one row each", single, replace(counted, count=None)),
        flows("flows with counts, by region", pairs, counted, "county"),
    )


def unkept(
    mechanism: Mechanism, form: Form, *, sets: int = 1, rows: int | None = None, text: str = ""
) -> str:
    """The promise of a page that a run does not keep, in words; empty where it keeps them all.

    Args:
        mechanism: one with a claim of differential privacy.
        text: of METHODS.md; what this version writes for such a run when empty.
    Returns:
        Empty, too, where the method refuses such a table.
    """
    try:
        total = mechanism.plan(form.schema, rows, sets).total
    except PrivacyRefused:
        return ""  # a method may refuse persons with several rows
    promise = promised(text or page(mechanism, form.schema, rows=rows, sets=sets))
    told = _understated(promise, total)
    if told:
        return f"{form.name}: {told}"
    for pair in pairs(promise, form):
        told = _apart(promise, pair)
        if not told and mechanism.about.releases == "tables":
            told = _uncovered(mechanism, pair, promise.claim, sets)
        if told:
            return f"{form.name}, {pair.name}: {told}"
    return ""


def page(mechanism: Mechanism, schema: Schema, *, rows: int | None = None, sets: int = 1) -> str:
    """METHODS.md of a run, as far as it is known before the run."""
    plan = mechanism.plan(schema, rows, sets)
    facts = Facts(schema, plan, mechanism.about, relation_of(mechanism))
    return methods_text(facts, None, sets=sets, files={})


def promised(text: str) -> Promise:
    """Read METHODS.md: the first line in bold, and the two sentences about what is compared.

    Raises:
        ValueError: they are not there, or contradict each other.
    """
    plain = " ".join(re.sub(r"\\(.)", r"\1", text).split())
    head = re.search(
        r"\*\*(?:epsilon = (?P<e>\S+?)(?:, delta = (?P<d>\S+))?|rho = (?P<r>\S+) \(zero\S+)"
        r"(?P<p> \(probabilistic\))? in total \((?P<relation>add or remove|replace) one",
        plain,
    )
    about = re.search(
        r"Protected is any one (?:(?P<row>row)|(?P<record>counted record of a pair)|"
        r"person \(column (?P<column>.+?), at most (?P<most>\d+) rows of each\)): ",
        plain,
    )
    versions = re.search(
        r"Two versions of the data are compared: the data as they are, and the data "
        r"(?P<how>without it|with other values in its place)(?:, (?P<fixed>.+?) unchanged)?\.",
        plain,
    )
    if head is None or about is None or versions is None:
        raise ValueError("the page does not say what is protected, from what, and at which price")
    relation: Relation = "add_remove" if versions["how"] == "without it" else "replace_one"
    if (relation == "add_remove") != (head["relation"] == "add or remove"):
        raise ValueError("the first line of the page and its sentences have different relations")
    kind: Kind = "zcdp" if head["r"] else "approximate" if head["d"] else "pure"
    fixed = tuple(versions["fixed"].split(", ")) if versions["fixed"] else ()
    claim = Claim(
        "probabilistic" if head["p"] else kind,
        epsilon=Fraction(head["e"] or 0),
        delta=Fraction(head["d"] or 0),
        rho=Fraction(head["r"] or 0),
        relation=relation,
        fixed=fixed,
    )
    unit: UnitKind = "row" if about["row"] else "record" if about["record"] else "person"
    return Promise(unit, about["column"] or "", int(about["most"] or 1), fixed, claim)


def pairs(promise: Promise, form: Form) -> Iterator[Neighbors]:
    """The file, and each version of it that the words call a neighbor, as the engine counts them."""
    whole = codes(form, form.table)
    for name, table in _versions(promise, form):
        yield Neighbors(name, form.schema, promise.claim.relation, whole, codes(form, table))


def codes(form: Form, table: Table) -> np.ndarray:
    """Codes (rows, columns) of what the form's engine counts in a table, in the order of cells."""
    import polars as pl

    reader = form.engine()
    try:
        reader.scan(pl.DataFrame(table), form.schema, key=KEY)
        cells = reader.tally((joint(form.schema, "seen"),))[0].cells
    finally:
        reader.close()
    levels: np.ndarray = cells.levels.astype(np.int64)  # type: ignore[union-attr]
    each = np.stack(np.unravel_index(levels, form.schema.sizes), axis=1)
    return np.repeat(each, cells.values, axis=0)


def _versions(promise: Promise, form: Form) -> Iterator[tuple[str, Table]]:
    """Every unit of the file in turn, left out or with other values; equal ones once."""
    table, names = form.table, list(form.table)
    lines = list(zip(*table.values(), strict=True))
    place = names.index(promise.column) if promise.unit == "person" else -1
    marks = [line[place] for line in lines] if promise.unit == "person" else lines
    for mark in dict.fromkeys(marks):
        mine = [i for i, other in enumerate(marks) if other == mark]
        if promise.unit != "person":
            mine = mine[:1]
        rest = [line for i, line in enumerate(lines) if i not in mine]
        unit = [lines[i] for i in mine]
        if promise.unit == "record" and form.count:
            at = names.index(form.count)
            left = int(unit[0][at]) - 1
            rest += [_with(unit[0], at, left)] if left else []
            unit = [_with(unit[0], at, 1)]
        what = {"row": "a row", "record": "a record", "person": "a person"}[promise.unit]
        if promise.claim.relation == "add_remove":
            yield f"{what} left out", _table(names, rest)
            continue
        for step in (1, 2):
            moved = [_moved(line, form, promise.fixed, step) for line in unit]
            yield f"{what} with other values", _table(names, rest + moved)


def _understated(promise: Promise, total: Claim) -> str:
    """How the printed price, relation or public columns are not those that are charged; else empty."""
    try:
        # What was printed, with room for the last digit of a float.
        room = {n: getattr(promise.claim, n) * Fraction(SLACK) for n in ("epsilon", "rho")}
        covered = accountant.within(replace(promise.claim, **room), [total])
    except PrivacyRefused as error:
        return error.wrong
    said = f"the page prints {promise.claim.amount()}, {total.amount()} is charged"
    return "" if covered else said


def _apart(promise: Promise, pair: Neighbors) -> str:
    """How two versions differ by more than the promise's price was made for, in words; else empty."""
    sizes, most = pair.schema.sizes, pair.schema.cells
    one, two = (
        np.bincount(np.ravel_multi_index(tuple(values.T), sizes), minlength=most)
        for values in (pair.one, pair.two)
    )
    gone, come = (int(np.maximum(d, 0).sum()) for d in (one - two, two - one))
    unit = pair.schema.unit
    most = min(promise.most, unit.max_rows if unit else 1)
    if promise.claim.relation == "add_remove" and min(gone, come):
        return f"{gone} records go and {come} come, where one unit is left out"
    if max(gone, come) > most:
        return f"{max(gone, come)} records change, and the price is made for {most}"
    for name in promise.fixed:
        column = pair.schema.index(name)
        if not np.array_equal(np.sort(pair.one[:, column]), np.sort(pair.two[:, column])):
            return f"column {name} changes, which the price leaves out"
    return ""


def _moved(
    line: tuple[str | int, ...], form: Form, fixed: Sequence[str], step: int
) -> tuple[str | int, ...]:
    """A line with other values in the columns of the schema that are not fixed."""
    for at, name in enumerate(form.table):
        if name in form.schema.names and name not in fixed:
            levels: list[Any] = list(form.schema[name].levels)
            if line[at] not in levels:  # by region: the file has places, the schema has not
                levels = list(dict.fromkeys(form.table[name]))
            line = _with(line, at, levels[(levels.index(line[at]) + step) % len(levels)])
    return line


def _with(line: tuple[str | int, ...], at: int, value: str | int) -> tuple[str | int, ...]:
    return (*line[:at], value, *line[at + 1 :])


def _table(names: Sequence[str], lines: Sequence[tuple[str | int, ...]]) -> Table:
    return {name: [line[at] for line in lines] for at, name in enumerate(names)}


def _binary(values: list[list[int]]) -> Table:
    return {f"x{j}": [("no", "yes")[row[j]] for row in values] for j in range(3)}


def _uncovered(mechanism: Mechanism, pair: Neighbors, claim: Claim, sets: int) -> str:
    """How purchases of a coupled run on two versions cost more than the page says, in words; else empty."""
    one, two = (secret(pair.schema, values) for values in _aligned(pair.one, pair.two))
    run = coupled(mechanism, one, two, sets=sets)
    return run.uncovered or short_of(claim, run.losses)


def _aligned(one: np.ndarray, two: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same records, those that both versions have first and at the same places."""
    sides = [[tuple(row) for row in values.tolist()] for values in (one, two)]
    both = list((Counter(sides[0]) & Counter(sides[1])).elements())
    rest = [list((Counter(side) - Counter(both)).elements()) for side in sides]
    aligned = [np.array(both + own, dtype=np.int64).reshape(-1, one.shape[1]) for own in rest]
    return aligned[0], aligned[1]
