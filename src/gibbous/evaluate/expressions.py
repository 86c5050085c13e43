"""What a factor of a formula may compute: arithmetic on columns and named functions, nothing else.

The library that reads formulas evaluates factors as Python. Whoever hands it a formula looks at every
factor here first; nothing is computed for that.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from gibbous.core.schema import Schema

_QUOTED = re.compile(r"`([^`]*)`")
_NODES = (
    ast.Expression,
    ast.Call,
    ast.Name,
    ast.Load,
    ast.BinOp,
    ast.Add,
    ast.Sub,
    ast.Mult,
    ast.Div,
    ast.Pow,
    ast.UnaryOp,
    ast.USub,
    ast.UAdd,
    ast.Constant,
    ast.keyword,
)
_STEEPEST = 10  # power


class Unfit(Exception):
    """A factor that is not computed; the message goes on from "The formula ..."."""


def names_in(expr: str, schema: Schema, functions: Iterable[str]) -> set[str]:
    """Names that a factor reads, known as columns or not, after a look at everything it would compute.

    Args:
        expr: one factor as the library spells it; names with signs or spaces stand in backticks.
        schema: of the tables.
        functions: what may be called.
    Raises:
        Unfit: it holds more than names, numbers, arithmetic and these functions, a power that is not
            a small number, or a number or a date as category (its levels would be those of one table).
    """
    if expr in schema.names:
        return {expr}
    quoted: dict[str, str] = {}

    def stand_in(match: re.Match[str]) -> str:
        return quoted.setdefault(match.group(1), f"quoted_{len(quoted)}_")

    try:
        parsed = ast.parse(_QUOTED.sub(stand_in, expr), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise Unfit(f"holds {expr!r}, which is no expression") from None
    original = {placeholder: name for name, placeholder in quoted.items()}
    nodes = list(ast.walk(parsed))
    calls = [node.func for node in nodes if isinstance(node, ast.Call)]
    if not all(isinstance(node, _NODES) and _small(node) for node in nodes):
        raise Unfit(f"holds {expr!r}, which is more than arithmetic on columns")
    if not all(isinstance(call, ast.Name) and call.id in functions for call in calls):
        raise Unfit(f"calls a function in {expr!r} that is not known")
    found = {
        original.get(node.id, node.id)
        for node in nodes
        if isinstance(node, ast.Name) and node not in calls
    }
    as_category = any(isinstance(call, ast.Name) and call.id == "C" for call in calls)
    if as_category and any(name in schema.names and schema[name].binned for name in found):
        raise Unfit(f"takes a number or a date as category in {expr!r}")
    return found


def _small(node: ast.AST) -> bool:
    """Whether it is neither a text nor a number that arithmetic makes huge: 9 ** 9 ** 9 is arithmetic."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float)
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Pow):
        return True
    power = node.right.value if isinstance(node.right, ast.Constant) else None
    # A number to a power to a power grows without end; a column does not, being of floats.
    ended = isinstance(node.left, ast.Constant) or any(
        isinstance(part, ast.Name) for part in ast.walk(node.left)
    )
    return ended and isinstance(power, int | float) and abs(power) <= _STEEPEST
