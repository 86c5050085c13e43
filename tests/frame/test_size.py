"""Sizes that a reader can hold: of files, of functions, of what a function is handed, and of the whole."""

from __future__ import annotations

import ast

from tests.frame.tree import SRC, nodes, sources

LINES_OF_A_FILE = 350
LINES_OF_A_FUNCTION = 60
PARAMETERS = 8
LINES_OF_ALL = 96_673

FACES = {
    "schema_discovery.py::discover_schema",
    "contract/auditor/run.py::audit",
    "disintegrate/__init__.py::engine",
    "estimator.py::__init__",
    "given_tables.py::from_tables",
    "evaluation/inference/analysis.py::glm",
    "evaluation/inference/combine.py::combine",
    "frontier/compare.py::compare",
    "reporting/risk_utility.py::ru_map",
    "pipeline.py::synthesize",
    "reporting/evaluate_and_report.py::evaluate",
    "reporting/evaluate_and_report.py::report",
    "reporting/flow_map.py::flow_map",
    "studies/study_run.py::run",
}
"""Public functions: their keywords are the interface, and each is described in the reference."""


LONG = {"pipeline.py::synthesize"}  # its keywords and what each of them means


def functions() -> list[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    return [
        (f"{path.relative_to(SRC).as_posix()}::{node.name}", node)
        for path in sources()
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def test_no_file_is_longer_than_a_reader_holds() -> None:
    lengths = {p.relative_to(SRC).as_posix(): p.read_text().count("\n") for p in sources()}

    assert {name: n for name, n in lengths.items() if n > LINES_OF_A_FILE} == {}


def test_no_function_is_longer_than_a_screen() -> None:
    lengths = {name: (node.end_lineno or 0) - node.lineno + 1 for name, node in functions()}

    assert {name: n for name, n in lengths.items() if n > LINES_OF_A_FUNCTION}.keys() <= LONG


def test_only_public_faces_and_commands_take_more_than_eight_arguments() -> None:
    taken = {
        name: len([a for a in (*args.posonlyargs, *args.args, *args.kwonlyargs) if a.arg != "self"])
        for name, args in ((name, node.args) for name, node in functions())
    }
    many = {name for name, n in taken.items() if n > PARAMETERS and not name.startswith("cli/")}

    assert many <= FACES


def test_the_whole_grows_no_more() -> None:
    files = [p for p in SRC.rglob("*") if p.is_file() and "__pycache__" not in p.parts]

    assert sum(p.read_bytes().count(b"\n") for p in files) <= LINES_OF_ALL
