"""Compiled functions: numba behind one door, imported when first needed, cached in a private place.

The cache holds machine code that the next process will run, so the folder must belong to this
user and to nobody else: a folder that others can write is never used. No threading layer of numba
is used either (kernels release the GIL and run in ordinary threads), so that forks and busy
machines are harmless. `core.kernel` compiles once and needs numba no more; `njit` is numba's own.
"""

from __future__ import annotations

import functools
import importlib
import os
import stat
import tempfile
import threading
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, overload

from gibbous.core.errors import EngineFailure

# 2**-t for t in [0, 1): least-squares fit at Chebyshev points, relative error below 3e-6.
POWER = (
    0.9999973320084214,
    -0.6930281531391963,
    0.23933169937887408,
    -0.05305992078163867,
    0.0067603015986072495,
)

F = TypeVar("F", bound=Callable[..., Any])


@overload
def njit(function: F, /) -> F: ...


@overload
def njit(*signatures: str, **options: Any) -> Callable[[F], F]: ...


def njit(*given: Any, **options: Any) -> Any:
    """Compile a function with numba: nopython, GIL released, machine code cached between processes.

    Nothing is imported or compiled before its first call: ``@njit``, ``@njit(inline="always")``
    (compiled for the types of each call) or ``@njit("void(uint32[::1])")`` (for these alone).

    Args:
        given: numba signatures, or the function itself.
        options: any other option of ``numba.njit``; ``cache=False`` keeps nothing.
    Raises:
        EngineFailure: when it is called, numba is missing or does not run here.
    """
    if len(given) == 1 and callable(given[0]):
        return Lazy(given[0], options, ())
    return lambda function: Lazy(function, options, given)


class Lazy:
    """A function that numba compiles when it is first called, or when one that calls it is."""

    def __init__(
        self, function: Callable[..., Any], options: dict[str, Any], signatures: tuple[str, ...]
    ) -> None:
        self.function, self.options, self.signatures = function, options, signatures
        self._lock, self._made = threading.RLock(), None

    def __call__(self, *arguments: Any) -> Any:
        """Run it, compiled."""
        return (self._made or self.dispatcher())(*arguments)

    def dispatcher(self) -> Any:
        """Numba's own function of it; those that it calls are numba's own as well."""
        with self._lock:
            self._made = self._made or self._compiled(cache_folder())
        return self._made

    def bound(self) -> types.FunctionType:
        """The function, with numba's own in place of the lazy ones that it calls."""
        called = {n: f.dispatcher() for n, f in self.used() if isinstance(f, Lazy)}
        function = self.function
        return types.FunctionType(
            function.__code__, function.__globals__ | called, function.__name__
        )

    def used(self) -> list[tuple[str, Any]]:
        """Globals that the function reads."""
        held = self.function.__globals__
        return [(name, held[name]) for name in self.function.__code__.co_names if name in held]

    def _compiled(self, folder: Path | None) -> Any:
        numba, bound = load_numba(), self.bound()
        chosen: dict[str, Any] = {"nogil": True, "cache": True} | self.options
        chosen["cache"] = chosen["cache"] and folder is not None
        before = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = str(folder or before)  # ours for this function, then theirs again
        try:
            return numba.njit(list(self.signatures) or None, **chosen)(bound)
        finally:
            numba.config.CACHE_DIR = before


@functools.cache
def cache_folder() -> Path | None:
    """The folder for machine code, or None when no private one can be had (nothing is cached then).

    NUMBA_CACHE_DIR if set, else $GIBBOUS_HOME/cache/numba, else the XDG cache folder
    ``gibbous/numba``, else a folder of this user in the temporary folder.
    """
    theirs = os.environ.get("NUMBA_CACHE_DIR")
    if theirs:
        return Path(theirs)
    return next((folder for folder in _candidates() if _private(folder)), None)


def cold() -> bool:
    """Whether the cache is still empty, so that the first call will take several seconds."""
    folder = cache_folder()
    return folder is None or not any(f.suffix in (".nbi", ".bin") for f in folder.rglob("*.*"))


@functools.cache
def load_numba() -> Any:
    """Numba, imported; EngineFailure if it is missing or does not run here."""
    try:
        return importlib.import_module("numba")
    except Exception as error:  # noqa: BLE001 - a broken llvmlite raises OSError, AttributeError and others
        raise EngineFailure(
            "NONUMBA",
            f"The compiled engine cannot start: importing numba raised {type(error).__name__}.",
            "It needs a working numba (a dependency of gibbous).",
            "Reinstall numba and llvmlite.",
        ) from None


def _candidates() -> list[Path]:
    home = os.environ.get("GIBBOUS_HOME")
    if home:
        first = Path(home) / "cache" / "numba"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        first = Path(base) / "gibbous" / "numba"
    user = os.getuid() if hasattr(os, "getuid") else "user"
    return [first, temporary_folder() / f"gibbous-numba-{user}"]


def temporary_folder() -> Path:
    """The system's temporary folder; where none can be written, the name that it would have."""
    try:
        return Path(tempfile.gettempdir())
    except OSError:
        return Path(os.environ.get("TMPDIR") or "/tmp")  # noqa: S108 - whoever uses it is told


def _private(folder: Path) -> bool:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        facts = folder.lstat()
        if not stat.S_ISDIR(facts.st_mode) or (facts.st_mode & 0o022 and os.name == "posix"):
            return False
        if hasattr(os, "getuid") and facts.st_uid != os.getuid():
            return False
        with tempfile.TemporaryFile(dir=folder):
            return True
    except (OSError, RuntimeError):
        return False
