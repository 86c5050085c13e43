"""release.toml, --set and flags become one request, exactly and with answers to mistakes."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from gibbous.cli.config import method_of, number, resolve
from gibbous.core.errors import ParameterError, UsageError
from gibbous.core.exact import exact
from gibbous.core.schema import Column, Schema

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
    assert found.data == folder / "in.csv"
    assert found.schema == folder / "sub/schema.toml"
    assert found.out == folder / "out"
    assert (found.method, found.rows, found.sets) == ("sbhg", 500, 2)
    assert (found.seed, found.format) == (7, "csv")
    assert found.params.keys() == {"relation", "epsilon", "delta", "parents"}


def test_set_overrides_the_file_and_flags_override_the_file(release_toml: Path) -> None:
    found = resolve(
        release_toml,
        ["privacy.epsilon=0.5", "parents=4", "output.rows=10"],
        {"output.sets": 5, "mechanism.name": "noisy_pegs", "data": None},
    )

    assert str(found.params["epsilon"]) == "0.5"
    assert (found.params["parents"], found.rows, found.sets) == (4, 10, 5)
    assert found.method == "noisy_pegs"


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
        ('schema = "s"\n[output]\nformat = "xlsx"', "'parquet' or 'csv'"),
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

    assert str(found.params["epsilon"]) == "0.5"
    assert found.params["relation"] == "replace_one"


@pytest.mark.parametrize("key", ["output.per_set=true", None])
def test_per_set_gives_every_set_noise_of_its_own(release_toml: Path, key: str | None) -> None:
    flags = {} if key else {"output.per_set": True}
    found = resolve(release_toml, [key] if key else [], flags)

    method = method_of(found)

    assert found.per_set
    assert method.about.name == "per_set"
    assert method.plan(SCHEMA, 40, 3).params["method"] == "sbhg"
