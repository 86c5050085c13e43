"""gibbous: synthetic microdata with stated, end-to-end disclosure guarantees.

    import gibbous as gb

    schema = gb.Schema.load("schema.toml")
    release = gb.synthesize("data.parquet", schema, gb.NoisyPegs(epsilon=1, delta=1e-6))

Everything here is imported on first use, so that `import gibbous` stays light.
"""

from __future__ import annotations

import importlib
import re
from typing import TYPE_CHECKING, Any

import gibbous.read  # noqa: F401 - what reads for Schema.load and Ledger.dataset, handed down
from gibbous.core.readers import hand_down_buyer as _hand_down_buyer

if TYPE_CHECKING:
    from gibbous.contract.auditor.run import audit as audit
    from gibbous.core.claim import Claim as Claim
    from gibbous.core.discovery import Discovery as Discovery
    from gibbous.core.errors import GibbousError as GibbousError
    from gibbous.core.plan import Plan as Plan
    from gibbous.core.release import Release as Release
    from gibbous.core.request import Imprint as Imprint
    from gibbous.core.schema import Column as Column
    from gibbous.core.schema import Rule as Rule
    from gibbous.core.schema import Schema as Schema
    from gibbous.core.schema import Unit as Unit
    from gibbous.disintegrate import engine as engine
    from gibbous.estimator import Synthesizer as Synthesizer
    from gibbous.evaluation.flows import evaluate_flows as evaluate_flows
    from gibbous.frontier.compare import compare as compare
    from gibbous.frontier.study import Study as Study
    from gibbous.given_tables import from_tables as from_tables
    from gibbous.mechanisms.adaptive_gibbs import AdaptiveGibbs as AdaptiveGibbs
    from gibbous.mechanisms.block_pegs import BlockPegs as BlockPegs
    from gibbous.mechanisms.bootstrap import Bootstrap as Bootstrap
    from gibbous.mechanisms.cdf import Cdf as Cdf
    from gibbous.mechanisms.contingency import Contingency as Contingency
    from gibbous.mechanisms.dirichlet import Dirichlet as Dirichlet
    from gibbous.mechanisms.diverse_pegs import DiversePegs as DiversePegs
    from gibbous.mechanisms.dp_prior import DpPrior as DpPrior
    from gibbous.mechanisms.exponential_pegs import ExponentialPegs as ExponentialPegs
    from gibbous.mechanisms.flows_laplace import FlowsLaplace as FlowsLaplace
    from gibbous.mechanisms.imputation import Imputation as Imputation
    from gibbous.mechanisms.laplace import Laplace as Laplace
    from gibbous.mechanisms.modips import Modips as Modips
    from gibbous.mechanisms.multiple_synthesis import MultipleSynthesis as MultipleSynthesis
    from gibbous.mechanisms.noisy_pegs import NoisyPegs as NoisyPegs
    from gibbous.mechanisms.onthemap import Onthemap as Onthemap
    from gibbous.mechanisms.paid_bins import PaidBins as PaidBins
    from gibbous.mechanisms.parallel import Parallel as Parallel
    from gibbous.mechanisms.pegs import Pegs as Pegs
    from gibbous.mechanisms.per_set import PerSet as PerSet
    from gibbous.mechanisms.perturbed_histogram import PerturbedHistogram as PerturbedHistogram
    from gibbous.mechanisms.perturbed_imputation import PerturbedImputation as PerturbedImputation
    from gibbous.mechanisms.privbayes import Privbayes as Privbayes
    from gibbous.mechanisms.registry import methods as methods
    from gibbous.mechanisms.sba import Sba as Sba
    from gibbous.mechanisms.sbhg import Sbhg as Sbhg
    from gibbous.mechanisms.smoothed_histogram import SmoothedHistogram as SmoothedHistogram
    from gibbous.pipeline import plan as plan
    from gibbous.pipeline import synthesize as synthesize
    from gibbous.privacy.ledger import Ledger as Ledger
    from gibbous.promise import load_schema as load_schema
    from gibbous.read.infer import infer_schema as infer_schema
    from gibbous.read.metadata.files import import_schema as import_schema
    from gibbous.reporting.evaluate_and_report import evaluate as evaluate
    from gibbous.reporting.evaluate_and_report import report as report
    from gibbous.reporting.flow_map import flow_map as flow_map
    from gibbous.reporting.release_report import verify as verify
    from gibbous.schema_discovery import discover_schema as discover_schema
    from gibbous.write.kept import releases as releases
    from gibbous.write.load import load as load
    from gibbous.write.signature import SigningKey as SigningKey

__version__ = "0.1.0"

_MECHANISMS = """
    AdaptiveGibbs BlockPegs Bootstrap Cdf Contingency Dirichlet DiversePegs DpPrior
    ExponentialPegs FlowsLaplace Imputation Laplace Modips MultipleSynthesis NoisyPegs
    Onthemap PaidBins Parallel Pegs PerSet PerturbedHistogram PerturbedImputation Privbayes
    Sba Sbhg SmoothedHistogram
"""
_OTHERS = {
    "gibbous.contract.auditor.run": "audit",
    "gibbous.core.claim": "Claim",
    "gibbous.core.discovery": "Discovery",
    "gibbous.core.errors": "GibbousError",
    "gibbous.core.request": "Imprint",
    "gibbous.core.plan": "Plan",
    "gibbous.core.release": "Release",
    "gibbous.core.schema": "Column Rule Schema Unit",
    "gibbous.disintegrate": "engine",
    "gibbous.estimator": "Synthesizer",
    "gibbous.evaluation.flows": "evaluate_flows",
    "gibbous.frontier.compare": "compare",
    "gibbous.frontier.study": "Study",
    "gibbous.given_tables": "from_tables",
    "gibbous.mechanisms.registry": "methods",
    "gibbous.pipeline": "plan synthesize",
    "gibbous.promise": "load_schema",
    "gibbous.schema_discovery": "discover_schema",
    "gibbous.privacy.ledger": "Ledger",
    "gibbous.read.infer": "infer_schema",
    "gibbous.read.metadata.files": "import_schema",
    "gibbous.reporting.evaluate_and_report": "evaluate report",
    "gibbous.reporting.flow_map": "flow_map",
    "gibbous.write.kept": "releases",
    "gibbous.write.load": "load",
    "gibbous.write.signature": "SigningKey",
    "gibbous.reporting.release_report": "verify",
}
_WHERE = {name: home for home, names in _OTHERS.items() for name in names.split()} | {
    name: f"gibbous.mechanisms.{re.sub('(?!^)(?=[A-Z])', '_', name).lower()}"
    for name in _MECHANISMS.split()
}
__all__ = sorted(_WHERE)


def _discover(*given: Any, **more: Any) -> Any:
    return __getattr__("discover_schema")(*given, **more)


_hand_down_buyer(_discover)


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
