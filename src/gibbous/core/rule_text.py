"""The text of a condition -> its comparisons; nothing in it is executed.

Column names stand as they are, or in `backticks` if they are no plain words. Text is quoted, days may be.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass

from gibbous.core.column import Level
from gibbous.core.errors import UsageError
from gibbous.core.rules import refused

MISSING = "missing"
_LONGEST = 10_000
_QUOTED = re.compile(r"`([^`]*)`")
_TEXT = "'[^']*'|\"[^\"]*\""  # passed over by the spellings below
_DAY = re.compile(rf"{_TEXT}|(?<![\w-])(?P<day>\d{{4}}-\d\d-\d\d)(?![\w-])")
_END = rf"-?\d+(?:\.\d+)?|{_TEXT}"
_RANGE = re.compile(
    rf"(?<![\w.])(?P<sum>-?(?:(?!\band\b)[\w\s+-])+?)\s+in\s+(?P<low>{_END})\s*\.\.\s*(?P<high>{_END})|{_TEXT}"
)
_BARE = re.compile(
    rf"{_TEXT}|(?<!\w)(?P<name>(?!is\b|not\b|and\b)\w+)\s+(?P<no>not\s+)?missing(?!\w)"
)
_SIGNS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.In: "in", ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison: a sum of columns and a number, a text or day, a list, or `missing`.

    Attributes:
        terms: (column, how often it is added; negative: subtracted), each column once.
        constant: number that is added.
        literal: a text, true or false, where it is one.
        members: of a list; None of anything else.
    """

    terms: tuple[tuple[str, int], ...] = ()
    constant: float = 0
    literal: str | bool | None = None
    members: tuple[Level, ...] | None = None

    @property
    def column(self) -> str | None:
        """The name, where it is one column and nothing else."""
        alone = len(self.terms) == 1 and self.terms[0][1] == 1 and self.constant == 0
        return self.terms[0][0] if alone else None


@dataclass(frozen=True, slots=True)
class Comparison:
    """left sign right."""

    left: Side
    sign: str
    right: Side


def comparisons(text: str, rule: str) -> tuple[Comparison, ...]:
    """Read a condition: comparisons that hold together.

    Args:
        text: for example "0 <= end - start <= 365 and sex in ['f', 'm']".
        rule: what an error calls it.
    Raises:
        UsageError: it says something else.
    """
    quoted: list[str] = []

    def plain(name: re.Match[str]) -> str:
        quoted.append(name[1])
        return f"_quoted_{len(quoted) - 1}_"

    def name_of(node: ast.Name) -> str:
        found = re.fullmatch(r"_quoted_(\d+)_", node.id)
        return quoted[int(found[1])] if found else node.id

    tree = _tree(_spelled(_QUOTED.sub(plain, text)), rule)
    parts = tree.values if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And) else [tree]
    found = []
    for part in parts:
        if not isinstance(part, ast.Compare):
            raise _unread(rule)
        sides = [_Reader(rule, name_of).side(node) for node in (part.left, *part.comparators)]
        for left, sign, right in zip(sides, part.ops, sides[1:], strict=False):
            found.append(Comparison(left, _SIGNS[type(sign)], right))
    return tuple(found)


def _spelled(text: str) -> str:
    """Other spellings as the one that is read: days without quotes, `x in 0..9`, `x missing`."""
    for form, ours in (
        (_DAY, lambda one: f"'{one['day']}'" if one["day"] else one[0]),
        (
            _RANGE,
            lambda one: (
                "{low} <= {sum} <= {high}".format(**one.groupdict()) if one["sum"] else one[0]
            ),
        ),
        (
            _BARE,
            lambda one: f"{one['name']} is {one['no'] or ''}missing" if one["name"] else one[0],
        ),
    ):
        text = form.sub(ours, text)
    return text


class _Reader:
    def __init__(self, rule: str, name_of: Callable[[ast.Name], str]) -> None:
        self._rule, self._name_of = rule, name_of

    def side(self, node: ast.expr) -> Side:
        """One side of a comparison."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bool):
            return Side(literal=node.value)
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            return Side(members=tuple(self._member(item) for item in node.elts))
        terms: dict[str, int] = {}
        constant = self._add(node, 1, terms)
        return Side(tuple((name, times) for name, times in terms.items() if times), constant)

    def _member(self, node: ast.expr) -> Level:
        value = self.side(node)
        if value.terms or value.members is not None:
            raise _unread(self._rule)
        return value.constant if value.literal is None else value.literal

    def _add(self, node: ast.expr, times: int, terms: dict[str, int]) -> float:
        """Add a sum's columns to `terms`; returns its numbers."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            second = times if isinstance(node.op, ast.Add) else -times
            return self._add(node.left, times, terms) + self._add(node.right, second, terms)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return self._add(node.operand, -times, terms)
        if isinstance(node, ast.Name):
            name = self._name_of(node)
            terms[name] = terms.get(name, 0) + times
            return 0
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            return times * node.value
        raise _unread(self._rule)


def _tree(text: str, rule: str) -> ast.expr:
    """The expression; a single "=" between two sides is read as "=="."""
    if len(text) <= _LONGEST:
        try:
            statement = ast.parse(text.strip()).body[0]
        except (SyntaxError, ValueError, IndexError, RecursionError, MemoryError):
            raise _unread(rule) from None
        if isinstance(statement, ast.Expr):
            return statement.value
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            return ast.Compare(statement.targets[0], [ast.Eq()], [statement.value])
    raise _unread(rule)


def _unread(rule: str) -> UsageError:
    return refused(
        rule,
        "cannot be read",
        "It compares columns, sums and differences of columns, numbers, and text or days in quotes, by "
        "<, <=, ==, !=, >=, >, in [...], 'is missing' and 'is not missing', joined by 'and'; names that "
        "are no plain words stand in `backticks`",
        'Write for example: require = "0 <= end - start <= 365"',
    )
