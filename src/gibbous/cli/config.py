"""A release request from three places, in this order: release.toml, --set key=value, flags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gibbous.cli.defaults import DEFAULT_METHOD
from gibbous.cli.mistakes import unknown
from gibbous.core.documents import Unreadable, read_text, toml
from gibbous.core.errors import ParameterError, PrivacyRefused, UsageError
from gibbous.core.exact import DIGITS
from gibbous.core.imprint import NONE_GIVEN, Imprint

if TYPE_CHECKING:
    from gibbous.core.protocols import Mechanism

IMPRINT = ("issuer", "contact", "date", "license")
TOP = ("data", "schema", "geography")
SECTIONS = {
    "privacy": ("relation", "epsilon", "delta", "shares"),
    "mechanism": ("name",),  # and its parameters
    "output": ("rows", "sets", "per_set", "seed", "format", "path", "part_rows", *IMPRINT),
    "engine": ("name", "partitions", "master", "conf"),
    "evaluate": ("keys", "sensitive", "targets", "holdout", "path"),
    "audit": (),
}
ELSEWHERE = ("evaluate", "audit")  # sections of the same file that other verbs read
PATHS = ("data", "schema", "geography", "output.path")
FORMATS = ("parquet", "csv")
FILES = (".csv", ".gz", ".tsv", ".txt", ".parquet", ".pq")
MAX_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class EngineRequest:
    """Where records are counted and rows are drawn; nothing here changes what is promised.

    Attributes:
        name: an engine; None for the one that fits the source.
        partitions: of the rows that a cluster draws, and of what it counts.
        master: address of a Spark cluster.
        conf: settings of the Spark session.
    """

    name: str | None = None
    partitions: int | None = None
    master: str | None = None
    conf: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """What one release was asked to be; nothing in it comes from the data.

    Attributes:
        data: the confidential input; None when only the cost is asked for.
        schema: schema file.
        geography: file of the places of a table of flows, in place of a schema.
        method: registered name.
        params: of the method, as given (defaults are not filled in).
        rows: rows a set; None for the noisy number of rows.
        per_set: every set has noise of its own.
        sets, seed, format, out: as in `gibbous synthesize`.
        part_rows: most rows of one file of a set; None for the default.
        engine: where the records are counted.
        imprint: who stands behind the release.
    """

    data: Path | str | None
    schema: Path
    method: str
    params: dict[str, object]
    rows: int | None
    sets: int
    per_set: bool
    seed: int | None
    format: str
    out: Path | None
    part_rows: int | None
    engine: EngineRequest
    geography: Path | None = None
    imprint: Imprint = NONE_GIVEN


def resolve(config: Path | None, settings: Sequence[str], flags: Mapping[str, object]) -> Request:
    """Merge the three places into one request.

    Args:
        config: path of release.toml, or None.
        settings: texts "key=value"; a key without a dot is a parameter of the method.
        flags: dotted key -> value; None for flags that were not given.
    Raises:
        UsageError: an unknown key, a key given twice with different values, a wrong type.
        ParameterError: a budget that is not a number.
    """
    merged = read_config(config) if config else {}
    merged |= _combined(settings, flags)
    for key in list(merged):
        if key.split(".")[0] in ELSEWHERE:
            del merged[key]
    schema, geography = merged.pop("schema", None), merged.pop("geography", None)
    if (schema is None) == (geography is None):
        raise UsageError(
            "NOSCHEMA",
            "No schema was given."
            if schema is None
            else "Both a schema and a geography were given.",
            "A run needs a schema file: levels, bounds and the privacy unit are declared in it. For "
            "flows a geography takes its place.",
            "Pass --schema FILE; `gibbous schema infer DATA -o schema.toml` writes a draft.",
        )
    data, out = merged.pop("data", None), merged.pop("output.path", None)
    form = merged.pop("output.format", "parquet")
    if form not in FORMATS:
        raise _wrong("output.format", "--format", "'parquet' or 'csv'")
    return Request(
        data=_source(data),
        schema=_path("schema", schema) or Path(),
        method=_named("mechanism.name", "--method", merged.pop("mechanism.name", DEFAULT_METHOD)),
        rows=_count("output.rows", merged.pop("output.rows", None), 0),
        sets=_count("output.sets", merged.pop("output.sets", 1), 1) or 1,
        per_set=_truth("output.per_set", merged.pop("output.per_set", False)),
        seed=_count("output.seed", merged.pop("output.seed", None), None),
        format=str(form),
        out=_path("output.path", out),
        part_rows=_count("output.part_rows", merged.pop("output.part_rows", None), 1),
        engine=_engine(merged),
        geography=_path("geography", geography),
        imprint=_imprint(merged),
        params={key.partition(".")[2]: value for key, value in merged.items()},
    )


def read_config(path: Path) -> dict[str, object]:
    """release.toml as dotted keys; relative paths are relative to the file.

    Raises:
        UsageError: not readable, not TOML, an unknown key.
    """
    try:
        document = toml(read_text(path, MAX_BYTES), parse_float=Decimal)
    except Unreadable as error:
        raise UsageError(
            "CONFIG",
            f"The configuration {str(path)!r} {error}.",
            "It is a UTF-8 text file in TOML of at most 1 MB; keys are data, schema, [privacy], "
            "[mechanism], [output].",
            "Check the path given to --config, or correct it; text is quoted, for example "
            'schema = "schema.toml".',
        ) from None
    flat = _flatten(document, str(path))
    for key in PATHS:
        text = flat.get(key)
        if isinstance(text, str) and not (key == "data" and _is_table(text, path.parent)):
            flat[key] = path.parent / text
    return flat


def _is_table(text: str, folder: Path) -> bool:
    """Whether a source names a table: scheme://..., file::table, or catalog.db.table; no path."""
    if "://" in text or "::" in text:
        return True
    plain = "/" in text or Path(text).suffix.lower() in FILES or "*" in text
    return not plain and text.count(".") in (1, 2) and not (folder / text).exists()


def method_of(request: Request, fixed: Mapping[str, Any] | None = None) -> Mechanism:
    """The mechanism of a request; with noise of its own for every set, where that is asked for."""
    built = build_method(request.method, request.params, fixed)
    if not request.per_set:
        return built
    from gibbous.mechanisms.per_set import PerSet

    return PerSet(built)


def build_method(
    name: str, given: Mapping[str, object], fixed: Mapping[str, Any] | None = None
) -> Mechanism:
    """A mechanism from its registered name and loose parameters.

    Raises:
        UsageError: unknown method or parameter.
        PrivacyRefused: a budget for a method that makes no such claim, or none for one that does.
    """
    from gibbous.core.params import build, describe
    from gibbous.mechanisms.registry import load

    method = load(name)
    known = [p.name for p in describe(method)]
    params = {key: _value(key, value) for key, value in given.items()}
    if "relation" not in known and params.get("relation") == "add_remove":
        del params["relation"]  # a method without the parameter is under add_remove
    if "delta" not in known and params.get("delta") == 0:
        del params["delta"]
    for key in ("epsilon", "delta"):
        if key in params and key not in known:
            raise _no_such_budget(name, key, "epsilon" in known)
    if "epsilon" in known and "epsilon" not in params:
        raise ParameterError(
            "NOEPSILON",
            f"No epsilon was given for {name}.",
            "A budget is stated, never assumed.",
            "Pass --epsilon, for example --epsilon 1; `gibbous plan` shows what it buys.",
        )
    built: Mechanism = build(method, params, **(fixed or {}))
    return built


def _combined(settings: Sequence[str], flags: Mapping[str, object]) -> dict[str, object]:
    given: dict[str, object] = {}
    for text in settings:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise UsageError(
                "SET",
                f"--set {text!r} is not KEY=VALUE.",
                "For example --set parents=3, or --set privacy.epsilon=0.5.",
                "Put one = between key and value, without spaces.",
            )
        _add(given, _full_key(key.strip()), _literal(value.strip()), "--set")
    for flag, wanted in flags.items():
        if wanted is not None:
            _add(given, flag, wanted, "its flag")
    return given


def _add(given: dict[str, object], key: str, value: object, how: str) -> None:
    if key in given and str(given[key]) != str(value):
        raise UsageError(
            "TWICE",
            f"{key} is given twice with different values, the second time by {how}.",
            "Flags and --set override the file; nothing overrides within one of them.",
            "Give it once.",
        )
    given[key] = value


def _full_key(key: str) -> str:
    key = key.replace("-", "_")
    section, dot, name = key.partition(".")
    if not dot:
        return key if key in TOP else _home(key)
    if section not in SECTIONS:
        raise unknown(section, [*TOP, *SECTIONS], "The configuration")
    if section == "mechanism" and name in SECTIONS["privacy"]:
        return f"privacy.{name}"
    if section != "mechanism" and SECTIONS[section] and name not in SECTIONS[section]:
        raise unknown(name, SECTIONS[section], f"[{section}]")
    return key


def _home(key: str) -> str:
    # The budget lives in [privacy]; every other bare key is a parameter of the method.
    return f"privacy.{key}" if key in SECTIONS["privacy"] else f"mechanism.{key}"


def _flatten(document: Mapping[str, object], path: str) -> dict[str, object]:
    flat: dict[str, object] = {}
    for key, value in document.items():
        if key in TOP:
            flat[key] = value
        elif key not in SECTIONS or not isinstance(value, dict):
            raise unknown(key, [*TOP, *SECTIONS], path)
        else:
            for name, inner in value.items():
                _add(flat, _full_key(f"{key}.{name}"), inner, path)
    return flat


def _literal(text: str) -> object:
    """A --set value: read as TOML, else taken as text."""
    try:
        return toml(f"value = {text}", parse_float=Decimal)["value"]
    except Unreadable:
        return text


def _value(key: str, value: object) -> object:
    if key in ("epsilon", "delta"):
        return number(key, value)
    if isinstance(value, Decimal):
        return number(key, value)
    if isinstance(value, list):
        return tuple(_value(key, item) for item in value)
    return value


def number(key: str, value: object) -> float:
    """A budget as written, in decimal text, to the float that stands for exactly that text.

    Raises:
        ParameterError: not a number, or more digits than survive.
    """
    try:
        if isinstance(value, bool):
            raise InvalidOperation
        decimal = Decimal(str(value).strip())
        near = float(decimal)
    except (InvalidOperation, ValueError, OverflowError):
        raise ParameterError(
            "NUMBER",
            f"{key} is {str(value)[:40]!r}.",
            "It is a decimal number.",
            f"For example {key}={'1e-9' if key == 'delta' else '1'}.",
        ) from None
    long = len(decimal.as_tuple().digits) > DIGITS
    if isfinite(near) and near != 0 and (long or Fraction(repr(near)) != Fraction(decimal)):
        raise ParameterError(
            "DIGITS",
            f"{key} has more digits than are kept exactly.",
            "Budgets are exact decimals of at most 15 significant digits.",
            f"Round {key} to fewer digits.",
        )
    return near


def _no_such_budget(name: str, key: str, has_epsilon: bool) -> PrivacyRefused:
    if has_epsilon:
        return PrivacyRefused(
            "NODELTA",
            f"{name} has no {key}, and {key} was given.",
            "Its claim is pure epsilon: there is nothing for delta to do.",
            f"Leave {key} out, or choose a method with (epsilon, delta).",
        )
    return PrivacyRefused(
        "NOTDP",
        f"{name} makes no claim of differential privacy, and {key} was given.",
        "A method without that proof is never combined with such a claim.",
        f"Leave {key} out, or choose a method with {key}; `gibbous methods` lists what is proven.",
    )


def _source(value: object) -> Path | str | None:
    if isinstance(value, str) and _is_table(value, Path()):
        return value
    return _path("data", value)


def _engine(merged: dict[str, object]) -> EngineRequest:
    name, master, conf = (merged.pop(f"engine.{key}", None) for key in ("name", "master", "conf"))
    partitions = _count("engine.partitions", merged.pop("engine.partitions", None), 1)
    pairs = conf if isinstance(conf, Mapping) else {}
    if not (conf is None or isinstance(conf, Mapping)):
        raise _wrong("engine.conf", "--spark-conf", "KEY=VALUE, or a table in the file")
    return EngineRequest(
        None if name is None else _named("engine.name", "--engine", name),
        partitions,
        None if master is None else _named("engine.master", "--master", master),
        tuple((str(key), str(value)) for key, value in pairs.items()),
    )


def _imprint(merged: dict[str, object]) -> Imprint:
    given = {name: merged.pop(f"output.{name}", None) for name in IMPRINT}
    for name, value in given.items():
        if not isinstance(value, str | date | None):
            raise _wrong(f"output.{name}", f"--{name}", "text")
    return Imprint(**{name: str(value) for name, value in given.items() if value is not None})


def _named(key: str, flag: str, value: object) -> str:
    if isinstance(value, str) and value:
        return value
    raise _wrong(key, flag, "a name, as text")


def _path(key: str, value: object) -> Path | None:
    if value is None or isinstance(value, Path):
        return value
    if isinstance(value, str) and value and "\0" not in value:
        return Path(value)
    raise _wrong(key, key, "a path, as text")


def _count(key: str, value: object, lowest: int | None) -> int | None:
    if value is None:
        return None
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or (lowest is not None and int(str(value)) < lowest):
        more = "" if lowest is None else f", >= {lowest}"
        raise _wrong(key, f"--{key.partition('.')[2]}", f"a whole number{more}")
    return int(str(value))


def _truth(key: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise _wrong(key, f"--{key.partition('.')[2].replace('_', '-')}", "true or false")
    return value


def _wrong(key: str, flag: str, allowed: str) -> UsageError:
    return UsageError("VALUE", f"{key} has a wrong value.", f"It is {allowed}.", f"Correct {flag}.")
