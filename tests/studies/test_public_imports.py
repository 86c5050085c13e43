"""Studies use public names, so that they could live in a package of their own; exceptions are listed."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.frame.tree import DOCS, SRC, tree

PUBLIC = ("gibbous.studies", "gibbous.frontier", "gibbous.contract", "gibbous.flows")
EXCEPTIONS = {
    "gibbous.core.exact": "a fraction of a parameter, as mechanisms read it",
    "gibbous.core.extras": "what to install where an extra is missing",
    "gibbous.core.json_values": "plain values for tables.json",
    "gibbous.core.keywords": "did you mean, for a keyword of run()",
    "gibbous.core.stream": "counter-based streams: seeded repeats are the same however they are cut",
    "gibbous.reporting.flow_map_files": "coordinates that lie beside a given table",
    "gibbous.evaluation.flows": "the classes of size that evaluate_flows shows",
    "gibbous.evaluation.flows_trips": "mean commutes, as evaluate_flows computes them",
    "gibbous.evaluation.inference": "the combining rules that infer applies",
    "gibbous.evaluation.utility.lasso": "LASSO paths over many penalties",
    "gibbous.mechanisms.onthemap": "the draw of onthemap from seeded words in place of the system's",
    "gibbous.privacy.calibrate.diversity": "formulas as printed in the papers",
    "gibbous.privacy.calibrate.gibbs": "formulas as printed in the papers",
    "gibbous.privacy.calibrate.sba": "formulas as printed in the papers, beside the corrected ones",
    "gibbous.privacy.calibrate.stable": "the threshold of sba",
    "gibbous.privacy.spend": "flows are held in memory, not in a file that synthesize could scan",
    "gibbous.core.request": "flows are held in memory, not in a file that synthesize could scan",
    "gibbous.reporting": "colors and marks of the reports",
    "gibbous.reporting.html_page": "the page of a study is a report",
    "gibbous.reporting.labels": "numbers as the reports write them",
    "gibbous.reporting.page_parts": "the page of a study is a report",
    "gibbous.reporting.svg_drawing": "SVG without a browser",
    "gibbous.structure.regions": "the radius of the Earth that miles() uses",
    "gibbous.sampling.flows.grid": "noise of unlisted cells from seeded words",
    "gibbous.sampling.flows.flow_rows": "the draw of onthemap from seeded words in place of the system's",
    "gibbous.sampling.imputation.imputed_rows": "fitted probabilities of a regression",
    "gibbous.sampling.imputation.regression": "elastic-net regressions as imputation fits them",
    "gibbous.sampling.imputation.records": "elastic-net regressions as imputation fits them",
}


def imported() -> Iterator[tuple[str, str]]:
    """(file, module) of every import of gibbous under studies."""
    for path in sorted((SRC / "studies").glob("*.py")):
        for node in ast.walk(tree(path)):
            named = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            named += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            yield from ((path.name, m) for m in named if m.partition(".")[0] == "gibbous")


def documented() -> str:
    """The pages that users read."""
    folders = ("reference", "how-to", "concepts", "tutorials")
    return " ".join(page.read_text() for name in folders for page in (DOCS / name).glob("*.md"))


def private(module: str, pages: str) -> bool:
    public = module == "gibbous" or any(f"{module}.".startswith(f"{name}.") for name in PUBLIC)
    return not public and module not in pages and module != "gibbous.core.errors"


def test_studies_import_public_names_or_a_listed_exception(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pages = documented()
    used = {(file, module) for file, module in imported() if private(module, pages)}

    with capsys.disabled():
        for file, module in sorted(used):
            print(f"\n{file} uses {module}: {EXCEPTIONS.get(module, 'NOT LISTED')}", end="")
    assert {module for _, module in used} <= EXCEPTIONS.keys()


def test_the_test_sees_an_import_that_is_not_public() -> None:
    assert private("gibbous.privacy.entropy", documented())
    assert ("onthemap_laws.py", "gibbous.sampling.flows.flow_rows") in set(imported())
