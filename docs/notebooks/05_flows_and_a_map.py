# %% [markdown]
# # Flows and a map
#
# Who commutes where: pairs of homes and work places. Candidate places are declared; which pairs occur is confidential.

# %%
import numpy as np
import polars as pl

import gibbous as gb
from gibbous.flows import FlowEngine, Geography, flow_schema, places

k = np.arange(400)
homes = places([f"h{i}" for i in k], 44.7 + (k // 20) * 0.03, -93.3 + (k % 20) * 0.04)
work = places(["mill", "school"], [45.0, 44.85], [-93.0, -92.8])
geography = Geography(homes, work, origin="home", destination="work", count="jobs")
pairs = pl.DataFrame(
    {
        "work": ["mill"] * 40 + ["school"] * 10,
        "home": [f"h{(7 * i) % 120 + 140}" for i in range(40)] + [f"h{9 * i}" for i in range(10)],
        "jobs": [1 + i % 5 for i in range(50)],
    }
)
pairs.head()

# %% [markdown]
# The release protects one counted job, not a row of sixty.

# %%
release = gb.synthesize(
    pairs,
    flow_schema(geography, "commutes"),
    gb.Onthemap(epsilon=4.6, delta=1e-5, destination="work"),
    engine=FlowEngine(geography),
    ledger=gb.Ledger.ephemeral(),
)
print(release.plan.headline())
release.sets[0].head()

# %% [markdown]
# Where the synthetic workers of the mill come from. `gb.flow_map` draws the same with a background and hexagons, as one HTML or SVG file.

# %%
import altair as alt

spots = pl.DataFrame({"home": homes.ids, "lat": homes.lat, "lon": homes.lon})
mill = release.sets[0].filter(work="mill").group_by("home").len().join(spots, on="home")
alt.Chart(alt.Data(values=mill.to_dicts())).mark_circle().encode(
    x=alt.X("lon:Q", scale=alt.Scale(zero=False)),
    y=alt.Y("lat:Q", scale=alt.Scale(zero=False)),
    size="len:Q",
).properties(width=420, height=300)
