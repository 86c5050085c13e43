"""`gibbous audit`: try to refute what a method claims, on constructed tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gibbous.cli import show
from gibbous.cli.config import literal, pairs
from gibbous.cli.parameters import exact_value
from gibbous.cli.progress import Bars
from gibbous.core.errors import UsageError

if TYPE_CHECKING:
    from gibbous.cli.flags import ScreenFlags
    from gibbous.cli.measuring_verbs import AuditFlags

VIOLATION, CANNOT_TELL = 5, 10


def run(audited: AuditFlags, out: Path | None, screen: ScreenFlags) -> int:
    """Audit a method and print what was found.

    Args:
        audited: without epsilon, delta or relation those of the method, or all that it offers.
        out: also write the JSON document there; an existing file is refused before anything runs.
    Returns:
        Exit code: 0 nothing found, or nothing to audit; 5 a violation; 10 too few runs to tell.
    """
    from gibbous.contract.auditor.run import audit
    from gibbous.write.durable_files import exists, write_json

    if out is not None and out.exists():
        raise exists(out)
    params = _params(audited)
    with Bars(quiet=screen.silent) as bars:
        result = audit(
            audited.method,
            params=params,
            seconds=audited.seconds,
            runs=audited.runs,
            nightly=audited.nightly,
            seed=audited.seed,
            progress=bars,
        )
    if out is not None:
        write_json(out, result.to_json())
    if screen.json:
        show.as_json(result.to_json())
    elif screen.quiet:
        show.line(result.headline())
    else:
        for line in result.lines():
            show.line(line)
    return {"VIOLATION": VIOLATION, "cannot tell": CANNOT_TELL}.get(result.verdict, 0)


def _params(audited: AuditFlags) -> dict[str, object]:
    params: dict[str, object] = {}
    for key, value in pairs(audited.setting or [], "SET", "--set", "parents=3"):
        name = key.strip().replace("-", "_").removeprefix("mechanism.").removeprefix("privacy.")
        if name in params:
            raise UsageError(
                "SET",
                f"--set gives {name} twice.",
                "KEY is a parameter of the method, for example --set parents=3.",
                "Give each key once.",
            )
        params[name] = exact_value(name, literal(value.strip()))
    for name in ("epsilon", "delta", "relation"):
        text = getattr(audited, name)
        if text is not None:
            params[name] = exact_value(name, text)
    return params
