"""Pages of the API: every public name, in groups that a reader looks for; mkdocstrings fills them."""

from __future__ import annotations

import gibbous
from gibbous.mechanisms import registry

GROUPS = {
    "Plan and release": "plan synthesize from_tables Synthesizer Release Plan Imprint load releases verify",
    "Schemas": "Schema Column Unit Rule Discovery load_schema infer_schema import_schema discover_schema",
    "Claims, ledger, signatures": "Claim Ledger SigningKey GibbousError",
    "Evaluate and compare": "evaluate evaluate_flows report flow_map compare Study audit",
    "Engines and methods": "engine methods",
}


def grouped() -> dict[str, list[str]]:
    """Group -> names; mechanisms are a group, and a name that nobody placed fails."""
    methods = {registry.load(name).__name__ for name in registry.names()}
    groups = {title: names.split() for title, names in GROUPS.items()}
    groups["Mechanisms"] = sorted(methods & set(gibbous.__all__))
    placed = [name for names in groups.values() for name in names]
    if sorted(placed) != sorted(gibbous.__all__):
        raise SystemExit(
            f"website/api.py: {sorted(set(placed) ^ set(gibbous.__all__))} have no group"
        )
    return groups


def pages() -> dict[str, tuple[str, str]]:
    """File name -> (title, text), Markdown with directives of mkdocstrings."""
    found = {}
    for title, names in grouped().items():
        head = f"# {title}\n\n`import gibbous as gb`\n"
        parts = [f"\n::: gibbous.{name}\n" for name in names]
        found[title.lower().replace(",", "").replace(" ", "-") + ".md"] = (
            title,
            head + "".join(parts),
        )
    text = "# Inference\n\n`gb.infer`: estimates from one release or several sets.\n\n::: gibbous.infer\n"
    return found | {"inference.md": ("Inference", text)}
