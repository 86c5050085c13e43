"""The reference page of the command line, made from the app itself: `python -m tests.cli.reference`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

HEADER = """\
# The command line

```sh
gibbous demo
```

A verb is also a Python function, and its flags are keywords of the same names, except `--i-understand`
(`understand=`) and how text is read: `--sep`, `--encoding`, `--decimal` and `--on-bad-line` are `options=`.
`man gibbous` shows the same, if the package is installed into a prefix that `man` searches.

## Conventions

- `--json` prints one JSON document on stdout. Progress, warnings and errors go to stderr. No command asks
  a question.
- An error is one line: `error[GB3-DUPCOL]: what is wrong. what is allowed. what to do. what was released
  and spent.` It names columns and rows, never values. `--debug` adds code positions, no data.
- Exit codes: 0 ok, 1 a fault of gibbous, 2 usage, 3 input rejected, 4 data do not fit the schema,
  5 privacy parameter or claim refused, 6 budget, 7 ledger, 8 release damaged, 9 output not written,
  10 resources, 11 engine or library, 130 Ctrl-C, 143 SIGTERM.
- `--set KEY=VALUE` sets a parameter of the method (`--set parents=3`) or a key of the configuration
  (`--set privacy.epsilon=0.5`) and overrides the file. The same key given twice is refused.
- A configuration holds `data`, `schema`, `[privacy]` (relation, epsilon, delta, shares), `[mechanism]` (name
  and its parameters) and `[output]` (rows, sets, seed, format, path, issuer, contact, date, license). Paths
  are relative to the file. Budgets are decimal text: `0.1` is one tenth.
- `GIBBOUS_HOME` is the folder of the ledger and of compiled kernels. `GIBBOUS_SCRATCH` is that of encoded
  records that do not fit memory.
"""


def page() -> str:
    """The whole page, Markdown."""
    from typer.main import get_command

    from gibbous.cli.app import app

    return HEADER + "".join(_command(get_command(app), "gibbous"))


def _command(command: Any, path: str) -> Iterator[str]:
    inner = getattr(command, "commands", None)
    if inner is None:
        yield f"\n## `{path}`\n\n{' '.join((command.help or '').split())}\n\n"
        yield "| argument or option | meaning | default |\n|---|---|---|\n"
        for parameter in sorted(command.params, key=lambda p: p.param_type_name != "argument"):
            yield _row(parameter)
        return
    for name in inner:
        yield from _command(inner[name], f"{path} {name}")


def _row(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        words = parameter.name.upper()
        words += "" if parameter.required else " (optional)"
    else:
        words = ", ".join(sorted(parameter.opts, key=len, reverse=True))
    default = "required" if parameter.required else _default(parameter.default)
    return f"| `{words}` | {' '.join((parameter.help or '').split())} | {default} |\n"


def _default(value: object) -> str:
    if value is None or isinstance(value, bool) or value in ((), []):
        return ""
    return f"`{value}`"


if __name__ == "__main__":
    print(page(), end="")
