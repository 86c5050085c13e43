"""gibbous: synthetic microdata with stated, end-to-end disclosure guarantees.

    import gibbous as gb

    schema = gb.Schema.load("schema.toml")
    release = gb.synthesize("data.parquet", schema, gb.NoisyPegs(epsilon=1, delta=1e-6))

Everything here is imported on first use, so that `import gibbous` stays light.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

import gibbous.read  # noqa: F401 - what reads for Schema.load and Ledger.dataset, handed down

if TYPE_CHECKING:
    from gibbous.contract.auditor.run import audit
    from gibbous.core.claim import Claim
    from gibbous.core.errors import GibbousError
    from gibbous.core.imprint import Imprint
    from gibbous.core.plan import Plan
    from gibbous.core.release import Release
    from gibbous.core.schema import Column, Schema, Unit
    from gibbous.disintegrate import engine
    from gibbous.estimator import Synthesizer
    from gibbous.evaluate.flows import evaluate_flows
    from gibbous.frontier.compare import compare
    from gibbous.frontier.study import Study
    from gibbous.mechanisms.adaptive_gibbs import AdaptiveGibbs
    from gibbous.mechanisms.block_pegs import BlockPegs
    from gibbous.mechanisms.bootstrap import Bootstrap
    from gibbous.mechanisms.cdf import Cdf
    from gibbous.mechanisms.contingency import Contingency
    from gibbous.mechanisms.dirichlet import Dirichlet
    from gibbous.mechanisms.diverse_pegs import DiversePegs
    from gibbous.mechanisms.dp_prior import DpPrior
    from gibbous.mechanisms.exponential_pegs import ExponentialPegs
    from gibbous.mechanisms.flows_laplace import FlowsLaplace
    from gibbous.mechanisms.imputation import Imputation
    from gibbous.mechanisms.laplace import Laplace
    from gibbous.mechanisms.modips import Modips
    from gibbous.mechanisms.multiple_synthesis import MultipleSynthesis
    from gibbous.mechanisms.noisy_pegs import NoisyPegs
    from gibbous.mechanisms.onthemap import Onthemap
    from gibbous.mechanisms.paid_bins import PaidBins
    from gibbous.mechanisms.parallel import Parallel
    from gibbous.mechanisms.pegs import Pegs
    from gibbous.mechanisms.per_set import PerSet
    from gibbous.mechanisms.perturbed_histogram import PerturbedHistogram
    from gibbous.mechanisms.perturbed_imputation import PerturbedImputation
    from gibbous.mechanisms.privbayes import Privbayes
    from gibbous.mechanisms.registry import methods
    from gibbous.mechanisms.sba import Sba
    from gibbous.mechanisms.sbhg import Sbhg
    from gibbous.mechanisms.smoothed_histogram import SmoothedHistogram
    from gibbous.pipeline import load_schema, plan, synthesize
    from gibbous.privacy.ledger import Ledger
    from gibbous.read.infer import infer_schema
    from gibbous.report.faces import evaluate, report
    from gibbous.report.flow_map import flow_map
    from gibbous.write.load import load
    from gibbous.write.verify import verify

__version__ = "0.1.0"

_WHERE = {
    "AdaptiveGibbs": "gibbous.mechanisms.adaptive_gibbs",
    "BlockPegs": "gibbous.mechanisms.block_pegs",
    "Bootstrap": "gibbous.mechanisms.bootstrap",
    "Cdf": "gibbous.mechanisms.cdf",
    "Claim": "gibbous.core.claim",
    "Column": "gibbous.core.schema",
    "Contingency": "gibbous.mechanisms.contingency",
    "Dirichlet": "gibbous.mechanisms.dirichlet",
    "DiversePegs": "gibbous.mechanisms.diverse_pegs",
    "DpPrior": "gibbous.mechanisms.dp_prior",
    "ExponentialPegs": "gibbous.mechanisms.exponential_pegs",
    "FlowsLaplace": "gibbous.mechanisms.flows_laplace",
    "GibbousError": "gibbous.core.errors",
    "Imprint": "gibbous.core.imprint",
    "Imputation": "gibbous.mechanisms.imputation",
    "Laplace": "gibbous.mechanisms.laplace",
    "Ledger": "gibbous.privacy.ledger",
    "Modips": "gibbous.mechanisms.modips",
    "MultipleSynthesis": "gibbous.mechanisms.multiple_synthesis",
    "NoisyPegs": "gibbous.mechanisms.noisy_pegs",
    "Onthemap": "gibbous.mechanisms.onthemap",
    "Parallel": "gibbous.mechanisms.parallel",
    "Pegs": "gibbous.mechanisms.pegs",
    "PaidBins": "gibbous.mechanisms.paid_bins",
    "PerSet": "gibbous.mechanisms.per_set",
    "PerturbedHistogram": "gibbous.mechanisms.perturbed_histogram",
    "PerturbedImputation": "gibbous.mechanisms.perturbed_imputation",
    "Plan": "gibbous.core.plan",
    "Privbayes": "gibbous.mechanisms.privbayes",
    "Release": "gibbous.core.release",
    "Sba": "gibbous.mechanisms.sba",
    "Sbhg": "gibbous.mechanisms.sbhg",
    "Schema": "gibbous.core.schema",
    "SmoothedHistogram": "gibbous.mechanisms.smoothed_histogram",
    "Study": "gibbous.frontier.study",
    "Synthesizer": "gibbous.estimator",
    "Unit": "gibbous.core.schema",
    "audit": "gibbous.contract.auditor.run",
    "compare": "gibbous.frontier.compare",
    "engine": "gibbous.disintegrate",
    "evaluate": "gibbous.report.faces",
    "evaluate_flows": "gibbous.evaluate.flows",
    "flow_map": "gibbous.report.flow_map",
    "infer_schema": "gibbous.read.infer",
    "load": "gibbous.write.load",
    "load_schema": "gibbous.pipeline",
    "methods": "gibbous.mechanisms.registry",
    "plan": "gibbous.pipeline",
    "report": "gibbous.report.faces",
    "synthesize": "gibbous.pipeline",
    "verify": "gibbous.write.verify",
}

__all__ = [
    "AdaptiveGibbs",
    "BlockPegs",
    "Bootstrap",
    "Cdf",
    "Claim",
    "Column",
    "Contingency",
    "Dirichlet",
    "DiversePegs",
    "DpPrior",
    "ExponentialPegs",
    "FlowsLaplace",
    "GibbousError",
    "Imprint",
    "Imputation",
    "Laplace",
    "Ledger",
    "Modips",
    "MultipleSynthesis",
    "NoisyPegs",
    "Onthemap",
    "PaidBins",
    "Parallel",
    "Pegs",
    "PerSet",
    "PerturbedHistogram",
    "PerturbedImputation",
    "Plan",
    "Privbayes",
    "Release",
    "Sba",
    "Sbhg",
    "Schema",
    "SmoothedHistogram",
    "Study",
    "Synthesizer",
    "Unit",
    "audit",
    "compare",
    "engine",
    "evaluate",
    "evaluate_flows",
    "flow_map",
    "infer_schema",
    "load",
    "load_schema",
    "methods",
    "plan",
    "report",
    "synthesize",
    "verify",
]


_VERBS = {
    "evaluate": "gibbous.report.faces",
    "report": "gibbous.report.faces",
    "synthesize": "gibbous.pipeline",
}


class _Package(ModuleType):
    """Verbs keep their names when the folders of the same names are imported."""


def _verb(name: str) -> property:
    def get(_: ModuleType) -> Any:
        return getattr(importlib.import_module(_VERBS[name]), name)

    def keep(_: ModuleType, folder: ModuleType) -> None:
        """Importing the folder would set it here; it stays reachable as a folder."""

    return property(get, keep)


for _name in _VERBS:
    setattr(_Package, _name, _verb(_name))
sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        value = getattr(importlib.import_module(_WHERE[name]), name)
        globals()[name] = value
        return value
    if name in ("infer", "studies"):
        return importlib.import_module(f"gibbous.{name}")
    raise AttributeError(f"module 'gibbous' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
