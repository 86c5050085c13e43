"""The named checks that every mechanism passes: api, privacy, output, limits."""

from __future__ import annotations

import dataclasses
import inspect
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from gibbous.contract.blind import differing
from gibbous.contract.cases import Case, binary_schema, cases, neighbors, secret, uneven
from gibbous.contract.coupled import uncovered
from gibbous.contract.random_pairs import trials
from gibbous.contract.runs import default, relation_of, relations, release
from gibbous.contract.words import forms, unkept
from gibbous.core.about import About
from gibbous.core.claim import Claim
from gibbous.core.codes import Codes
from gibbous.core.context import Context
from gibbous.core.errors import GibbousError, ParameterError
from gibbous.core.params import as_json, describe
from gibbous.core.protocols import Mechanism
from gibbous.core.request import Privacy
from gibbous.core.schema import Schema
from gibbous.core.tables import Dense, Tables
from gibbous.disintegrate.records import LocalEngine
from gibbous.privacy import accountant
from gibbous.privacy.curator import Curator
from gibbous.privacy.spend import curator_of, spend

Check = Callable[[type[Any]], None]
ROWS = 12  # rows asked of methods that pay by the row
FITS = 15  # fits, at most, until one differs from the first


class ContractError(AssertionError):
    """A mechanism broke the contract; the text says which part and why."""


@dataclass(frozen=True, slots=True)
class Named:
    """One check: its group, its name as a sentence, and what it does."""

    group: str
    name: str
    run: Check


def all_checks() -> Iterator[Named]:
    """Every check, in the order api, privacy, output, limits."""
    for group, found in (
        ("api", _API),
        ("privacy", _PRIVACY),
        ("output", _OUTPUT),
        ("limits", _LIMITS),
    ):
        for check in found:
            yield Named(group, check.__name__.strip("_").replace("_", " "), check)


def rows_for(mechanism: Mechanism) -> int | None:
    """Output rows to ask for: the noisy number where rows are free, ROWS where they are paid."""
    return None if mechanism.about.releases == "tables" else ROWS


# --- api


def _equal_by_value_and_frozen(kind: type[Any]) -> None:
    one, two = kind(), kind()
    _must(one == two and hash(one) == hash(two), "two instances with the same parameters differ")
    for field in dataclasses.fields(one):
        try:
            setattr(one, field.name, getattr(one, field.name))
        except (dataclasses.FrozenInstanceError, AttributeError, TypeError):
            continue
        raise ContractError(f"parameter {field.name} can be assigned: use a frozen dataclass")


def _json_round_trip(kind: type[Any]) -> None:
    one = kind()
    loaded = json.loads(json.dumps(as_json(one)))
    known = {p.name for p in describe(kind)}
    values = {k: _frozen(v) for k, v in loaded.items() if k in known}
    _must(kind(**values) == one, "parameters do not survive JSON")
    _must(type(one).__name__ in repr(one), "repr does not name the class")


def _bad_parameters_give_the_three_part_message(kind: type[Any]) -> None:
    tried = 0
    for info in describe(kind):
        for bad in (float("nan"), -1.0, "nonsense"):
            try:
                kind(**{info.name: bad})
            except ParameterError as error:
                tried += 1
                complete = info.name in error.wrong and error.allowed and error.fix
                _must(bool(complete), "a part is missing")
            except GibbousError as error:
                _must(bool(error.wrong and error.allowed and error.fix), "a part is missing")
                tried += 1
    if describe(kind):
        _must(tried > 0, "no bad value is refused: validate with core.params.check")


def _the_card_and_the_docstring_are_complete(kind: type[Any]) -> None:
    about = kind.about
    _must(isinstance(about, About), "`about` is not an About")
    for field in (f for f in dataclasses.fields(About) if f.name != "shared"):
        _must(bool(getattr(about, field.name)), f"about.{field.name} is empty")
    text = inspect.getdoc(kind) or ""
    _must("Guarantee:" in text and "Source:" in text, "the docstring lacks Guarantee: or Source:")
    _must(all(p.help for p in describe(kind)), "a parameter has no help")


# --- privacy


def _plan_states_the_whole_cost_before_data(kind: type[Any]) -> None:
    one = default(kind)
    plan = one.plan(binary_schema(), 40, 3)
    _must(plan.mechanism == one.about.name, "plan.mechanism is not the registered name")
    _must(plan.claim.kind == one.about.kind or plan.total.kind == one.about.kind, "kinds differ")
    _must(plan.total.relation == relation_of(one), "plan and `relation` disagree")
    if plan.claim.is_dp and plan.claim.unit == "row":
        _must(
            plan.total.epsilon >= plan.claim.epsilon * 120, "120 rows cost less than 120 times one"
        )
    if plan.total.is_dp and one.about.releases == "rows":
        single = one.plan(binary_schema(), 120, 1).total
        _must(plan.total.epsilon >= single.epsilon, "3 sets of 40 rows cost less than 120 rows")
    if plan.total.is_dp and plan.spends:
        spends = [s.claim for s in plan.spends]
        _must(accountant.within(plan.total, spends), "the listed spends exceed the total")
    json.dumps(plan.to_json())


def _the_run_pays_no_more_than_the_plan(kind: type[Any]) -> None:
    one = default(kind)
    spy = _Spy(_typical())
    rows = rows_for(one)
    plan = one.plan(spy.case.schema, rows)
    with curator_of(Privacy(spy.case.schema, one), plan, spy) as curator:
        one.run(curator, rows)
    _must(len(curator.spent) > 0, "nothing was paid")
    if plan.total.is_dp:
        _must(accountant.within(plan.total, curator.spent), "more was paid than planned")
        for name in ("epsilon", "delta", "rho"):  # what a group costs rests on the listed parts
            paid, told = (
                sum(getattr(claim, name) for claim in claims)
                for claims in (curator.spent, [s.claim for s in plan.spends])
            )
            _must(paid <= told or not plan.spends, f"more {name} was paid than the plan lists")
        _must(spy.first_tally_after_payment, "counts were taken before they were paid for")


def _a_smaller_budget_is_refused_before_counting(kind: type[Any]) -> None:
    one = default(kind)
    spy = _Spy(_typical())
    rows = rows_for(one)
    plan = one.plan(spy.case.schema, rows)
    total = plan.total
    if not total.is_dp:
        return
    less = dataclasses.replace(
        total, epsilon=total.epsilon / 10**6, rho=total.rho / 10**6, delta=total.delta / 10**6
    )
    try:
        spend(Privacy(spy.case.schema, one), dataclasses.replace(plan, total=less), spy)
    except GibbousError:
        _must(spy.tallies == 0, "records were counted although the budget did not cover it")
        return
    raise ContractError("a millionth of the budget was enough: the run does not pay what it plans")


def _more_epsilon_is_a_larger_claim(kind: type[Any]) -> None:
    if "epsilon" not in {p.name for p in describe(kind)}:
        return
    schema = binary_schema()
    totals = [default(kind, epsilon=e).plan(schema, 40).total for e in (0.5, 1.0, 2.0)]
    _must(
        totals[0].epsilon < totals[1].epsilon < totals[2].epsilon,
        "the claim does not grow with epsilon",
    )


def _after_the_run_the_curator_is_closed_to_the_method(kind: type[Any]) -> None:
    one = default(kind)
    case = _typical()
    rows = rows_for(one)
    engine = LocalEngine.from_codes(case.codes())
    with curator_of(Privacy(case.schema, one), one.plan(case.schema, rows), engine) as curator:
        output = one.run(curator, rows)
    try:
        one.run(curator, rows)
    except GibbousError:
        _must("secret" not in repr(output), "the output holds something secret")
        return
    raise ContractError("the method could read records after the curator was closed")


def _a_key_that_no_record_has_looks_like_zeros(kind: type[Any]) -> None:
    """Dense tables list every cell, whatever the records are."""
    one = default(kind)
    case = _typical()
    outputs = [release(one, case.schema, v, rows_for(one)) for v in (case.values, case.values[:3])]
    for output in outputs:
        if not isinstance(output, Tables):
            return
        for table in output.published():
            if table.context.support == "dense":
                _must(isinstance(table.cells, Dense), "a dense table does not list every cell")
                _must(
                    table.cells.values.shape == (table.context.keys, table.context.levels),
                    "a dense table has the wrong shape",
                )
            else:
                _must(
                    table.noise.threshold is not None, "seen keys are released without a threshold"
                )


def _records_reach_the_output_only_by_noise_choices_and_paid_draws(kind: type[Any]) -> None:
    """With fixed answers in place of those, two neighbors (and any order of records) look the same."""
    one = default(kind)
    for pair in (*neighbors(relation_of(one), 6), uneven(relation_of(one))):
        if one.plan(pair.schema, ROWS).total.is_dp:
            told = differing(one, pair, rows_for(one))
            _must(not told, f"{told} shows although noise, choices and draws are fixed")


def _every_purchase_covers_what_it_shows_of_neighbors(kind: type[Any]) -> None:
    """Exact counts of neighbors, constructed and random, against the noise and the draws of each purchase."""
    for relation in relations(kind):
        one = default(kind, relation=relation, delta=0.01)
        if one.plan(binary_schema(), ROWS).total.is_dp:
            told = uncovered(one, relation, rows_for(one))
            _must(not told, f"under {relation}, {told}")
    for trial in trials(kind, 3):
        told = trial.run().words
        _must(not told, f"{trial.mechanism}: {told}")


def _the_words_of_the_page_are_kept(kind: type[Any]) -> None:
    """Neighbors as METHODS.md describes them, of rows, persons and flows, against the price it prints."""
    one = default(kind, delta=0.01)
    if not one.plan(binary_schema(), ROWS).total.is_dp:
        return
    for form in forms():
        told = unkept(one, form, rows=rows_for(one))
        _must(not told, f"METHODS.md promises more than is kept: {told}")


# --- output


def _rows_and_values_are_as_asked(kind: type[Any]) -> None:
    for case in cases():
        one = default(kind)
        rows = _draw(one, case, 7)
        _must(rows.values.shape == (7, len(case.schema)), f"wrong shape on {case.name!r}")
        sizes = np.array(case.schema.sizes)
        _must(bool((rows.values < sizes).all()), f"a code outside the schema on {case.name!r}")


def _zero_rows_are_zero_rows(kind: type[Any]) -> None:
    one = default(kind)
    if one.about.releases == "tables":
        _must(_draw(one, _typical(), 0).rows == 0, "0 rows asked, more given")


def _the_input_is_not_modified(kind: type[Any]) -> None:
    case = _typical()
    before = case.values.copy()
    _draw(default(kind), case, 5)
    _must(bool((case.values == before).all()), "the input was modified")


def _the_same_sampling_seed_gives_the_same_bytes(kind: type[Any]) -> None:
    one = default(kind)
    if one.about.releases == "rows":
        return  # rows come from the operating system's randomness: no seed reaches them
    from gibbous.synthesize.sample import sample

    crowds = np.repeat([[i >> 2, i >> 1 & 1, i & 1] for i in range(8)], 300, axis=0)
    tables = release(one, binary_schema(), crowds, None)  # every crowd is above every threshold
    assert isinstance(tables, Tables)
    whole = sample(tables, 5000, seed=11).values
    _must(
        bool((whole == sample(tables, 5000, seed=11, threads=1).values).all()),
        "threads change rows",
    )
    part = sample(tables, 1000, seed=11, start=3000).values
    _must(bool((whole[3000:4000] == part).all()), "the way the work is cut changes rows")
    _must(bool((whole != sample(tables, 5000, seed=12).values).any()), "the seed changes nothing")


def _two_fits_differ_in_their_noise(kind: type[Any]) -> None:
    one = default(kind, delta=1e-3)
    if not one.plan(binary_schema(), ROWS).total.is_dp:
        return
    crowd = np.repeat([[0, 0, 0], [1, 1, 1]], 300, axis=0)  # above every threshold
    rows = rows_for(one) and 60
    # Two tables of few cells are often alike by chance; so many in a row never are.
    first = _bytes(release(one, binary_schema(), crowd, rows))
    differ = any(_bytes(release(one, binary_schema(), crowd, rows)) != first for _ in range(FITS))
    _must(differ, f"{FITS + 1} fits are identical: a seed reaches the noise")


# --- limits


def _a_large_budget_approaches_the_records(kind: type[Any]) -> None:
    """With a huge budget margins are near the records' own; or rows are the mode, where that is the limit."""
    one = _richest(kind)
    if one.about.limit == "mode":
        single = next(c for c in cases() if c.name == "one column")
        mode = int(np.bincount(single.values[:, 0]).argmax())
        share = float((_draw(one, single, 200).values == mode).mean())
        _must(share > 0.95, f"only {share:.2f} of the values are the mode with a huge budget")
        return
    case = _typical()
    near = _margin_distance(one, case, 3000)
    _must(near < 0.15, f"total variation of a margin is {near:.3f} with a huge budget")


def _a_tiny_budget_forgets_the_records(kind: type[Any]) -> None:
    """With a tiny budget two opposite tables give about the same rows."""
    if "epsilon" not in {p.name for p in describe(kind)}:
        return
    one = default(kind, epsilon=1e-6)
    schema = binary_schema()
    sides = [np.full((200, 3), v, dtype=np.int64) for v in (0, 1)]
    means = []
    for side in sides:
        outs = [_draw(one, Case("", schema, side), 40).values.mean() for _ in range(30)]
        means.append(float(np.mean(outs)))
    # 30 fits of 40 x 3 bits: even fully dependent bits of one fit have sd <= 0.5 / sqrt(30) = .09.
    _must(abs(means[0] - means[1]) < 0.6, "a tiny budget still tells opposite tables apart")


_API: tuple[Check, ...] = (
    _equal_by_value_and_frozen,
    _json_round_trip,
    _bad_parameters_give_the_three_part_message,
    _the_card_and_the_docstring_are_complete,
)
_PRIVACY: tuple[Check, ...] = (
    _plan_states_the_whole_cost_before_data,
    _the_run_pays_no_more_than_the_plan,
    _a_smaller_budget_is_refused_before_counting,
    _more_epsilon_is_a_larger_claim,
    _after_the_run_the_curator_is_closed_to_the_method,
    _a_key_that_no_record_has_looks_like_zeros,
    _records_reach_the_output_only_by_noise_choices_and_paid_draws,
    _every_purchase_covers_what_it_shows_of_neighbors,
    _the_words_of_the_page_are_kept,
)
_OUTPUT: tuple[Check, ...] = (
    _rows_and_values_are_as_asked,
    _zero_rows_are_zero_rows,
    _the_input_is_not_modified,
    _the_same_sampling_seed_gives_the_same_bytes,
    _two_fits_differ_in_their_noise,
)
_LIMITS: tuple[Check, ...] = (
    _a_large_budget_approaches_the_records,
    _a_tiny_budget_forgets_the_records,
)


class _Spy:
    """An engine that counts how often it was asked, and whether payment came first."""

    name: ClassVar[str] = "spy"

    def __init__(self, case: Case) -> None:
        self.case = case
        self.tallies = 0
        self.first_tally_after_payment = True
        self._engine = LocalEngine.from_codes(case.codes())

    def tally(self, contexts: Any, *, progress: Any = None) -> Any:
        """Note who asks: the curator must have a purchase on its books."""
        frame = inspect.currentframe()
        while frame is not None and not isinstance(frame.f_locals.get("self"), Curator):
            frame = frame.f_back
        asked_by: Curator | None = frame.f_locals["self"] if frame else None
        self.first_tally_after_payment &= asked_by is not None and len(asked_by.spent) > 0
        self.tallies += 1
        return self._engine.tally(contexts)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


def _draw(one: Mechanism, case: Case, rows: int) -> Codes:
    from gibbous.encode.decode import decode
    from gibbous.encode.encode import encode
    from gibbous.synthesize.sample import sample

    paid = rows if one.about.releases == "rows" else None
    output = release(one, case.schema, case.values, paid)
    drawn = output if isinstance(output, Codes) else sample(output, rows, seed=5)
    if drawn.schema.sizes == case.schema.sizes:
        return drawn
    return encode(decode(drawn, seed=5), case.schema)  # bins that were paid for are other ones


def _richest(kind: type[Any]) -> Any:
    """The instance with the largest budget a plan accepts."""
    return default(kind, epsilon=100.0, l=1.0)


def _margin_distance(one: Mechanism, case: Case, rows: int) -> float:
    drawn = _draw(one, case, rows).values
    worst = 0.0
    for j, size in enumerate(case.schema.sizes):
        a = np.bincount(case.values[:, j], minlength=size) / len(case.values)
        b = np.bincount(drawn[:, j], minlength=size) / max(len(drawn), 1)
        worst = max(worst, float(np.abs(a - b).sum() / 2))
    return worst


def _bytes(output: Tables | Codes) -> bytes:
    if isinstance(output, Codes):
        return output.values.tobytes()
    return b"".join(t.cells.values.tobytes() for t in output.published())


def _typical() -> Case:
    return next(c for c in cases() if c.name == "typical")


def _frozen(value: object) -> object:
    return tuple(_frozen(v) for v in value) if isinstance(value, list) else value


def _must(condition: bool, otherwise: str) -> None:
    if not condition:
        raise ContractError(otherwise)


__all__ = [
    "Claim",
    "Context",
    "ContractError",
    "Fraction",
    "Named",
    "Schema",
    "all_checks",
    "default",
    "neighbors",
    "rows_for",
    "secret",
]
