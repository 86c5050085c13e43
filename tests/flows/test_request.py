"""--geography on the command line: what it adds to a request, from flags and from a configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from gibbous.cli import plan_verb, synthesize_verb
from gibbous.cli.config import resolve
from gibbous.cli.discovery_flags import DiscoveryFlags
from gibbous.cli.flags import (
    ConsentFlags,
    EngineFlags,
    LedgerFlags,
    ReadingFlags,
    RequestFlags,
    ScreenFlags,
)
from gibbous.cli.flow_request import flow_request
from gibbous.cli.output_flags import OutputFlags, SignFlags
from gibbous.core.errors import UsageError
from gibbous.read.source import ReadOptions
from gibbous.structure.contexts import joint
from tests.flows import made

CONFIG = """
data = "flows.csv"
geography = "geography.toml"
[privacy]
epsilon = 4.6
delta = 1e-5
[mechanism]
name = "onthemap"
keep = [[0, 1.0], [20, 0.3]]
[output]
path = "out"
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration beside flows and their geography."""
    made.files(tmp_path, "reach = 60\n" + made.FORM)
    path = tmp_path / "release.toml"
    path.write_text(CONFIG, encoding="utf-8")
    return path


def test_the_method_gets_places_destination_and_reach(config: Path) -> None:
    found = flow_request(resolve(config, [], {}))

    shown = found.method.plan(found.schema, None).params
    assert found.schema.names == ("work", "home")
    assert shown["destination"] == "work"
    assert shown["reach"] == 60
    assert shown["keep"] == [[0, 1.0], [20, 0.3]]
    assert shown["origins"] == found.geography.origins.to_json()


def test_a_level_of_the_geography_gives_every_method_its_regions(config: Path) -> None:
    path = config.with_name("geography.toml")
    path.write_text('level = "county"\n' + path.read_text(encoding="utf-8"), encoding="utf-8")
    values = resolve(config, ["mechanism.name=sba"], {})
    del values["mechanism.keep"], values["privacy.delta"]

    found = flow_request(values | {"privacy.delta": 1e-6})
    engine = found.engine(ReadOptions())
    engine.scan(config.with_name("flows.csv"), found.schema, key=b"k" * 32)

    assert found.schema.columns[1].labels() == ("north", "south")
    assert engine.tally([joint(found.schema)])[0].cells.values.ravel().tolist() == [1, 14, 0, 2]


def test_a_release_of_flows_is_planned_and_written(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked, screen = RequestFlags(config=config), ScreenFlags(quiet=True)
    plan_verb.run(asked, ConsentFlags(), EngineFlags(), None, ScreenFlags(), DiscoveryFlags())
    told = capsys.readouterr().out
    charging = LedgerFlags(config.with_name("ledger"))

    synthesize_verb.run(
        None,
        (asked, OutputFlags(), charging, ConsentFlags(), EngineFlags(), SignFlags()),
        ReadingFlags(),
        screen,
        DiscoveryFlags(),
    )

    assert "origins=20 places, destinations=2 places" in told
    assert "earlier=" not in told  # nothing is said of what was not given
    assert "17 rows in" in capsys.readouterr().out
    assert (config.parent / "out" / "manifest.json").exists()


def test_a_schema_beside_a_geography_and_an_engine_of_rows_are_refused(config: Path) -> None:
    with pytest.raises(UsageError, match="Both a schema and a geography"):
        resolve(config, ["schema=schema.toml"], {})
    values = resolve(config, [], {"engine.name": "duckdb"})

    with pytest.raises(UsageError, match="counted in this process"):
        flow_request(values)
