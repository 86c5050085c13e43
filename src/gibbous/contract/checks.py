"""The named checks that every mechanism passes: api, privacy, output, limits."""

from __future__ import annotations

import dataclasses
import inspect
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbous.contract.cases import Case, binary_schema, cases, typical
from gibbous.contract.privacy_checks import PRIVACY
from gibbous.contract.runs import ROWS, ContractError, default, described, must, release, rows_for
from gibbous.core.codes import Codes
from gibbous.core.errors import GibbousError, ParameterError
from gibbous.core.method_card import About
from gibbous.core.params import as_json, describe
from gibbous.core.protocols import Mechanism
from gibbous.core.tables import Tables

Check = Callable[[type[Any]], None]
FITS = 15  # fits, at most, until one differs from the first


@dataclass(frozen=True, slots=True)
class Named:
    """One check: its group, its name as a sentence, and what it does."""

    group: str
    name: str
    run: Check


def all_checks() -> Iterator[Named]:
    for group, found in (
        ("api", _API),
        ("privacy", PRIVACY),
        ("output", _OUTPUT),
        ("limits", _LIMITS),
    ):
        for check in found:
            yield Named(group, check.__name__.strip("_").replace("_", " "), check)


# --- api


def _equal_by_value_and_frozen(kind: type[Any]) -> None:
    one, two = kind(), kind()
    must(one == two and hash(one) == hash(two), "two instances with the same parameters differ")
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
    must(kind(**values) == one, "parameters do not survive JSON")
    must(type(one).__name__ in repr(one), "repr does not name the class")


def _bad_parameters_give_the_three_part_message(kind: type[Any]) -> None:
    tried = 0
    for info in describe(kind):
        for bad in (float("nan"), -1.0, "nonsense"):
            try:
                kind(**{info.name: bad})
            except ParameterError as error:
                tried += 1
                complete = info.name in error.wrong and error.allowed and error.fix
                must(bool(complete), "a part is missing")
            except GibbousError as error:
                must(bool(error.wrong and error.allowed and error.fix), "a part is missing")
                tried += 1
    if describe(kind):
        must(tried > 0, "no bad value is refused: validate with core.params.check")


def _the_card_and_the_docstring_are_complete(kind: type[Any]) -> None:
    about = kind.about
    must(isinstance(about, About), "`about` is not an About")
    for field in (f for f in dataclasses.fields(About) if f.name != "shared"):
        must(bool(getattr(about, field.name)), f"about.{field.name} is empty")
    text = inspect.getdoc(kind) or ""
    must("Guarantee:" in text and "Source:" in text, "the docstring lacks Guarantee: or Source:")
    must(all(p.help for p in describe(kind)), "a parameter has no help")


# --- output


def _rows_and_values_are_as_asked(kind: type[Any]) -> None:
    for case in cases():
        one = default(kind)
        rows = _draw(one, case, 7)
        must(rows.values.shape == (7, len(case.schema)), f"wrong shape on {case.name!r}")
        sizes = np.array(case.schema.sizes)
        must(bool((rows.values < sizes).all()), f"a code outside the schema on {case.name!r}")


def _zero_rows_are_zero_rows(kind: type[Any]) -> None:
    one = default(kind)
    if one.about.releases == "tables":
        must(_draw(one, typical(), 0).rows == 0, "0 rows asked, more given")


def _the_input_is_not_modified(kind: type[Any]) -> None:
    case = typical()
    before = case.values.copy()
    _draw(default(kind), case, 5)
    must(bool((case.values == before).all()), "the input was modified")


def _the_same_sampling_seed_gives_the_same_bytes(kind: type[Any]) -> None:
    one = default(kind)
    if one.about.releases == "rows":
        return  # rows come from the operating system's randomness: no seed reaches them
    from gibbous.sampling.sample import sample

    crowds = np.repeat([[i >> 2, i >> 1 & 1, i & 1] for i in range(8)], 300, axis=0)
    tables = release(one, binary_schema(), crowds, None)  # every crowd is above every threshold
    assert isinstance(tables, Tables)
    whole = sample(tables, 5000, seed=11).values
    must(
        bool((whole == sample(tables, 5000, seed=11, threads=1).values).all()),
        "threads change rows",
    )
    part = sample(tables, 1000, seed=11, start=3000).values
    must(bool((whole[3000:4000] == part).all()), "the way the work is cut changes rows")
    must(bool((whole != sample(tables, 5000, seed=12).values).any()), "the seed changes nothing")


def _two_fits_differ_in_their_noise(kind: type[Any]) -> None:
    one = default(kind, delta=1e-3)
    if not one.plan(binary_schema(), ROWS).total.is_dp:
        return
    crowd = np.repeat([[0, 0, 0], [1, 1, 1]], 300, axis=0)  # above every threshold
    rows = rows_for(one) and 60
    # Two tables of few cells are often alike by chance; so many in a row never are.
    first = described(release(one, binary_schema(), crowd, rows))
    differ = any(
        described(release(one, binary_schema(), crowd, rows)) != first for _ in range(FITS)
    )
    must(differ, f"{FITS + 1} fits are identical: a seed reaches the noise")


# --- limits


def _a_large_budget_approaches_the_records(kind: type[Any]) -> None:
    """With a huge budget margins are near the records' own; or rows are the mode, where that is the limit."""
    one = default(kind, epsilon=100.0, l=1.0)  # the largest budget a plan accepts
    if one.about.limit == "mode":
        single = next(c for c in cases() if c.name == "one column")
        mode = int(np.bincount(single.values[:, 0]).argmax())
        share = float((_draw(one, single, 200).values == mode).mean())
        must(share > 0.95, f"only {share:.2f} of the values are the mode with a huge budget")
        return
    case = typical()
    near = _margin_distance(one, case, 3000)
    must(near < 0.15, f"total variation of a margin is {near:.3f} with a huge budget")


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
    must(abs(means[0] - means[1]) < 0.6, "a tiny budget still tells opposite tables apart")


_API: tuple[Check, ...] = (
    _equal_by_value_and_frozen,
    _json_round_trip,
    _bad_parameters_give_the_three_part_message,
    _the_card_and_the_docstring_are_complete,
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


def _draw(one: Mechanism, case: Case, rows: int) -> Codes:
    from gibbous.encode.decode import decode
    from gibbous.encode.encode import encode
    from gibbous.sampling.sample import sample

    paid = rows if one.about.releases == "rows" else None
    output = release(one, case.schema, case.values, paid)
    drawn = output if isinstance(output, Codes) else sample(output, rows, seed=5)
    if drawn.schema.sizes == case.schema.sizes:
        return drawn
    return encode(decode(drawn, seed=5), case.schema)  # bins that were paid for are other ones


def _margin_distance(one: Mechanism, case: Case, rows: int) -> float:
    drawn = _draw(one, case, rows).values
    worst = 0.0
    for j, size in enumerate(case.schema.sizes):
        a = np.bincount(case.values[:, j], minlength=size) / len(case.values)
        b = np.bincount(drawn[:, j], minlength=size) / max(len(drawn), 1)
        worst = max(worst, float(np.abs(a - b).sum() / 2))
    return worst


def _frozen(value: object) -> object:
    return tuple(_frozen(v) for v in value) if isinstance(value, list) else value
