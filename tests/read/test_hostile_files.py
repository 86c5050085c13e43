"""Files made to stop, fill or hang whoever reads them: each is a refusal, and the next file is read."""

from __future__ import annotations

import contextlib
import gzip
import os
import signal
import subprocess
import sys
import time
import tomllib
import zlib
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gibbous.cli.config import read_config
from gibbous.cli.parameters import number
from gibbous.core.claim import Claim, pure
from gibbous.core.documents import Unreadable, json_value, read_text, toml
from gibbous.core.errors import LedgerUnusable, ParameterError, UsageError
from gibbous.core.exact import exact, from_text, text
from gibbous.core.schema import Column, Schema
from gibbous.flows.geography_file import load_geography
from gibbous.frontier.study_file import load as load_study
from gibbous.privacy.ledger import Ledger
from gibbous.read import parquet_child
from gibbous.read.csv_file import ReadOptions, read_csv
from gibbous.read.csv_text import parsed
from gibbous.read.metadata.files import import_schema
from gibbous.read.schema_file import load_schema
from gibbous.read.source import read_columns, read_slices
from tests.hostile import ABORT
from tests.needs import need
from tests.read.refusal import refused

DOTS = ".".join("a" * 40_000) + " = 1\n"
HUGE = "1e20000000"


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    path = tmp_path / "sound.parquet"
    pl.DataFrame({"a": ["x", "y"] * 500, "b": list(range(1000))}).write_parquet(path)
    return path


@pytest.mark.slow
def test_E_a_page_header_that_aborts_the_reader_is_a_refusal(tmp_path: Path, sound: Path) -> None:
    """Before: the reader stopped the whole process, exit 134. Now: exit 3."""
    path = tmp_path / "d.parquet"
    path.write_bytes(ABORT)
    alone = [
        sys.executable,
        "-c",
        "import polars, sys; polars.read_parquet(sys.argv[1])",
        str(path),
    ]
    assert subprocess.run(alone, capture_output=True).returncode == -signal.SIGABRT

    with refused(3, "PARQUET"):
        read_columns(path)

    assert read_columns(sound).height == 1000


@pytest.mark.parametrize(
    ("sent", "code", "name"),
    [
        (signal.SIGSEGV, 3, "PARQUET"),
        (signal.SIGXCPU, 10, "TIME"),
        (signal.SIGKILL, 10, "TOOLARGE"),
    ],
)
def test_E_however_the_child_ends_it_is_a_refusal(
    sound: Path, sent: signal.Signals, code: int, name: str
) -> None:
    """Before: there was no child; a crash, a hang and the system's own memory limit hit the run."""
    read_columns(sound)
    assert parquet_child._child is not None
    os.kill(parquet_child._child._process.pid, sent)

    with refused(code, name):
        read_columns(sound)

    assert read_columns(sound).height == 1000


def test_E_a_dictionary_of_long_texts_is_refused_before_it_is_decoded(tmp_path: Path) -> None:
    """Before: a file of 2 kB gave any number of texts of 1 MB. Now: exit 10."""
    path = tmp_path / "d.parquet"
    pl.DataFrame({"a": pl.repeat("x" * 1_000_000, 100, eager=True)}).write_parquet(path)
    assert path.stat().st_size < 5_000

    with refused(10, "TOOLARGE") as caught:
        read_columns(path)

    assert "256 kB in one cell" in caught.text


def test_E_width_times_rows_is_bounded_for_texts_that_are_allowed(tmp_path: Path) -> None:
    """Before: 24 bytes were counted for a text, whatever its length. Now: its length is."""
    path = tmp_path / "d.parquet"
    pl.DataFrame({"a": pl.repeat("x" * 60_000, 5_000, eager=True)}).write_parquet(path)
    schema = Schema((Column("a", "nominal", levels=("x",), other="rest"),))

    with refused(10, "TOOLARGE"):
        read_columns(path, options=ReadOptions(max_bytes=200_000_000))
    with read_slices(path, schema=schema) as (rows, frames):
        heights = [frame.height for frame in frames]

    assert sum(heights) == rows == 5_000
    assert max(heights) * 60_000 <= parquet_child.BATCH


@pytest.mark.slow
def test_E_texts_that_grow_while_they_are_decoded_end_the_child_alone(tmp_path: Path) -> None:
    """Before: a file of 469 bytes took 3.1 GB. Now: exit 10, and 1 GB in the child at most."""
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "d.parquet"
    table = pa.table({"a": ["x" * 1_000_000] * 1_500})
    parquet.write_table(
        table, path, use_dictionary=False, column_encoding={"a": "DELTA_BYTE_ARRAY"},
        compression="zstd",
    )  # fmt: skip
    assert path.stat().st_size < 1_000

    with refused(10):
        read_columns(path, options=ReadOptions(max_bytes=10_000_000))


READERS: dict[str, tuple[Callable[[Path], object], type[Exception]]] = {
    "schema": (load_schema, UsageError),
    "request": (read_config, UsageError),
    "geography": (load_geography, UsageError),
    "study": (load_study, UsageError),
}


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize(
    ("hostile", "why"),
    [(DOTS, "more than 8 parts"), ("a = " + "[" * 100_000, "more than 64 levels")],
)
def test_E_keys_and_nesting_are_counted_before_they_are_parsed(
    tmp_path: Path, kind: str, hostile: str, why: str
) -> None:
    """Before: a key of 40,000 dots took 19 seconds of the processor. Now: exit 2 at once."""
    read, error = READERS[kind]
    path = tmp_path / "file.toml"
    path.write_text(hostile)

    with pytest.raises(error, match=why):
        read(path)


@pytest.mark.parametrize("kind", READERS)
def test_E_a_large_text_file_is_refused_before_it_is_read(tmp_path: Path, kind: str) -> None:
    """Before: some readers took whatever there was, and a pipe made them wait. Now: exit 2."""
    read, error = READERS[kind]
    large, pipe = tmp_path / "large.toml", tmp_path / "pipe.toml"
    with large.open("wb") as file:
        file.truncate(1 << 40)
    os.mkfifo(pipe)

    for path in (large, pipe):
        with pytest.raises(error):
            read(path)


@pytest.mark.parametrize(
    "hidden",
    [
        '"""\n""" = {X}', "x = '''a''''\n{X}", 'x = """a"""""\n{X}', 'x = "a\\"" \n{X}', "# \"\n{X}",
        "# '''\n{X}", "[{X}]", "x = {{ {X} }}", "a . {X}",
    ],
)  # fmt: skip
def test_E_no_quote_and_no_comment_hides_a_key(hidden: str) -> None:
    """Before: nothing was counted."""
    key = ".".join("abcdefghi")

    with pytest.raises(Unreadable, match="more than 8 parts"):
        toml(hidden.format(X=f"{key} = 1" if "[" not in hidden else key))


@given(st.text(alphabet="a.\"'#=[]{}\n \\,1", max_size=30))
def test_E_whatever_is_short_is_parsed_as_ever(written: str) -> None:
    wanted: object = None
    try:
        wanted = tomllib.loads(written)
    except tomllib.TOMLDecodeError:
        with pytest.raises(Unreadable):
            toml(written)
    else:
        most = max((len(part) for part in written.replace(" ", "").split("\n")), default=0)
        if most <= 15:  # at most 8 parts
            assert toml(written) == wanted


def test_E_strings_may_hold_any_number_of_dots_and_brackets() -> None:
    body = ".".join("a" * 100) + "[" * 100
    written = f'a = "{body}"\nb = \'{body}\'\nc = """{body}\n"{body}"""\nd = 1 # {body}\n'

    assert toml(written) == tomllib.loads(written)
    assert json_value(f'{{"a": "{body}"}}') == {"a": body}


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("[" * 100_000, "levels"), ('{"a": 1, "a": 2}', "key twice"), ("1e999", "as JSON"),
        ("NaN", "as JSON"), ("9" * 5_000, "as JSON"), ("[", "as JSON"),
    ],
)  # fmt: skip
def test_E_json_is_bounded_and_says_everything_once(written: str, why: str) -> None:
    """Before: the second of two equal keys won, and 1e999 was infinite."""
    with pytest.raises(Unreadable, match=why):
        json_value(written)


@pytest.mark.parametrize("written", [HUGE, "1e-20000000", "0." + "1" * 200, "1" * 200, "1e401"])
def test_E_a_budget_is_a_short_decimal(written: str) -> None:
    """Before: 1e20000000 became a fraction of 20,000,000 digits, in minutes. Now: it is no number."""
    with pytest.raises(ValueError, match="short decimal"):
        exact(written)


@pytest.mark.parametrize("written", [HUGE, "1/0", "1/" + "3" * 5_000, "1_0", " 1", "١", 1, None])
def test_E_a_claim_in_a_file_is_a_short_exact_number(written: object) -> None:
    """Before: reading the claim of a receipt took minutes. Now: it is no claim."""
    claim = pure(Fraction(1)).to_json() | {"epsilon": written}

    with pytest.raises(ValueError, match="exact number"):
        Claim.from_json(claim)  # type: ignore[arg-type]


@given(st.fractions())
def test_E_every_exact_text_is_read_back(value: Fraction) -> None:
    assert from_text(text(value)) == value


def test_E_a_request_with_endless_digits_is_refused() -> None:
    """Before: a fraction of a million digits was made to compare it. Now: exit 5."""
    with pytest.raises(ParameterError, match="more digits"):
        number("epsilon", "1." + "1" * 1_000_000)


def test_E_a_ledger_whose_entry_has_a_huge_number_is_refused() -> None:
    """Before: opening the ledger took minutes. Now: exit 7."""
    ledger = Ledger.ephemeral()
    claim = pure(Fraction(1)).to_json() | {"epsilon": HUGE}
    with ledger._store.appending() as writer:
        public = {"kind": "reserve", "id": "r", "claim": claim, "mechanism": "m", "rows": None}
        writer.append(
            public | {"protects": "one row"}, {"dataset": "00" * 32, "label": "", "at": ""}
        )

    with pytest.raises(LedgerUnusable, match="what was charged"):
        ledger.entries()


def test_E_a_byte_order_mark_is_no_part_of_a_text(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(b"\xef\xbb\xbfa")

    assert read_text(path, 4) == "a"
    with pytest.raises(Unreadable, match="more than 3 bytes"):
        read_text(path, 3)


def test_text_that_begins_like_a_packed_file_is_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "powers.csv"
    path.write_text("f,n\nx^2,1\nx^3,2\n")

    frame = read_csv(path, ReadOptions(), null="", expected=None)

    assert frame.rows() == [("x^2", "1"), ("x^3", "2")]
    assert parsed(b"x^2,b\n1,2\n").columns == ["x^2", "b"]
    mark = "\ufeff"
    again = parsed(f"{mark}a,1\n{mark}a,2\n".encode(), has_header=False)
    assert (
        again.get_column("column_0").to_list() == [f"{mark}a"] * 2
    )  # a cell is a cell in any place
    assert parsed(f"{mark}a,b\n1,2\n".encode()).columns == ["a", "b"]


def test_a_cell_keeps_a_mark_that_only_a_header_loses(tmp_path: Path) -> None:
    """Before: the first record lost it, and others that say the same did not."""
    path = tmp_path / "marked.csv"
    path.write_text("\ufeffa,n\n\ufeffx,1\n\ufeffx,2\n")

    frame = read_csv(path, ReadOptions(), null="", expected=None)

    assert frame.columns == ["a", "n"]
    assert frame.rows() == [("\ufeffx", "1"), ("\ufeffx", "2")]
    assert parsed(path.read_bytes()).columns == ["a", "n"]


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
def test_packed_bytes_are_never_unpacked(pack: Callable[[bytes], bytes]) -> None:
    text = b"a,b\n" + b"1,2\n" * 100_000
    try:
        frame = parsed(pack(text))
    except (pl.exceptions.PolarsError, OSError):
        return
    assert frame.height < 1000
    assert frame.columns != ["a", "b"]


def test_E_yaml_whose_aliases_unfold_without_end_is_refused_and_few_are_read(
    tmp_path: Path,
) -> None:
    levels = "".join(f"  - &b{i} [*b{i - 1}, *b{i - 1}]\n" for i in range(1, 40))
    (tmp_path / "bomb.yaml").write_text(f"x:\n  - &b0 [1]\n{levels}METADATA_SPEC_VERSION: *b39\n")
    (tmp_path / "loop.yaml").write_text("columns: &a\n  b: *a\n")
    for name in ("bomb", "loop"):
        with pytest.raises(UsageError, match="huge"):
            import_schema(tmp_path / f"{name}.yaml")
    (tmp_path / "two.yaml").write_text(
        "columns: {a: {sdtype: boolean, x: &d 1}, b: {sdtype: boolean, x: *d}}\n"
    )

    assert import_schema(tmp_path / "two.yaml").names == ("a", "b")


@pytest.mark.parametrize("key", ["bins", "decimals", "lower", "levels"])
def test_E_a_hexadecimal_number_of_thousands_of_digits_is_a_refusal(
    tmp_path: Path, key: str
) -> None:
    huge = "0x" + "f" * 5_000
    path = tmp_path / "schema.toml"
    path.write_text(f'[[column]]\nname = "a"\nkind = "numeric"\n{key} = [{huge}]\n')

    with pytest.raises(UsageError, match="too large"):
        load_schema(path)


def test_E_variables_inside_of_variables_are_read_once(tmp_path: Path) -> None:
    deep = 30_000
    path = tmp_path / "deep.xml"
    inner = '<var name="v"><catgry><catValu>1</catValu></catgry>' * deep + "</var>" * deep
    path.write_text(f"<codeBook><dataDscr>{inner}</dataDscr></codeBook>")
    start = time.process_time()

    with contextlib.suppress(UsageError):
        import_schema(path)

    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    "value",
    ["0x" + "f" * 5_000, "!!bool x", "!!int ''", "!!timestamp x", "1" + ":59" * 300 + ".5"],
    ids=["endless digits", "bool", "int", "timestamp", "base 60"],
)
def test_E_yaml_whose_values_are_none_of_their_type_is_refused(tmp_path: Path, value: str) -> None:
    """Before: internal errors, of yaml and of the first message with the value in it."""
    need("formats extra")
    path = tmp_path / "d.yaml"
    path.write_text(f"METADATA_SPEC_VERSION: {value}\ncolumns:\n  a: {{sdtype: boolean}}\n")

    with pytest.raises(UsageError, match="cannot be read as YAML"):
        import_schema(path)
