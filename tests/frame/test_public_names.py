"""The names users import: pinned, documented, and not shadowed by the folders behind them."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from types import ModuleType

import pytest

import gibbous
from tests.frame.tree import mechanism_names

METHODS = {"".join(part.title() for part in name.split("_")) for name in mechanism_names()}
# Changing this list is changing what people rely on: say so in the changelog.
NAMES = METHODS | {
    "Claim",
    "Column",
    "Discovery",
    "GibbousError",
    "Imprint",
    "Ledger",
    "Plan",
    "Release",
    "Rule",
    "Schema",
    "SigningKey",
    "Study",
    "Synthesizer",
    "Unit",
    "audit",
    "compare",
    "discover_schema",
    "engine",
    "evaluate",
    "evaluate_flows",
    "flow_map",
    "import_schema",
    "from_tables",
    "infer_schema",
    "load",
    "load_schema",
    "methods",
    "plan",
    "releases",
    "report",
    "synthesize",
    "verify",
}


def test_public_names_are_pinned() -> None:
    assert set(gibbous.__all__) == NAMES


@pytest.mark.parametrize("name", sorted(NAMES))
def test_public_name_is_callable_and_documented(name: str) -> None:
    value = getattr(gibbous, name)

    assert not isinstance(value, ModuleType)
    assert callable(value)
    assert (value.__doc__ or "").strip()


def test_no_module_has_the_name_of_a_public_function() -> None:
    modules = {module.name for module in pkgutil.iter_modules(gibbous.__path__)}

    assert not modules & set(gibbous.__all__)


@pytest.mark.slow
@pytest.mark.parametrize(
    "first", ["gibbous.pipeline", "gibbous.sampling.gibbs_rows", "gibbous.cli.app"]
)
def test_synthesize_is_the_verb_whatever_was_imported_first(first: str) -> None:
    code = f"import {first}, gibbous; gibbous.plan; print(gibbous.synthesize.__module__)"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.stdout.strip() == "gibbous.pipeline", done.stderr


def test_misspelled_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="sinthesize"):
        gibbous.sinthesize  # noqa: B018
