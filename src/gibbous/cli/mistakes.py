"""A wrong command line in, an answer with the nearest right word out."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gibbous.core.errors import GibbousError, UsageError
from gibbous.core.keywords import ELSEWHERE, FOREIGN, nearest

# Words of other tools that are flags here only.
FLAGS = {
    "bounded": "Use --relation replace_one (bounded) or --relation add_remove (unbounded).",
    "delimiter": "Use --sep.",
    "verbose": "Use --debug; it prints code positions, never data.",
}
FOREIGN_VERBS = {
    "fit": "Use `gibbous synthesize`; it fits, writes the tables and draws rows.",
    "sample": "Use `gibbous synthesize --tables RELEASE --rows N --out FOLDER`.",
    "generate": "Use `gibbous synthesize`.",
    "syn": "Use `gibbous synthesize`.",
    "check": "Use `gibbous schema check`, or `gibbous verify` for a release.",
    "validate": "Use `gibbous verify` for a release, `gibbous schema check` for a schema.",
    "budget": "Use `gibbous ledger show`.",
    "mechanisms": "Use `gibbous methods`.",
    "help": "Use `gibbous --help`, or `gibbous VERB --help`.",
}


def usage(error: Exception, args: Sequence[str]) -> GibbousError:
    """Our error for one of the command-line parser's."""
    context = getattr(error, "ctx", None)
    verb = getattr(context, "command_path", "gibbous")
    option = getattr(error, "option_name", None)
    message = " ".join(str(error.format_message()).split())  # type: ignore[attr-defined]
    # Names of classes, not the classes: they moved between versions of the parser.
    kind = type(error).__name__
    if kind == "NoSuchOption" and isinstance(option, str):
        return _option(option, verb, _options(context))
    found = re.match(r"No such command ['\"](.*?)['\"]", message)
    if found:
        return _verb(found.group(1), verb, _inner(context))
    if kind == "NoArgsIsHelpError":
        return UsageError(
            "NOVERB",
            f"{verb} needs a verb.",
            f"Verbs are {', '.join(_inner(context))}.",
            f"Try '{verb} --help'.",
        )
    if message.startswith("Got unexpected extra argument"):
        what = "reads no data: cost follows from the schema alone" if verb.endswith("plan") else ""
        return UsageError(
            "EXTRA",
            message + ("" if message.endswith(".") else "."),
            f"'{verb}' {what}." if what else f"Usage: {_pieces(context)}.",
            "Leave it out, or quote names that hold spaces.",
        )
    return UsageError(
        "USAGE",
        message + ("" if message.endswith(".") else "."),
        f"Usage: {_pieces(context)}.",
        f"Try '{verb} --help'.",
    )


def unknown(name: str, known: Sequence[str], where: str) -> UsageError:
    """An unknown key of a configuration, with the nearest known one."""
    word = name.rpartition(".")[2].replace("-", "_")
    near = nearest(name, known) or nearest(word, known)
    fix = f"Did you mean {near!r}?" if near else _foreign(word, "") or "Leave it out."
    return UsageError(
        "UNKNOWNKEY", f"{where} has no key {name!r}.", f"Keys are {', '.join(known)}.", fix
    )


def _option(option: str, verb: str, known: list[str]) -> UsageError:
    word = option.lstrip("-").split("=")[0].replace("-", "_").lower()
    near = nearest("--" + word.replace("_", "-"), known)
    parameter = _method_parameter(word) if "--set" in known else None
    foreign = _foreign(word, "--")
    if foreign:
        fix = foreign
    elif parameter:
        fix = f"It is a parameter of {parameter}: pass --set {word}=VALUE."
    elif near:
        fix = f"Did you mean {near}?"
    else:
        fix = f"Options are {', '.join(known)}."
    return UsageError(
        "UNKNOWNOPTION",
        f"'{verb}' has no option {option.split('=')[0]}.",
        fix,
        f"'{verb} --help' describes its {len(known)} options.",
    )


def _foreign(word: str, dashes: str) -> str | None:
    """What a word of another tool is called here, as a sentence."""
    if dashes and word in FLAGS:
        return FLAGS[word]
    if word in FOREIGN:
        ours, why = FOREIGN[word]
        return f"Use {dashes}{ours}; {why}."
    return ELSEWHERE.get(word)


def _verb(name: str, group: str, known: list[str]) -> UsageError:
    near = nearest(name, known)
    if near:
        fix = f"Did you mean '{group} {near}'?"
    elif group == "gibbous" and name in FOREIGN_VERBS:
        fix = FOREIGN_VERBS[name]
    else:
        fix = f"Try '{group} --help'."
    return UsageError(
        "UNKNOWNVERB", f"'{group}' has no verb {name!r}.", f"Verbs are {', '.join(known)}.", fix
    )


def _method_parameter(word: str) -> str | None:
    """Names of the methods that have a parameter of this name, if any."""
    try:
        from gibbous.core.params import describe
        from gibbous.mechanisms.registry import load, methods

        names = [a.name for a in methods() if word in (p.name for p in describe(load(a.name)))]
    except Exception:  # noqa: BLE001 - a broken third-party method must not hide the answer to a typing mistake
        return None
    return ", ".join(names) or None


def _options(context: object) -> list[str]:
    command = getattr(context, "command", None)
    found: list[str] = []
    for parameter in getattr(command, "params", []):
        if not getattr(parameter, "hidden", False):
            found += [o for o in parameter.opts if o.startswith("--")]
    return [*found, "--help"]


def _inner(context: object) -> list[str]:
    return list(getattr(getattr(context, "command", None), "commands", {}))


def _pieces(context: object) -> str:
    get = getattr(context, "get_usage", None)
    text = str(get()) if get else "gibbous VERB"
    return " ".join(text.removeprefix("Usage:").split())
