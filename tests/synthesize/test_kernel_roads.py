"""Kernels give the same bytes on every road: compiled now, loaded from a copied cache, plain Python."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from gibbous.core import compiled
from gibbous.core.kernel import LEVEL, Kernel, kernel

CHILD = """
import hashlib, sys
import numpy as np
import gibbous as gb
from gibbous.sampling.loglinear import Schedule, Target, fit, independent, start
from gibbous.sampling.loglinear.margin_adjustment import close

size, count = 41, 60
even = np.full(size, 1.0 / size)
edges = tuple(float(i) for i in range(size + 1))
schema = gb.Schema(tuple(gb.Column(f"c{j}", "numeric", edges=edges) for j in range(3)))
model, shares = independent([even] * 3), [even] * 3
pair = np.eye(size) / size * 0.9 + 0.1 / size**2
chains = start(model, schema, shares, count, seed=3)
model, chains = fit(model, chains, [Target((0, 1), pair)], Schedule(steps=2))
goal = gb.core.tables.Goal((0,), even)
closed, moved = close(model, schema, chains.state, [goal], seed=1)
told = closed.tobytes() + b"".join(theta.tobytes() for theta in model.theta)
print(hashlib.sha256(told).hexdigest(), moved, "numba" in sys.modules)
"""


def run(home: Path, **settings: str) -> list[str]:
    """Digest of fitted and closed rows, values moved, and whether numba was imported."""
    env = os.environ | {"GIBBOUS_HOME": str(home)} | settings
    env.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CHILD],
        env=env,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.split()


@pytest.mark.slow
def test_every_road_gives_the_same_bytes_and_a_copied_cache_needs_no_numba(tmp_path: Path) -> None:
    first = run(tmp_path / "one")
    shutil.copytree(tmp_path / "one", tmp_path / "two", copy_function=shutil.copyfile)
    (tmp_path / "two" / "cache" / "numba").chmod(0o700)
    loaded = run(tmp_path / "two")
    plain = run(tmp_path / "three", NUMBA_DISABLE_JIT="1")

    assert first[2] == "True"
    assert loaded == [*first[:2], "False"]
    assert plain[:2] == first[:2]


class Pair(NamedTuple):
    """Two arrays and a number."""

    values: np.ndarray
    more: np.ndarray
    factor: float


def scaled(pair: Pair, out: np.ndarray, first: int) -> float:
    """Out becomes values x factor + more."""
    total = 0.0
    for i in range(first, len(out)):
        out[i] = pair.values[i] * pair.factor + pair.more[i]
        total += out[i]
    return total


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache folder of this test's own."""
    monkeypatch.setattr("gibbous.core.kernel.cache_folder", lambda: tmp_path)
    return tmp_path


@pytest.mark.parametrize("kind", [np.uint8, np.int32, np.float64])
def test_a_kernel_equals_its_function_for_each_type_of_array(folder: Path, kind: type) -> None:
    pair = Pair(np.arange(5, dtype=kind), np.ones(5, dtype=kind), 0.5)
    twice, once = np.zeros(5), np.zeros(5)

    assert kernel()(scaled)(pair, twice, 1) == scaled(pair, once, 1)
    assert np.array_equal(twice, once)
    assert len(list(folder.glob("scaled-*.bin"))) == 1


def test_others_keep_their_level_of_optimisation(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NUMBA_OPT", raising=False)
    config, seen = compiled.load_numba().config, list[int]()
    before = config.OPT
    made = kernel()(scaled)
    held = made.dispatcher
    monkeypatch.setattr(made, "dispatcher", lambda: Watched(held(), config, seen))

    made(Pair(np.ones(2), np.ones(2), 2.0), np.zeros(2), 0)

    assert seen == [LEVEL] != [before]
    assert config.OPT is before


class Watched:
    """Numba's own function, which notes the level that it is compiled at."""

    def __init__(self, inner: Any, config: Any, seen: list[int]) -> None:
        self.inner, self.config, self.seen = inner, config, seen

    def compile(self, signature: Any) -> None:
        self.seen.append(int(self.config.OPT))
        self.inner.compile(signature)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def test_a_damaged_file_in_the_cache_is_compiled_again(folder: Path) -> None:
    pair, out = Pair(np.ones(2), np.ones(2), 2.0), np.zeros(2)
    kernel()(scaled)(pair, out, 0)
    (path,) = folder.glob("*.bin")
    path.write_bytes(path.read_bytes()[:-7])

    assert kernel()(scaled)(pair, out, 0) == 6.0


@pytest.mark.slow
def test_a_broken_numba_is_refused_although_some_kernels_are_in_the_cache(tmp_path: Path) -> None:
    ready = (
        "from gibbous.core import kernel; import sys; kernel.ready(); print('numba' in sys.modules)"
    )
    broken = tmp_path / "broken" / "numba"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise OSError('libsomething.so')")
    env = os.environ | {"GIBBOUS_HOME": str(tmp_path)}
    env.pop("NUMBA_CACHE_DIR", None)

    def told(**settings: str) -> tuple[str, str]:
        command = [sys.executable, "-W", "ignore", "-c", ready]
        done = subprocess.run(command, env=env | settings, capture_output=True, text=True)
        return done.stdout.strip(), done.stderr

    first = told()
    (tmp_path / "cache" / "numba" / "fold-0.bin").touch()
    later, ruined = told(), told(PYTHONPATH=os.pathsep.join([str(broken.parent), *sys.path]))

    assert first == ("True", "")
    assert later == ("False", "")
    assert "NONUMBA" in ruined[1] or "Reinstall numba" in ruined[1]


def test_other_constants_of_a_kernel_are_other_machine_code(folder: Path) -> None:
    def build(name: str, value: float) -> Kernel:
        space = {"ADDED": value}
        exec(f"def {name}(x):\n    return x + ADDED", space)
        return kernel()(space[name])  # type: ignore[return-value]

    assert build("add", 1.0)(2.0) == 3.0
    assert build("add", 5.0)(2.0) == 7.0
    assert len(list(folder.glob("*.bin"))) == 2


def test_an_array_with_gaps_is_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match="C-contiguous"):
        kernel()(scaled)(Pair(np.ones(8)[::2], np.ones(4), 1.0), np.zeros(4), 0)


def test_without_a_folder_kernels_run_and_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gibbous.core.kernel.cache_folder", lambda: None)

    assert kernel()(scaled)(Pair(np.ones(2), np.ones(2), 2.0), np.zeros(2), 0) == 6.0
    assert compiled.load_numba() is not None
