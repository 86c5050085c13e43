"""`gibbous schema declare` and `suggest`: the file is edited, and the last line says what is left."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from gibbous.core.schema import Schema
from gibbous.read.infer import propose
from gibbous.read.schema_file import parse_schema, schema_toml
from tests.cli.conftest import Cli
from tests.read.test_declaring import DRAFT


def test_the_verbs_edit_the_file_and_say_what_is_next(cli: Cli, tmp_path: Path) -> None:
    data = pl.DataFrame({"age": list(range(40)) * 2, "sex": ["F", "M"] * 40})
    path, book = tmp_path / "schema.toml", tmp_path / "book.csv"
    path.write_text(propose(data).toml())
    book.write_text("variable,label,level,level label\nsex,Sex,F,female\nsex,,M,male\n")

    accepted = cli("schema", "suggest", str(path), "--accept")
    taken = cli("schema", "declare", str(path), "--all-of", str(book))
    last = cli("schema", "declare", str(path), "sex", "--no-missing")
    age = cli("schema", "declare", str(path), "age", "--no-missing", "--label", "Age")

    schema = Schema.load(path)
    assert [done.code for done in (accepted, taken, last, age)] == [0, 0, 0, 0]
    assert schema["sex"].level_labels == (("F", "female"), ("M", "male"))
    assert (schema["age"].edges[-1], schema["age"].label) == (120, "Age")
    assert schema.inferred() == ()
    assert "7 of 8 facts" in age.out
    assert "set [unit]" in age.out
    assert parse_schema(schema_toml(schema)) == schema


def test_levels_and_labels_come_from_a_codebook(cli: Cli, tmp_path: Path) -> None:
    path, book = tmp_path / "schema.toml", tmp_path / "book.csv"
    path.write_text(propose(pl.DataFrame({"ward": ["01", "02"] * 40})).toml())
    book.write_text(
        "variable,level,level label\nward,01,surgery\nward,02,medicine\nward,17,birth\n"
    )

    done = cli("schema", "declare", str(path), "ward", "--levels-from", str(book))

    ward = Schema.load(path)["ward"]
    assert done.code == 0
    assert ward.levels == ("01", "02", "17")
    assert ward.level_labels[2] == ("17", "birth")
    assert [fact for fact, _ in ward.sources] == ["kind", "missing"]
    assert f"Next: gibbous schema declare {path} ward --kind nominal" in done.out


@pytest.mark.parametrize(
    ("lines", "levels"),
    [("01\n17, birth\n\n  02 \n", ("01", "17, birth", "02")), ("3\n1\n2\n", (3, 1, 2))],
)
def test_levels_are_the_lines_of_a_text_file(
    cli: Cli, tmp_path: Path, lines: str, levels: tuple[str | int, ...]
) -> None:
    path, listed = tmp_path / "schema.toml", tmp_path / "levels.txt"
    held = ["01", "02"] if isinstance(levels[0], str) else [1, 2]
    path.write_text(propose(pl.DataFrame({"ward": held * 40})).toml())
    listed.write_text(lines)

    done = cli("schema", "declare", str(path), "ward", "--levels-from", str(listed))

    assert done.code == 0
    assert Schema.load(path)["ward"].levels == levels
    assert "ward: levels" not in Schema.load(path).inferred()


def test_what_the_data_chose_stays_inferred_when_accepted(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "schema.toml"
    path.write_text(propose(pl.DataFrame({"sex": ["F", "M"] * 40})).toml())

    cli("schema", "suggest", str(path), "--accept")

    assert "sex: levels" in Schema.load(path).inferred()


def test_a_declaration_that_is_refused_leaves_the_file(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "schema.toml"
    path.write_text(DRAFT)

    done = cli("schema", "declare", str(path), "age", "--lower", "0", "--upper", "110")

    assert done.code == 2
    assert path.read_text() == DRAFT


def test_a_declaration_of_nothing_is_answered(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "schema.toml"
    path.write_text(DRAFT)

    for typed, words in (
        ([], "No column was named"),
        (["age"], "Nothing was declared"),
        (["aeg", "--lower", "0"], "Did you mean 'age'?"),
    ):
        done = cli("schema", "declare", str(path), *typed)
        assert done.code == 2
        assert words in done.err


def test_cuts_and_a_catch_all_level_are_declared_and_a_look_is_told(
    cli: Cli, tmp_path: Path
) -> None:
    path = tmp_path / "schema.toml"
    data = pl.DataFrame({"age": list(range(40)) * 2, "sex": ["F", "M", "X", "Y"] * 20})
    path.write_text(propose(data).toml())

    age = ("--lower", "0", "--upper", "120", "--cuts", "18,65")
    done = [
        cli("schema", "declare", path, "age", *age),
        cli("schema", "declare", path, "sex", "--kind", "nominal", "--levels", "F,M", "--other", "else",
            "--inferred", "sex"),
        cli("schema", "suggest", path, "--accept", "--inferred", "age"),
    ]  # fmt: skip
    wrong = cli("schema", "declare", path, "age", *age, "--inferred", "agee")

    schema = Schema.load(path)
    assert [one.code for one in done] == [0, 0, 0], done
    assert schema["sex"].other == "else"
    assert schema["sex"].source("levels") == "inferred"
    assert "did you mean" in wrong.err.lower() or "no column" in wrong.err
    assert wrong.code == 2
    assert schema["age"].source("bounds") == "inferred"
