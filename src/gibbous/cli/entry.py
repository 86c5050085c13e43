"""One run of the command line, from hardening the process to its exit code."""

from __future__ import annotations

import functools
import gc
import os
import sys
from collections.abc import Callable, Sequence

from gibbous.cli import faults, signals
from gibbous.core.errors import speaking_flags

LEAST = 2 << 30  # bytes of address space
LIGHT = {"methods", "--help", "--version"}  # what works with less


def main(argv: Sequence[str] | None = None) -> int:
    """Run `gibbous` and return its exit code.

    Args:
        argv: arguments without the program name. None takes those of the process, and the process
            is then ours: signals, umask and core dumps are set.
    Returns:
        0, or the exit code of the error (1 to 11), 130 after Ctrl-C, 143 after SIGTERM.
    """
    if argv is not None:
        return _run(list(argv))
    gc.set_threshold(50_000, 20, 20)  # importing makes many objects, and hardly any garbage
    open_streams()
    harden()
    faults.quiet_threads()
    with signals.watched():
        return _run(sys.argv[1:])


@speaking_flags()
def _run(args: list[str]) -> int:
    try:
        with faults.own_warnings():
            return _answer(args)
    except signals.Stopped as stopped:
        return signals.leave(stopped.code)
    except KeyboardInterrupt:
        return signals.leave(signals.SIGINT_CODE)
    except BrokenPipeError:
        return _quiet_pipe()
    except SystemExit as left:  # the parser's own answer to a broken pipe
        if isinstance(left.__context__, BrokenPipeError):
            return _quiet_pipe()
        raise
    except Exception as error:  # noqa: BLE001 - the last net: everything becomes one line and a code
        return faults.report(error, args, debug="--debug" in args)


def _answer(args: list[str]) -> int:
    code: object = 0
    try:
        _check_address_space(args)
        code = _parser()(args=args or ["--help"], prog_name="gibbous", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        if not _while_printing(error):
            raise
        _to_nowhere()
        raise faults.not_printed(error) from None
    return code if isinstance(code, int) else 0


def _while_printing(error: OSError) -> bool:
    """Whether stdout is what failed: verbs print by one module, and after their work."""
    trace, names = error.__traceback__, []
    while trace is not None:
        names.append(trace.tb_frame.f_globals.get("__name__"))
        trace = trace.tb_next
    return names[-1] == __name__ or "gibbous.cli.show" in names


def _check_address_space(args: list[str]) -> None:
    """Refuse a limit (`ulimit -v`) under which libraries end the process by themselves, without a message.

    Raises:
        ResourceLimit: the limit is too small.
    """
    if os.name != "posix" or set(args[:1]) <= LIGHT:
        return
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY or limit >= LEAST:
        return
    from gibbous.core.errors import ResourceLimit

    raise ResourceLimit(
        "ADDRESSSPACE",
        f"This process may use {limit >> 20:,} MB of address space (ulimit -v).",
        f"The libraries alone take up to {LEAST >> 20:,} MB of it before a record is read.",
        "Raise the limit (ulimit -v unlimited), or limit memory by a control group.",
    )


@functools.cache
def _parser() -> Callable[..., object]:
    """The commands, built once: it takes a twentieth of a second, and a process may run many."""
    from typer.main import get_command

    from gibbous.cli.app import app

    return get_command(app)


def open_streams() -> None:
    """Closed standard streams (`>&-`) lead nowhere from here on.

    Otherwise the next file that is opened, the ledger perhaps, would get the number of stdout.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            handle = os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: this one
            if handle != number:
                os.dup2(handle, number)
        if getattr(sys, name) is None:
            mode = "r" if number == 0 else "w"
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def harden() -> None:
    """Files are private to their owner and no core dump is written, whatever the shell says."""
    import faulthandler

    os.umask(0o077)
    if faulthandler.is_enabled():
        faulthandler.disable()
    if os.name == "posix":
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _quiet_pipe() -> int:
    # The reader went away (`gibbous methods | head`): say nothing, as other tools do.
    _to_nowhere()
    return 128 + 13  # as if SIGPIPE had ended it


def _to_nowhere() -> None:
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - lives until exit
