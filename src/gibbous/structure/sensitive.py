"""Which columns are to be drawn l-diverse: names and l, as given, checked against a public schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from gibbous.core.claim import Relation, l_diverse, short
from gibbous.core.errors import ParameterError, PrivacyRefused, UsageError
from gibbous.core.exact import exact
from gibbous.core.plan import Spend
from gibbous.core.schema import Schema
from gibbous.core.tables import Criterion
from gibbous.privacy.calibrate.diversity import q_star

Sensitive = tuple[tuple[int, float], ...]
"""(position of a column, l)."""


def as_texts(given: Mapping[object, object] | Sequence[object] | str) -> tuple[str, ...]:
    """Columns and their l in one written form, sorted, of {"disease": 2}, its items, or texts "disease=2".

    ParameterError where l is no number above 1, or a column is there twice.
    """
    texts = (given,) if isinstance(given, str) else given
    items = texts.items() if isinstance(texts, Mapping) else texts
    pairs = [one if isinstance(one, tuple) and len(one) == 2 else _cut(one) for one in items]
    found: dict[str, str] = {}
    for name, value in pairs:
        key, l = str(name).strip(), _number(value)  # noqa: E741
        if not key or l is None or key in found:
            raise ParameterError(
                "DIVERSE",
                "diverse of NoisyPegs holds something that is not a column with its l, or one twice.",
                "It is one number above 1 a column, at most the column's number of levels.",
                "For example diverse={'disease': 2}; on the command line --set diverse=disease=2.",
            )
        found[key] = repr(l)
    return tuple(f"{key}={found[key]}" for key in sorted(found))


def sensitive_of(
    schema: Schema, texts: Sequence[str], contexts: Sequence[Sequence[int]] = ()
) -> Sensitive:
    """The columns found in a schema.

    Args:
        texts: as `as_texts` writes them.
        contexts: context columns of each column, where they were given.
    Raises:
        UsageError: a name is not a column with declared levels, or a context of another column.
        ParameterError: l is above the number of levels.
        PrivacyRefused: rows are changed after they are drawn, or levels ruled out.
    """
    pairs = [text.rpartition("=") for text in texts]
    found = tuple((schema.index(name, "diverse= names"), float(least)) for name, _, least in pairs)
    if found and (schema.impossible or schema.rules):
        raise PrivacyRefused(
            "DIVERSERULES",
            "diverse was asked for on a schema with rules or impossible combinations.",
            "Both can leave a value with fewer than l levels after it was drawn.",
            "Remove [[impossible]] and [[rule]] from the schema, or leave diverse out.",
        )
    for column, l in found:  # noqa: E741
        _check(schema, column, l)
        if any(column in parents for parents in contexts):
            raise UsageError(
                "DIVERSE",
                f"Column {schema.names[column]!r} is to be diverse, and is a context of another column.",
                "What is drawn from a value tells of it: a diverse column is the context of none.",
                "Correct contexts=, or leave it out of diverse.",
            )
    return found


def stated(
    schema: Schema, sensitive: Sensitive, criterion: Criterion, relation: Relation
) -> tuple[Spend, ...]:
    """What is promised of drawn values, column by column: what a plan says and a release is held to."""
    said = []
    for column, least in sensitive:
        claim = l_diverse(
            exact(least), unit="row", relation=relation, source="docs/proofs/noisy_diverse.md"
        )
        most = short(Fraction(likeliest(schema.sizes[column], least, criterion)))
        detail = (
            f"given all other values of its row, its entropy is at least "
            f"ln {repr(float(least)).removesuffix('.0')}, and no value is likelier than {most}"
        )
        said.append(Spend(f"each drawn value of {schema.names[column]!r}", claim, detail))
    return tuple(said)


def likeliest(levels: int, l: float, criterion: Criterion) -> float:  # noqa: E741
    """q*: the largest probability that the criterion lets one of `levels` levels have."""
    return 1 / l if criterion == "max_probability" else q_star(levels, l)


def _check(schema: Schema, column: int, l: float) -> None:  # noqa: E741
    name, size = schema.names[column], schema.sizes[column]
    if schema.columns[column].edges:
        raise UsageError(
            "DIVERSE",
            f"diverse names {name!r}, a column of numbers or dates.",
            "Neighboring bins say nearly the same, so that many bins are not diversity.",
            "Declare its groups as the levels of an ordinal column, or leave it out.",
        )
    if l > size:
        raise ParameterError(
            "DIVERSE",
            f"l is {l:g} for column {name!r} of {size} levels.",
            "l is at most the number of levels.",
            "Lower l, or leave the column out of diverse.",
        )


def _cut(text: object) -> tuple[object, object]:
    name, _, value = str(text).rpartition("=")
    return name, value


def _number(value: object) -> float | None:
    try:
        number = float(str(value))
    except ValueError:
        return None
    return number if 1 < number < 2**32 else None
