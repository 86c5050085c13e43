"""The cache of machine code is private, found where it should be, and never a reason to fail."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from gibbous.core import compiled
from gibbous.core.errors import EngineFailure


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.delenv("GIBBOUS_HOME", raising=False)
    compiled.cache_folder.cache_clear()
    yield
    compiled.cache_folder.cache_clear()


def test_the_user_s_own_cache_folder_is_respected(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "mine"))

    assert compiled.cache_folder() == tmp_path / "mine"


def test_the_cache_lies_in_gibbous_home_and_is_private(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GIBBOUS_HOME", str(tmp_path))

    folder = compiled.cache_folder()

    assert folder == tmp_path / "cache" / "numba"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert compiled.cold()


def test_n8_an_unwritable_home_falls_back_to_a_private_temporary_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("GIBBOUS_HOME", str(blocked))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    folder = compiled.cache_folder()

    assert folder is not None
    assert folder.parent == tmp_path
    assert folder.stat().st_mode & 0o777 == 0o700


def test_n9_a_folder_that_others_can_write_or_that_is_a_link_is_never_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shared = tmp_path / "home" / "cache" / "numba"
    shared.mkdir(parents=True)
    shared.chmod(0o777)
    monkeypatch.setenv("GIBBOUS_HOME", str(tmp_path / "home"))
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    (temporary / f"gibbous-numba-{os.getuid()}").symlink_to(shared)

    assert compiled.cache_folder() is None
    assert compiled.cold()


def test_n8_without_any_folder_functions_are_compiled_and_not_cached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compiled, "_candidates", list)

    @compiled.njit
    def twice(x: np.ndarray) -> np.ndarray:
        return x * 2

    assert twice(np.arange(3)).tolist() == [0, 2, 4]
    assert not twice.dispatcher().stats.cache_path


def test_compiling_leaves_numba_s_own_settings_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    numba = importlib.import_module("numba")
    monkeypatch.setenv("GIBBOUS_HOME", str(tmp_path))
    before = numba.config.CACHE_DIR

    @compiled.njit("int64(int64)")
    def more(x: int) -> int:
        return x + 1

    assert more(1) == 2
    assert before == numba.config.CACHE_DIR
    assert str(tmp_path) in more.dispatcher().stats.cache_path
    assert not compiled.cold()


def test_n8_a_broken_numba_is_reported_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> object:
        raise OSError("libsomething.so: cannot open shared object file")

    monkeypatch.setattr(compiled.importlib, "import_module", broken)
    compiled.load_numba.cache_clear()

    with pytest.raises(EngineFailure) as caught:
        compiled.njit(lambda x: x)(1)

    compiled.load_numba.cache_clear()
    assert caught.value.exit_code == 11
    assert "Reinstall numba" in caught.value.render()
    assert "libsomething" not in caught.value.render()
