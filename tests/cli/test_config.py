"""release.toml, --set and flags become one request, exactly and with answers to mistakes."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from fractions import Fraction
from inspect import signature
from pathlib import Path

import pytest
from scipy.stats import norm

from gibbous.cli.config import method_of, parameters, request_of, resolve
from gibbous.cli.parameters import number
from gibbous.core.errors import ParameterError, UsageError
from gibbous.core.exact import exact
from gibbous.core.request import Imprint, Output, Performance, Privacy, Request
from gibbous.core.schema import Column, Schema, Unit
from gibbous.mechanisms.noisy_pegs import NoisyPegs
from gibbous.privacy.spend import Charge, spend
from gibbous.promise import privacy_of
from gibbous.read.schema_write import schema_toml
from gibbous.write.purchases import request_digest

TOML = """
data = "in.csv"
schema = "sub/schema.toml"
[privacy]
relation = "replace_one"
epsilon = 0.10
delta = 1e-9
[mechanism]
name = "sbhg"
parents = 3
[output]
rows = 500
sets = 2
seed = 7
format = "csv"
path = "out"
[evaluate]
keys = ["age"]
[audit]
runs = 9
"""

SCHEMA = Schema(tuple(Column(name, "binary", levels=("a", "b")) for name in "xyzuv"))


@pytest.fixture
def release_toml(tmp_path: Path) -> Path:
    path = tmp_path / "conf" / "release.toml"
    path.parent.mkdir()
    path.write_text(TOML)
    return path


def test_every_key_of_the_file_arrives_and_paths_are_relative_to_it(release_toml: Path) -> None:
    found = resolve(release_toml, [], {})

    folder = release_toml.parent
    assert found["data"] == folder / "in.csv"
    assert found["schema"] == folder / "sub/schema.toml"
    assert found["output.path"] == folder / "out"
    assert found["mechanism.name"] == "sbhg"
    assert (found["output.rows"], found["output.sets"], found["output.seed"]) == (500, 2, 7)
    assert found["output.format"] == "csv"
    assert parameters(found).keys() == {"relation", "epsilon", "delta", "parents"}


def test_set_overrides_the_file_and_flags_override_the_file(release_toml: Path) -> None:
    found = resolve(
        release_toml,
        ["privacy.epsilon=0.5", "parents=4", "output.rows=10"],
        {"output.sets": 5, "mechanism.name": "noisy_pegs", "data": None},
    )

    assert str(found["privacy.epsilon"]) == "0.5"
    assert found["mechanism.parents"] == 4
    assert (found["output.rows"], found["output.sets"]) == (10, 5)
    assert found["mechanism.name"] == "noisy_pegs"


@pytest.mark.parametrize("text", ["0.1", ".1", "1e-1", "0.10", "1E-1"])
def test_e7_budgets_are_read_as_decimal_text(text: str) -> None:
    assert exact(number("epsilon", text)) == Fraction(1, 10)


@pytest.mark.parametrize("text", ["abc", "", "1,5", "0x1", "1/2", "sNaN"])
def test_e2_a_budget_that_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(ParameterError, match="decimal number"):
        number("epsilon", text)


def test_a_budget_with_more_digits_than_survive_is_refused_not_rounded() -> None:
    with pytest.raises(ParameterError, match="more digits"):
        number("epsilon", "0.1000000000000000055")


def test_d3_an_unknown_key_is_answered_with_the_nearest(release_toml: Path) -> None:
    release_toml.write_text(TOML.replace("epsilon", "epsilom"))

    with pytest.raises(UsageError, match="Did you mean 'epsilon'"):
        resolve(release_toml, [], {})


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("schema = 3", "a path"),
        ('schema = "s"\n[output]\nrows = 1.5', "whole number"),
        ('schema = "s"\n[output]\nrows = -1', "whole number, >= 0"),
        ('schema = "s"\n[output]\nsets = 0', "whole number, >= 1"),
        ('schema = "s"\n[output]\nsets = true', "whole number, >= 1"),
        ('schema = "s"\n[output]\nformat = "ods"', "one of parquet, csv, sav, dta, xlsx"),
        ('schema = "s"\n[mechanism]\nname = 3', "a name"),
        ('schema = "s"\noutput = 3', "has no key 'output'"),
        ("schema", "not TOML"),
        ('schema = "s"\nschema = "t"', "not TOML"),
        ("[privacy]\nepsilon = 1", "No schema was given"),
        ('schema = "s"\n[privacy]\nepsilon = 1\n[mechanism]\nepsilon = 2', "given twice"),
    ],
)
def test_a_wrong_file_is_refused_in_words(release_toml: Path, wrong: str, words: str) -> None:
    release_toml.write_text(wrong)

    with pytest.raises(UsageError, match=words):
        resolve(release_toml, [], {})


@pytest.mark.parametrize(
    ("settings", "flags"),
    [
        (["epsilon=1", "epsilon=2"], {}),
        (["privacy.epsilon=1"], {"privacy.epsilon": "2"}),
    ],
)
def test_the_same_key_twice_with_different_values_is_refused(
    settings: list[str], flags: dict[str, object]
) -> None:
    with pytest.raises(UsageError, match="given twice"):
        resolve(None, settings, flags | {"schema": Path("s")})


@pytest.mark.parametrize("text", ["parents", "=3", ""])
def test_a_setting_without_key_and_value_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="KEY=VALUE"):
        resolve(None, [text], {"schema": Path("s")})


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"a = " + b"[" * 100_000, b"x" * (1 << 21)])
def test_a_hostile_configuration_is_refused_quickly(release_toml: Path, content: bytes) -> None:
    release_toml.write_bytes(content)

    with pytest.raises(UsageError):
        resolve(release_toml, [], {})


def test_a_budget_is_the_same_key_with_or_without_its_section() -> None:
    found = resolve(None, ["epsilon=0.5", "relation=replace_one"], {"schema": Path("s")})

    assert str(found["privacy.epsilon"]) == "0.5"
    assert found["privacy.relation"] == "replace_one"


@pytest.mark.parametrize("key", ["output.per_set=true", None])
def test_per_set_gives_every_set_noise_of_its_own(release_toml: Path, key: str | None) -> None:
    flags = {} if key else {"output.per_set": True}
    found = resolve(release_toml, [key] if key else [], flags)

    method = method_of(found)

    assert found["output.per_set"]
    assert method.about.name == "per_set"
    assert method.plan(SCHEMA, 40, 3).params["method"] == "sbhg"


def test_file_flags_and_keywords_make_one_request(tmp_path: Path) -> None:
    (tmp_path / "schema.toml").write_text(schema_toml(replace(SCHEMA, unit=Unit("row"))))
    file = tmp_path / "release.toml"
    file.write_text(
        'data = "x.csv"\nschema = "schema.toml"\n[privacy]\nepsilon = 1\n[mechanism]\n'
        'name = "noisy_pegs"\n[output]\nrows = 5\nseed = 3\nformat = "csv"\npath = "out"\n'
        'issuer = "A"\nsign = "key"\n[engine]\nname = "local"\n'
    )
    flags = {
        "data": str(tmp_path / "x.csv"), "schema": tmp_path / "schema.toml", "privacy.epsilon": "1",
        "mechanism.name": "noisy_pegs", "output.rows": 5, "output.seed": 3, "output.format": "csv",
        "output.path": tmp_path / "out", "output.issuer": "A", "engine.name": "local",
        "output.sign": tmp_path / "key",
    }  # fmt: skip

    by_file = request_of(resolve(file, [], {}), csv_raw=False)
    by_flags = request_of(resolve(None, [], flags), csv_raw=False)
    by_keywords = Request(
        tmp_path / "x.csv",
        privacy_of(tmp_path / "schema.toml", NoisyPegs(epsilon=1.0)),
        Output(5, 1, 3, "csv", out=tmp_path / "out", imprint=Imprint("A"), sign=tmp_path / "key"),
        Performance("local"),
    )

    assert by_file == by_flags == by_keywords
    assert by_file.source == by_keywords.source


def test_how_a_run_is_computed_is_no_part_of_what_it_is_known_by(tmp_path: Path) -> None:
    """The digest and the code that computes are given two of the three parts, never the third."""
    names = {part: {f.name for f in fields(part)} for part in (Privacy, Output, Performance)}
    given = {
        str(parameter.annotation)
        for function in (request_digest, spend, Charge.reserve)
        for parameter in signature(function).parameters.values()
    }

    assert not names[Performance] & (names[Privacy] | names[Output])
    assert {"Privacy", "Output", "Plan"} <= given
    assert not {text for text in given if "Performance" in text or text == "Request"}


def test_a_risk_in_the_file_and_as_a_flag_make_one_request_whose_mu_allows_no_more(
    tmp_path: Path,
) -> None:
    wide = Schema(tuple(replace(SCHEMA.columns[0], name=f"c{j}") for j in range(12)), unit=Unit())
    (tmp_path / "schema.toml").write_text(schema_toml(wide))
    (tmp_path / "small.toml").write_text(schema_toml(replace(SCHEMA, unit=Unit())))
    base = f'schema = "{tmp_path}/schema.toml"\n[privacy]\n'
    small = base.replace("schema.toml", "small.toml")
    (tmp_path / "c.toml").write_text(small + "delta = 1e-9\n")
    (tmp_path / "a.toml").write_text(base + 'risk = "tpr@1%=3%"\ndelta = 1e-9\n')
    (tmp_path / "b.toml").write_text(base + "delta = 1e-9\n")

    by_file = request_of(resolve(tmp_path / "a.toml", [], {}))
    by_flag = request_of(resolve(tmp_path / "b.toml", [], {"privacy.risk": "tpr@1%=3%"}))
    at_once = request_of(resolve(tmp_path / "c.toml", [], {"privacy.risk": "tpr@1%=3%"}))

    assert by_file.privacy.method == by_flag.privacy.method
    total, alone = (
        one.privacy.method.plan(one.privacy.schema, None).total for one in (by_file, at_once)
    )
    mu = float(total.mu_squared) ** 0.5
    assert norm.cdf(norm.ppf(0.01) + mu) == pytest.approx(0.03, rel=1e-6)
    # One table of geometric noise: of pure epsilon, true alarms are at most e^epsilon times the false ones.
    assert alone.kind == "pure"
    assert 0.01 * math.exp(alone.epsilon) == pytest.approx(0.03, rel=1e-6)
    with pytest.raises(UsageError, match="Both epsilon and a risk"):
        request_of(
            resolve(tmp_path / "b.toml", [], {"privacy.risk": "tpr@1%=3%", "privacy.epsilon": "1"})
        )
