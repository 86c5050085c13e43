"""The page of errors by code: what every error that the source can raise says, read off its syntax trees."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gibbous.core import errors
from gibbous.encode.faults import ORDER

CLASSES: dict[str, type[errors.GibbousError]] = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, errors.GibbousError)
}
PARTS = ("name", "wrong", "allowed", "fix")
WORD = re.compile(r"[A-Z][A-Z0-9_]*")
HEAD = """# Errors by code

```sh
gibbous schema check schema.toml visits.csv
```

An error is one line: `error[GB4-UNKNOWNLEVEL]:`, what is wrong, what is allowed, what to do next, and what was
released and spent. The number is the exit code of the command, the word names the fault. In Python the
same error is an exception with `.code`, `.wrong`, `.allowed` and `.fix`.

This page is generated from the source: every error that gibbous raises on purpose is here, with the file that raises it.
`…` stands for a name or a number that the message fills in; no message holds a value of the records. Where the code is the
name of a wrong argument in capitals (`GB2-RECORDS`), the message alone says what to do.
"""


@dataclass(frozen=True)
class Fault:
    """One place that raises: its class, its code, and the sentences that could be read."""

    kind: str
    code: str
    path: str
    said: Mapping[str, str] = field(hash=False)


def page(src: Path) -> str:
    """The page, Markdown."""
    by_kind: dict[str, dict[str, list[Fault]]] = defaultdict(lambda: defaultdict(list))
    for fault in faults(src):
        by_kind[fault.kind][fault.code].append(fault)
    parts = [HEAD]
    for kind in sorted(by_kind, key=lambda kind: (CLASSES[kind].exit_code, kind)):
        doc = (CLASSES[kind].__doc__ or "").strip().splitlines()[0]
        parts.append(f"\n## {kind}\n\nExit code {CLASSES[kind].exit_code}. {doc}\n")
        for code, found in sorted(by_kind[kind].items()):
            parts.append(f"\n### GB{CLASSES[kind].exit_code}-{code}\n")
            parts += _entries(found)
    return "".join(parts)


def faults(src: Path) -> list[Fault]:
    """Every error with a code that some call in the package can raise.

    A function that hands its own arguments on to an error counts as that error, wherever it is called.
    """
    trees = {
        path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(src.rglob("*.py"))
    }
    makers = _makers(trees)
    found: dict[tuple[object, ...], Fault] = {}
    for path, tree in trees.items():
        where = path.relative_to(src).as_posix()
        for call, owner in _calls(tree):
            for kind, slots in makers.get(_name(call), ()):
                said = {part: _text(_argument(call, slot)) for part, slot in slots.items()}
                given = _argument(call, slots.get("name"))
                for code in _codes(given) or _named(given, call, owner or tree, tree):
                    fault = Fault(kind, code, where, said)
                    found[(kind, code, where, *said.values())] = fault
    return [*found.values(), *_of_values()]


def _of_values() -> list[Fault]:
    """Faults of values, which the encoder keeps in a table of its own."""
    lead = "The data do not fit the schema: column … holds "
    return [
        Fault(
            "SchemaMismatch",
            code,
            "encode/faults.py",
            {"wrong": f"{lead}{what}.", "allowed": allowed, "fix": fix},
        )
        for code, what, allowed, fix in ORDER
    ]


Slot = tuple[int, str] | ast.expr | None
"""Where a call gives a part of an error: its place and keyword; or the part itself, already fixed."""
Makers = dict[str, list[tuple[str, dict[str, Slot]]]]


def _makers(trees: Mapping[Path, ast.Module]) -> Makers:
    """Name of a callable -> the errors it makes, and which of its arguments become which part."""
    makers: Makers = {
        name: [(name, {part: (place, part) for place, part in enumerate(PARTS)})]
        for name in CLASSES
    }
    for _ in range(3):  # functions that call functions that make errors
        for tree in trees.values():
            for call, owner in _calls(tree):
                if owner is None or _name(call) == owner.name:
                    continue
                places = {a.arg: (i, a.arg) for i, a in enumerate(_parameters(owner))}
                for kind, slots in list(makers.get(_name(call), ())):
                    given = _argument(call, slots.get("name"))
                    if not (isinstance(given, ast.Name) and given.id in places):
                        continue
                    handed: dict[str, Slot] = {}
                    for part, slot in slots.items():
                        value = _argument(call, slot)
                        named = isinstance(value, ast.Name) and value.id in places
                        handed[part] = places[value.id] if named else value  # type: ignore[union-attr]
                    entry = (kind, handed)
                    if all(ast_key(entry) != ast_key(e) for e in makers.get(owner.name, ())):
                        makers.setdefault(owner.name, []).append(entry)
    return makers


def ast_key(entry: tuple[str, dict[str, Slot]]) -> str:
    """The same text for the same maker."""
    slots = {k: ast.dump(v) if isinstance(v, ast.AST) else v for k, v in entry[1].items()}
    return f"{entry[0]} {slots}"


def _parameters(function: ast.FunctionDef) -> list[ast.arg]:
    found = [*function.args.posonlyargs, *function.args.args]
    return [a for a in found if a.arg not in ("self", "cls")] + function.args.kwonlyargs


def _calls(tree: ast.Module) -> Iterator[tuple[ast.Call, ast.FunctionDef | None]]:
    """Each call with the function that it stands in."""
    waiting: list[tuple[ast.AST, ast.FunctionDef | None]] = [(tree, None)]
    while waiting:
        node, owner = waiting.pop()
        if isinstance(node, ast.Call):
            yield node, owner
        inner = node if isinstance(node, ast.FunctionDef) else owner
        waiting += [(child, inner) for child in ast.iter_child_nodes(node)]


def _name(call: ast.Call) -> str:
    if isinstance(call.func, ast.Name):
        return call.func.id
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _argument(call: ast.Call, slot: Slot) -> ast.expr | None:
    if slot is None or isinstance(slot, ast.expr):
        return slot
    place, keyword = slot
    for given in call.keywords:
        if given.arg == keyword:
            return given.value
    return call.args[place] if place < len(call.args) else None


def _codes(value: ast.expr | None) -> list[str]:
    if isinstance(value, ast.IfExp):
        return _codes(value.body) + _codes(value.orelse)
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return [value.value] if WORD.fullmatch(value.value) else []
    return []


def _named(given: ast.expr | None, call: ast.Call, owner: ast.AST, tree: ast.Module) -> list[str]:
    """Codes behind a name: what it was last compared with above the call, or what it was set to."""
    if not isinstance(given, ast.Name):
        return []
    compared, assigned = [], []
    for node in (*ast.walk(owner), *tree.body):
        if isinstance(node, ast.Compare) and ast.unparse(node.left) == given.id:
            compared += [(node.lineno, code) for c in node.comparators for code in _codes(c)]
        if isinstance(node, ast.Assign) and given.id in ast.unparse(node.targets[0]):
            assigned += [code for part in ast.walk(node.value) for code in _codes(part)]  # type: ignore[arg-type]
    above = [code for line, code in sorted(compared) if code and line < call.lineno]
    return above[-1:] or sorted(set(assigned))


def _text(value: ast.expr | None) -> str:
    """A sentence with `…` for what is filled in; "" for one that is made elsewhere."""
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return value.value
    if isinstance(value, ast.JoinedStr):
        return "".join(
            _text(part) if isinstance(part, ast.Constant) else "…" for part in value.values
        )
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        return f"{_text(value.left) or '…'}{_text(value.right) or '…'}"
    return ""


def _entries(found: list[Fault]) -> Iterator[str]:
    for fault in sorted(found, key=lambda f: (f.path, *f.said.values())):
        cause = fault.said.get("wrong") or "The message says what is wrong."
        mend = [fault.said.get(part, "") for part in ("allowed", "fix")]
        told = " ".join(text for text in mend if text) or "The message says what to do."
        yield f"\n- **Cause.** {_safe(cause)}\n  **Mend.** {_safe(told)}\n"
        yield f"  ([`{fault.path}`](../../src/gibbous/{fault.path}))\n"


def _safe(text: str) -> str:
    """Markdown that shows the text as it is."""
    return re.sub(r"([*_<>\[\]|\\])", r"\\\1", " ".join(text.split()))
