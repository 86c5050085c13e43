"""One column of rows that break a rule is moved to the nearest value that keeps it."""

from __future__ import annotations

import numpy as np

from gibbous.core.column import Column
from gibbous.core.rule_laws import Law
from gibbous.core.rule_tests import Among, Between, Combined, Mapped, Test, ends, is_whole, of
from gibbous.encode.placing import placed
from gibbous.encode.rule_rows import RuleRows

_BIN, _SPOT = 0, 1  # kinds of words


def mend(rows: RuleRows, law: Law, fixed: frozenset[int], stream: tuple[int, ...]) -> None:
    """Move rows, all of which break a law, until it holds, as far as one column after the other can.

    The column named last moves first; a column that is computed before all others; fixed ones stay.
    Where none of them may move, the condition is left. Rows are changed in place.
    """
    left = np.arange(len(rows.names))
    for place in _order(law.then):
        if place in fixed or not len(left):
            continue
        part = rows.part(left)
        _move(part, law.then, place, fixed, (*stream, place))
        _put(rows, left, part, place)
        left = left[part.broken(law)]
    for test in law.when:
        for place in reversed(of(test)):
            if place in fixed or not len(left) or not _spared(law, fixed):
                continue
            part = rows.part(left)
            _leave(part, test, place, (*stream, place))
            _put(rows, left, part, place)
            left = left[part.broken(law)]


def compute(rows: RuleRows, fixed: frozenset[int]) -> None:
    """Set what is computed from other columns, in all rows where its bounds allow it.

    `mend` would set the same; this takes whole columns.
    """
    for law in rows.laws.laws:
        test = law.then
        if isinstance(test, Mapped) and test.group not in fixed and not law.when:
            part = rows.values_of_map(test)
            at = np.flatnonzero(~np.isnan(part) & ~rows.holds(test))
            _set(rows, test.group, at, part[at])
        elif isinstance(test, Between) and test.target in rows.numbers and not law.when:
            if test.target in fixed:
                continue
            part, column = rows.rest(test, test.target), rows.columns[test.target]
            least, most = ends(column)
            broken = ~rows.holds(test)
            at = np.flatnonzero(broken & (part >= least) & (part <= most))
            _set(rows, test.target, at, part[at])


def _set(rows: RuleRows, place: int, at: np.ndarray, values: np.ndarray) -> None:
    if place in rows.numbers:
        _set_numbers(rows, place, at, values)
    else:
        rows.codes[place][at] = values


def _spared(law: Law, fixed: frozenset[int]) -> bool:
    """Whether nothing that a law asks for may move."""
    return set(of(law.then)) <= fixed


def _put(rows: RuleRows, at: np.ndarray, part: RuleRows, place: int) -> None:
    rows.codes[place][at] = part.codes[place]
    if place in rows.numbers:
        rows.numbers[place][at] = part.numbers[place]


def _order(test: Test) -> tuple[int, ...]:
    if isinstance(test, Mapped):
        return (test.group, test.detail)
    order = tuple(reversed(of(test)))
    if isinstance(test, Between) and test.target is not None:
        return (test.target, *(place for place in order if place != test.target))
    return order


def _move(
    rows: RuleRows, test: Test, place: int, fixed: frozenset[int], stream: tuple[int, ...]
) -> None:
    order = _order(test)
    later = frozenset(order[order.index(place) + 1 :]) - fixed
    allowed: np.ndarray
    if isinstance(test, Among):
        allowed = np.broadcast_to(test.codes, (len(rows.names), len(test.codes)))
        _to_codes(rows, place, allowed, stream)
    elif isinstance(test, Combined):
        near, wide = (_partners(rows, test, place, free) for free in (frozenset(), later))
        some = near.any(axis=1, keepdims=True)
        allowed = np.where(some, near, wide)
        _to_codes(rows, place, allowed, stream)
    elif isinstance(test, Between):
        _to_sum(rows, test, place, later, stream)
    else:
        _to_group(rows, test, place, stream)


def _partners(rows: RuleRows, test: Combined, place: int, free: frozenset[int]) -> np.ndarray:
    """Codes of a column that go with the others of each row, whatever the free ones become."""
    possible: np.ndarray = test.possible
    at = []
    for axis, other in enumerate(test.places):
        if other in free:
            possible = np.asarray(possible.any(axis=axis, keepdims=True))
        if other != place:
            codes = rows.codes[other]
            at.append(np.zeros_like(codes) if other in free else codes)
    found: np.ndarray = np.moveaxis(possible, test.places.index(place), -1)[tuple(at)]
    return found


def _to_codes(rows: RuleRows, place: int, allowed: np.ndarray, stream: tuple[int, ...]) -> None:
    """A code that is allowed, where there is one: of ordered columns the nearest, else any of them."""
    column, codes = rows.columns[place], rows.codes[place]
    at = np.flatnonzero(allowed.any(axis=1))
    allowed, own = allowed[at], codes[at].astype(np.int64)
    draws = rows.uniforms(*stream, _BIN)[at]
    if (
        column.missing_code is not None and allowed.shape[1] > 1
    ):  # missing only where it is asked for
        rest = np.delete(allowed, column.missing_code, axis=1).any(axis=1)
        allowed = allowed.copy()
        allowed[rest, column.missing_code] = False
    count = allowed.sum(axis=1)
    chosen = (np.cumsum(allowed, axis=1) > np.floor(draws * count)[:, None]).argmax(axis=1)
    if column.ordered:
        away = np.abs(np.arange(column.size)[None, :] - own[:, None])
        near = np.where(allowed, away, 2 * column.size).argmin(axis=1)
        chosen = np.where(own < column.bins, near, chosen)
    kept = allowed[np.arange(len(at)), own]
    at, chosen = at[~kept], chosen[~kept]
    codes[at] = chosen
    if place in rows.numbers:
        fresh = placed(column, chosen, rows.names[at], (*rows.stream, *stream, _SPOT))
        rows.numbers[place][at] = np.where(chosen == column.missing_code, np.nan, fresh)


def _to_group(rows: RuleRows, test: Mapped, place: int, stream: tuple[int, ...]) -> None:
    held = rows.numbers.get(test.group, rows.codes[test.group])
    if place == test.detail:
        _to_codes(rows, place, test.values[None, :] == held[:, None], stream)
        return
    wanted = rows.values_of_map(test)
    _set(rows, place, np.arange(len(wanted)), wanted)


def _to_sum(
    rows: RuleRows, test: Between, place: int, later: frozenset[int], stream: tuple[int, ...]
) -> None:
    """Within what the other columns leave; else as near as those allow that move later."""
    times = dict(test.terms)[place]
    low, high = np.full(len(rows.names), test.low), np.full(len(rows.names), test.high)
    wide_low, wide_high = low.copy(), high.copy()
    for other, count in test.terms:
        if other == place:
            continue
        part = count * rows.values(other)
        low, high = low - part, high - part
        first, last = sorted(count * end for end in ends(rows.columns[other]))
        wide_low = wide_low - (last if other in later else part)
        wide_high = wide_high - (first if other in later else part)
    if times < 0:
        low, high, wide_low, wide_high = high, low, wide_high, wide_low
    low, high, wide_low, wide_high = (end / times for end in (low, high, wide_low, wide_high))
    opened = test.open if times > 0 else test.open[::-1]
    every = np.arange(len(rows.names))
    done = _to_interval(rows, place, every, (low, high), opened, stream)
    if later and not done.all():
        at = every[~done]
        least, most = ends(rows.columns[place])
        bottom, top = np.maximum(wide_low[at], least), np.minimum(wide_high[at], most)
        goal = np.where(low[at] > top, top, bottom)
        _to_interval(rows, place, at, (goal, goal), (False, False), stream)


def _to_interval(
    rows: RuleRows,
    place: int,
    at: np.ndarray,
    between: tuple[np.ndarray, np.ndarray],
    opened: tuple[bool, bool],
    stream: tuple[int, ...],
) -> np.ndarray:
    """Move rows into [low, high], evenly over the nearest bin's part of it; returns which could, bool."""
    column = rows.columns[place]
    if place not in rows.numbers:
        part, held = rows.part(at), rows.laws.values[place][None, :]
        low, high = (end[:, None] for end in between)
        above = np.asarray(held > low if opened[0] else held >= low - 1e-9)
        below = np.asarray(held < high if opened[1] else held <= high + 1e-9)
        allowed = np.asarray(above & below)
        _to_codes(part, place, allowed, stream)
        _put(rows, at, part, place)
        return np.asarray(allowed.any(axis=1))
    low, high = _inward(column, *between, opened)
    fits = low <= high
    own = rows.numbers[place][at]
    edges = np.array([float(edge) for edge in column.edges])
    under = own < low
    goal = np.where(under, low, high)
    code = np.clip(np.searchsorted(edges[1:-1], goal, side="right"), 0, column.bins - 1)
    step = _step(column)
    top = np.where(code == column.bins - 1, edges[code + 1], edges[code + 1] - step)
    first = np.where(under, low, np.maximum(low, edges[code]))
    last = np.where(under, np.minimum(high, np.maximum(top, low)), high)
    draws = rows.uniforms(*stream, _SPOT)[at]
    if step:
        count = np.rint((last - first) / step) + 1
        moved = first + np.minimum(np.floor(draws * count), count - 1) * step
    else:
        moved = np.minimum(first + draws * (last - first), last)
    kept = (own >= low) & (own <= high)
    _set_numbers(rows, place, at[fits], np.where(kept, own, moved)[fits])
    return fits


def _inward(
    column: Column, low: np.ndarray, high: np.ndarray, opened: tuple[bool, bool]
) -> tuple[np.ndarray, np.ndarray]:
    """The ends as values that the column can have, within its bounds."""
    step, (least, most) = _step(column), ends(column)
    exact = low == high  # an equality: one value, rounded rather than passed over
    if step:
        unit = 1.0 / step
        up, down = np.ceil(low * unit - 1e-6), np.floor(high * unit + 1e-6)
        up = up + (opened[0] & (up <= low * unit + 1e-6))
        down = down - (opened[1] & (down >= high * unit - 1e-6))
        near = np.rint(low * unit)
        low, high = np.where(exact, near, up) * step, np.where(exact, near, down) * step
        if column.decimals:
            low, high = np.round(low, column.decimals), np.round(high, column.decimals)
    else:
        low = np.nextafter(low, np.inf) if opened[0] else low
        high = np.nextafter(high, -np.inf) if opened[1] else high
    return np.maximum(low, least), np.minimum(high, most)


def _step(column: Column) -> float:
    """Distance of neighboring values; 0 where all numbers are allowed."""
    if is_whole(column):
        return 1.0
    return 0.0 if column.decimals is None else float(10.0**-column.decimals)


def _set_numbers(rows: RuleRows, place: int, at: np.ndarray, values: np.ndarray) -> None:
    column = rows.columns[place]
    if column.decimals is not None and not is_whole(column):
        values = np.round(values, column.decimals)
    edges = np.array([float(edge) for edge in column.edges])
    rows.numbers[place][at] = values
    rows.codes[place][at] = np.searchsorted(edges[1:-1], values, side="right")


def _leave(rows: RuleRows, test: Among | Between, place: int, stream: tuple[int, ...]) -> None:
    """Move a column so that a condition is no longer met."""
    if isinstance(test, Among):
        others = np.broadcast_to(~test.codes, (len(rows.names), len(test.codes)))
        _to_codes(rows, place, others, stream)
        return
    for below in (True, False):
        at = np.flatnonzero(rows.meets(test))
        if not len(at):
            return
        part = rows.part(at)
        away = (-np.inf, test.low) if below else (test.high, np.inf)
        closed = test.open[0] if below else test.open[1]
        opened = (False, not closed) if below else (not closed, False)
        other = Between(test.terms, *away, open=opened)
        _to_sum(part, other, place, frozenset(), (*stream, below))
        _put(rows, at, part, place)
