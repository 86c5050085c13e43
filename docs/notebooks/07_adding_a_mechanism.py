# %% [markdown]
# # Adding a mechanism
#
# A mechanism is a frozen dataclass with `plan` and `run`. The scaffold writes a complete one.

# %%
from gibbous.cli.scaffold import mechanism_file

source = mechanism_file("my_margins")
print(source[source.index("    def plan") : source.index("    def _noise")])

# %% [markdown]
# It works as it stands: write it to a file, import it, plan and release.

# %%
import importlib
import sys
from pathlib import Path

import polars as pl

import gibbous as gb

Path("my_margins.py").write_text(source)
sys.path.insert(0, "")
mine = importlib.import_module("my_margins").MyMargins(epsilon=1)
sys.path.pop(0)
schema = gb.Schema((gb.Column("ill", "binary", levels=("no", "yes")),), gb.Unit("row"))
print(gb.plan(schema, mine, rows=100).headline())

# %% [markdown]
# What the Curator does when a run asks for more than its plan stated:

# %%
from gibbous.core.errors import GibbousError


class Greedy(type(mine)):
    def run(self, curator, rows, sets=1):
        super().run(curator, rows, sets)
        return super().run(curator, rows, sets)


try:
    frame = pl.DataFrame({"ill": ["no", "yes"] * 50})
    gb.synthesize(frame, schema, Greedy(epsilon=1), rows=10, ledger=gb.Ledger.ephemeral())
except GibbousError as error:
    print(error.code)

# %% [markdown]
# Next: the contract, which audits it and breaks it on purpose: [add a mechanism](../how-to/new-mechanism.md). In a clone,
# `./dev new mechanism my_margins` writes source, proof, page and test.
