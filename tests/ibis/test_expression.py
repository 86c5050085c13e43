"""One expression of counts: in DuckDB it gives the groups that brute force counts (Spark: tests/spark)."""

from __future__ import annotations

from collections.abc import Callable

import duckdb
import numpy as np
import pytest

from gibbous.core.codes import Codes
from gibbous.core.context import WORD, Context, Hashed, Key, MinHash, Radix
from gibbous.core.tables import Counts
from gibbous.disintegrate.ibis import expression
from gibbous.disintegrate.ibis.gathered import gathered
from tests.disintegrate.brute import as_dict, codes_of, context_of, count, schema_of

KEYS: list[Key] = [
    Radix(),
    Hashed(1),
    Hashed(64, 3),
    Hashed(1 << 31, 3),
    Hashed(1 << 33, 3),
    Hashed(1 << 62, 5),
    MinHash(1, 64, 1),
    MinHash(5, 64, 1),
    MinHash(3, 1 << 40, 2),
]
SIZES = [90, 80, 70, 60, 50, 1, 256]
Query = Callable[[str], dict[str, np.ndarray]]


def contexts(key: Key) -> list[Context]:
    """Few and many parents; few and many combinations of them."""
    schema = schema_of(SIZES)
    sides: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
        ((0,), ()),
        ((5,), (1,)),
        ((0, 6), (1, 2)),
        ((1,), (5, 6)),
        ((0, 1), (2, 3, 4, 5, 6)),
        ((3, 4), (0, 1, 2, 6)),
    ]
    return [context_of(schema, t, p, key, seen=True) for t, p in sides]


def wrong(query: Query, codes: Codes, dialect: str, chosen: list[Context]) -> list[Context]:
    """Contexts whose counts differ from brute force."""
    out = []
    for context in chosen:
        found = query(expression.statement("codes", context, dialect))
        if as_dict(Counts(context, gathered(context, found))) != count(context, codes):
            out.append(context)
    return out


def codes_in_duckdb(codes: Codes) -> Query:
    held = duckdb.connect(config={"threads": 1})
    columns = {f"c{i}": np.ascontiguousarray(c) for i, c in enumerate(codes.by_column)}
    held.register("codes", columns)
    return lambda sql: held.execute(sql).fetchnumpy()


@pytest.mark.parametrize(
    "key",
    [
        pytest.param(k, marks=pytest.mark.slow if i in (1, 3, 5, 6, 7) else ())
        for i, k in enumerate(KEYS)
    ],
    ids=[repr(k) for k in KEYS],
)
def test_duckdb_counts_what_a_dictionary_counts(key: Key) -> None:
    codes = codes_of(schema_of(SIZES), 400, np.random.default_rng(1))

    assert wrong(codes_in_duckdb(codes), codes, "duckdb", contexts(key)) == []


def test_all_forms_of_keys_occur() -> None:
    forms = {expression.form_of(c) for key in KEYS for c in contexts(key)}

    assert forms == {"radix", "halves", "least"}


def test_keys_and_levels_that_pass_63_bits_together_are_two_columns() -> None:
    columns = [100] * 18
    schema = schema_of(columns)
    codes = codes_of(schema, 300, np.random.default_rng(2))
    context = context_of(schema, tuple(range(9)), tuple(range(9, 18)), seen=True)
    assert context.cells > WORD

    found = codes_in_duckdb(codes)(expression.statement("codes", context, "duckdb"))

    assert set(found) == {"key", "level", "n"}
    assert as_dict(Counts(context, gathered(context, found))) == count(context, codes)


def test_the_carry_between_the_halves_is_needed() -> None:
    """Without it hashed keys would be others: so the test of equality looks at it."""
    codes = codes_of(schema_of(SIZES), 400, np.random.default_rng(3))
    context = contexts(Hashed(1 << 33, 3))[-1]
    sql = expression.statement("codes", context, "duckdb")
    query = codes_in_duckdb(codes)

    lost = query(sql.replace(">> 32", ">> 60"))

    assert ">> 32" in sql
    assert as_dict(Counts(context, gathered(context, lost))) != count(context, codes)
