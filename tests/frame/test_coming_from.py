"""Scripts of other tools, as the page for their users shows them, run with the real packages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.frame.tree import DOCS, blocks
from tests.needs import need

PAGE = DOCS / "how-to" / "coming-from.md"


def ran(language: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    monkeypatch.chdir(folder)
    names: dict[str, object] = {}
    (script,) = blocks(PAGE, language)
    exec(compile(script, f"{language}.py", "exec"), names)
    return names


@pytest.mark.filterwarnings("ignore")
def test_the_script_for_smartnoise_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("smartnoise-sql")

    counts = ran("python snsql", tmp_path, monkeypatch)["counts"]

    assert isinstance(counts, list)
    assert counts[0] == ["married", "n"]


@pytest.mark.filterwarnings("ignore")
def test_the_script_for_sdv_runs_and_its_metadata_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("sdv")
    import gibbous as gb

    names = ran("python sdv", tmp_path, monkeypatch)

    assert len(names["made"]) > 0  # type: ignore[arg-type]
    schema = gb.import_schema(tmp_path / "metadata.json", data=names["stays"])
    assert schema.names == ("age", "sex")
    assert len(schema.inferred()) == 7
