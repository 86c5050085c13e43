"""Seven seconds of each target, on inputs that nobody chose: nothing escapes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.campaign import Campaign, save
from tests.fuzz.targets import TARGETS


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_nothing_escapes_in_seven_seconds(name: str, tmp_path: Path) -> None:
    campaign = Campaign(name, "plain")

    campaign.run(7, enough=1)

    assert campaign.executions > len(TARGETS[name].seeds())
    assert not [f"{f.kind}: {f.signature}\n{save(f, tmp_path)}" for f in campaign.findings]
