"""Kernels: compiled by numba the first time ever, loaded as machine code from then on, without numba.

Importing numba and its registries costs more than a small release. A kernel's machine code is
therefore kept under a name that follows from what it was made of: byte code and constants of the
function and of the functions it calls, types of the arguments, versions, and the processor. No path
and no time is part of the name, so a cache survives a copied or a new environment. llvmlite, which
numba brings along, loads the code; ctypes calls it.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import importlib
import importlib.metadata
import importlib.util
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from gibbous.core.compiled import Lazy, cache_folder, load_numba

F = TypeVar("F", bound=Callable[..., Any])
Types = tuple[Any, ...]

FORMAT = "gibbous-kernel/2"
LEVEL = 1  # of LLVM, unless NUMBA_OPT names one: compiled in a sixth less time, and no slower
EXTERNAL = {"exp", "log", "memset", "memcpy", "memmove"}  # what stored code may call
APART = {"NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS"}  # settings that change no machine code
_COMPILING = threading.RLock()
_BYTE: Any = ctypes.c_char
_RESULTS = {"none": None, "int64": ctypes.c_int64, "float64": ctypes.c_double}
_OPTIONS = {
    "cache": False,
    "_nrt": False,
    "nogil": True,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}


def kernel(**options: Any) -> Callable[[F], F]:
    """Make a function a kernel; nothing is imported or compiled before its first call.

    It takes C-contiguous arrays, whole numbers (as int64), floats (as float64) and named tuples of
    these, returns nothing, a whole number or a float, and calls only kernels, `exp` and `log`. It
    allocates nothing: room is an argument. Each set of array types is compiled once.

    Args:
        options: of ``numba.njit``, for example ``fastmath``.
    """

    def decorate(function: F) -> Any:
        return functools.update_wrapper(Kernel(function, options), function)

    return decorate


class Kernel(Lazy):
    """A function whose machine code is compiled or loaded when it is first called.

    Raises:
        EngineFailure: it is not in the cache, and numba is missing or does not run here.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        super().__init__(function, _OPTIONS | options, ())
        self._calls: dict[Types, Callable[..., Any]] = {}

    def __call__(self, *arguments: Any) -> Any:
        """Run it, compiled for the types of these arguments."""
        given = _types(arguments)
        call = self._calls.get(given)
        if call is None:
            with self._lock:
                call = self._calls.get(given) or self._ready(given)
                self._calls[given] = call
        return call(arguments)

    def parts(self) -> Iterator[str]:
        """What its machine code is made of, apart from types and processor."""
        code = self.function.__code__
        yield repr((code.co_name, code.co_code.hex(), code.co_varnames, code.co_names))
        yield repr(
            (
                [c for c in code.co_consts if c != self.function.__doc__],
                sorted(
                    f"{name} {sorted(value) if isinstance(value, set) else value}"
                    for name, value in self.options.items()
                ),
            )
        )
        for name, value in self.used():
            if isinstance(value, Kernel):
                yield from value.parts()
            elif isinstance(value, int | float | np.generic):
                yield f"{name} {type(value).__name__} {value!r}"

    def _ready(self, given: Types) -> Callable[..., Any]:
        if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
            return lambda arguments: self.function(*arguments)
        folder = cache_folder()
        path = (
            folder / f"{self.function.__name__}-{self._digest(given)[:32]}.bin" if folder else None
        )
        stored = _read(path) if path else None
        if stored is not None:
            return _loaded(given, *stored)
        numba = load_numba()
        signature = tuple(_numba_type(numba.types, one) for one in given)
        dispatcher = self.dispatcher()
        with _optimised(numba.config):
            dispatcher.compile(signature)
        made = dispatcher.overloads[signature]
        symbol, result = made.fndesc.llvm_func_name, str(made.signature.return_type)
        external = re.findall(r"^declare .*?@([\w.$]+)\(", made.library.get_llvm_str(), re.M)
        if not all(name in EXTERNAL or name.startswith("llvm.") for name in external):
            return _call(given, result, made.library.get_pointer_to_function(symbol), made)
        code = made.library._get_compiled_object()  # what numba's own cache keeps
        if path is not None:
            _write(path, f"{hashlib.sha256(code).hexdigest()} {symbol} {result}\n".encode() + code)
        return _loaded(given, symbol, result, code)

    def _digest(self, given: Types) -> str:
        parts = (*_machine(), *self.parts(), repr(given), repr(_fields(given)))
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def ready() -> None:
    """Make sure that kernels can be loaded and compiled, before anything is spent.

    Which kernels a run calls is not known before, so a cache that holds some does not excuse numba:
    it is imported once for each installation, and a file in the cache says that it ran.

    Raises:
        EngineFailure: numba or llvmlite is missing or does not run here.
    """
    _llvm()
    folder, spec = cache_folder(), importlib.util.find_spec("numba")
    if folder is None or spec is None or not spec.origin:
        load_numba()
        return
    package = Path(spec.origin).parent
    told = (*_machine(), np.__version__, str(package), str(package.stat().st_mtime_ns))
    works = folder / f"numba-{hashlib.sha256(repr(told).encode()).hexdigest()[:32]}.works"
    if not works.exists():
        load_numba()
        _write(works, b"")


@functools.cache
def _llvm() -> Any:
    try:
        llvm = importlib.import_module("llvmlite.binding")
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
    except Exception:
        load_numba()  # says what is wrong
        raise
    return llvm


@functools.cache
def _machine() -> tuple[str, ...]:
    """What machine code depends on besides its source."""
    llvm = _llvm()
    settings = {k: v for k, v in os.environ.items() if k.startswith("NUMBA_") and k not in APART}
    return (
        FORMAT,
        *(importlib.metadata.version(name) for name in ("numba", "llvmlite")),
        str(sys.version_info[:2]),
        llvm.get_process_triple(),
        llvm.get_host_cpu_name(),
        llvm.get_host_cpu_features().flatten(),
        repr(sorted(settings.items())),
    )


@contextlib.contextmanager
def _optimised(config: Any) -> Iterator[None]:
    """At our level of optimisation; what others compile with numba in this process keeps its own."""
    with _COMPILING:
        before = config.OPT
        config.OPT = before if "NUMBA_OPT" in os.environ else type(before)(LEVEL)
        try:
            yield
        finally:
            config.OPT = before


def _types(arguments: tuple[Any, ...]) -> Types:
    """What a call is compiled for: arrays by type and axes, all whole numbers alike."""
    out: list[Any] = []
    for argument in arguments:
        if type(argument) is np.ndarray:
            out.append((argument.dtype.char, argument.ndim))
        elif isinstance(argument, tuple):
            out.append((type(argument), *_types(argument)))
        else:
            out.append("d" if isinstance(argument, float) else "q")
    return tuple(out)


def _fields(given: tuple[Any, ...]) -> list[Any]:
    """Names of the fields of named tuples, which the code reads by their places."""
    return [
        (vars(one[0])["_fields"], _fields(one[1:])) for one in given if isinstance(one[0], type)
    ]


def _numba_type(kinds: Any, given: Any) -> Any:
    if isinstance(given, str):
        return kinds.float64 if given == "d" else kinds.int64
    if isinstance(given[0], type):
        return kinds.NamedTuple(tuple(_numba_type(kinds, one) for one in given[1:]), given[0])
    return kinds.Array(getattr(kinds, np.dtype(given[0]).name), given[1], "C")


def _loaded(given: Types, symbol: str, result: str, code: bytes) -> Callable[..., Any]:
    llvm = _llvm()
    module = llvm.parse_assembly("")
    module.triple = llvm.get_process_triple() + ("-elf" if os.name == "nt" else "")
    machine = llvm.Target.from_triple(module.triple).create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return _call(given, result, engine.get_function_address(symbol), engine)


def _call(given: Types, result: str, address: int, held: Any) -> Callable[..., Any]:
    """A function of a kernel's arguments; `held` owns the machine code."""
    takes = (ctypes.c_void_p, ctypes.c_void_p, *_passed(given))
    native = ctypes.CFUNCTYPE(ctypes.c_int32, *takes)(address)
    kind = _RESULTS[result]

    def call(arguments: tuple[Any, ...], _held: Any = held) -> Any:
        out, failure = (kind or ctypes.c_int64)(), ctypes.c_void_p()
        flat: list[Any] = []
        _flatten(arguments, flat)
        if native(ctypes.addressof(out), ctypes.addressof(failure), *flat):
            raise ArithmeticError("a kernel divided by zero")
        return None if kind is None else out.value

    return call


def _passed(given: Types) -> Iterator[Any]:
    """C types of the arguments, as numba passes them."""
    pointer, whole = ctypes.c_void_p, ctypes.c_int64
    for one in given:
        if isinstance(one, str):
            yield ctypes.c_double if one == "d" else whole
        elif isinstance(one[0], type):
            yield from _passed(one[1:])
        else:  # owner, parent, items, bytes of one, data, shape, strides
            yield from (pointer, pointer, whole, whole, pointer, *(whole,) * (2 * one[1]))


def _flatten(arguments: tuple[Any, ...], out: list[Any]) -> None:
    for argument in arguments:
        if type(argument) is np.ndarray:
            try:
                data = ctypes.addressof(_BYTE.from_buffer(argument))  # the fast way
            except (TypeError, ValueError):
                if not argument.flags.c_contiguous:
                    raise ValueError("a kernel takes C-contiguous arrays") from None
                data = argument.ctypes.data  # of an empty or read-only array
            shape, strides = argument.shape, argument.strides
            out += (None, None, argument.size, argument.itemsize, data, *shape, *strides)
        elif isinstance(argument, tuple):
            _flatten(argument, out)
        else:
            out.append(argument)


def _read(path: Path) -> tuple[str, str, bytes] | None:
    """Symbol, type of the result and machine code; None where there is no whole file."""
    try:
        head, _, code = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    words = head.decode("ascii", "replace").split()
    if len(words) != 3 or words[0] != hashlib.sha256(code).hexdigest():
        return None
    return words[1], words[2], code


def _write(path: Path, content: bytes) -> None:
    part = path.with_suffix(f".{os.getpid()}")
    with contextlib.suppress(OSError):  # a full disk costs the next run some seconds
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(content)
        part.replace(path)
