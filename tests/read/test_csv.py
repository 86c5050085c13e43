"""CSV files: catalogue A of faults, each with its exit code; and what the accepted ones mean."""

from __future__ import annotations

import csv
import gzip
import io
import os
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gibbous.core.schema import Column, Schema
from gibbous.read.csv_file import DroppedLines, ReadOptions, read_csv
from gibbous.read.infer import infer_schema
from gibbous.read.source import probe, read_columns
from tests.read.refusal import MARKER, refused

TWO = Schema((Column("a", "nominal", ("1", "2")), Column("b", "nominal", ("x", "y"))))


def written(tmp_path: Path, content: bytes | str, name: str = "d.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


REFUSED = {
    "a1_zero_bytes": (b"", 3, "EMPTY", "file is empty"),
    "a1_only_a_byte_order_mark": (b"\xef\xbb\xbf", 3, "EMPTY", "file is empty"),
    "a3_short_and_long_rows": (
        f"a,b\n1,x\n{MARKER}\n1,x,{MARKER}\n2,y\n".encode(),
        3,
        "RAGGED",
        "2 lines do not have 2 fields, the first is line 3",
    ),
    "a3_blank_line_in_the_middle": (b"a,b\n1,x\n\n2,y\n", 3, "RAGGED", "line 3"),
    "a4_duplicate_header": (b"a,a,b\n1,2,3\n", 3, "DUPCOL", "(positions 1, 2)"),
    "a5_names_differing_by_case": (b"a,A\n1,2\n", 3, "NEARNAMES", "(positions 1, 2)"),
    "a5_names_differing_by_blanks": (b"a, a\n1,2\n", 3, "NEARNAMES", "(positions 1, 2)"),
    "a5_names_differing_by_unicode_form": (
        "\u00e9,e\u0301\n1,2\n".encode(),
        3,
        "NEARNAMES",
        "positions 1, 2",
    ),
    "a6_blank_header": (b"a,\n1,2\n", 3, "BLANKNAME", "Column 2"),
    "a6_star": (b"a,*\n1,2\n", 3, "PATTERN", "column 2"),
    "a6_pattern": (b"^a.*$,b\n1,2\n", 3, "PATTERN", "column 1"),
    "a7_latin_1_bytes": (
        f"a,b\n1,caf\u00e9 {MARKER}\n".encode("latin-1"),
        3,
        "ENCODING",
        "not UTF-8 at byte 9 (line 2)",
    ),
    "a8_utf_16_with_mark": ("a,b\n1,x\n".encode("utf-16"), 3, "UTF16", "Save it as UTF-8"),
    "a8_utf_16_without_mark": ("a,b\n1,x\n".encode("utf-16-le"), 3, "NUL", "UTF-16"),
    "a9_nul_byte": (f"a,b\n1,{MARKER}\n2,\0\n".encode(), 3, "NUL", "line 3"),
    "a10_unclosed_quote": (
        f'a,b\n1,x\n2,"{MARKER}\n1,x\n2,y\n'.encode(),
        3,
        "UNCLOSEDQUOTE",
        "opens on line 3",
    ),
    "a10_quote_that_a_later_quote_seems_to_close": (
        f'a,b\n1,"{MARKER}\n2,"y"\n'.encode(),
        3,
        "UNCLOSEDQUOTE",
        "opens on line 2",
    ),
    "a10_text_after_the_closing_quote": (b'a,b\n1,"x"y\n', 3, "UNCLOSEDQUOTE", "line 2"),
    "a10_quote_inside_a_bare_field": (b'a,b\n1,x\n2,5" pipe\n', 3, "STRAYQUOTE", "Line 3"),
    "a11_lone_carriage_return": (b"a,b\n1,x\ry\n", 3, "LINEENDS", "Line 2"),
    "a11_old_mac_line_ends": (b"a,b\r1,x\r", 3, "LINEENDS", "Unix"),
    "a12_semicolons": (b"a;b\n1;2,5\n", 3, "SEPARATOR", "1 column found, 2 expected. "),
    "a12_one_column_only": (b"a\n1\n", 3, "SEPARATOR", "1 column found, 2 expected"),
    "parquet_named_as_csv": (b"PAR1....\n", 3, "NOTCSV", ".parquet"),
    "gzip_named_as_csv": (gzip.compress(b"a,b\n1,x\n", mtime=10**9), 3, None, ""),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_faulty_file_is_rejected(case: str, tmp_path: Path) -> None:
    content, code, name, says = REFUSED[case]
    path = written(tmp_path, content)

    with refused(code, name) as caught:
        read_columns(path, schema=TWO)

    assert says in caught.text


def test_a1_an_empty_gzip_file_is_rejected(tmp_path: Path) -> None:
    with refused(3, "EMPTY"):
        read_columns(written(tmp_path, gzip.compress(b""), "d.csv.gz"))


def test_a2_a_header_without_rows_is_an_empty_table_under_a_schema(tmp_path: Path) -> None:
    for text in ("a,b\n", "a,b", "a,b\n\n\n"):
        frame = read_columns(written(tmp_path, text), schema=TWO)

        assert frame.shape == (0, 2)
        assert frame.dtypes == [pl.String, pl.String]


def test_a3_a_line_above_the_names_is_not_answered_with_dropping_all_others(tmp_path: Path) -> None:
    path = written(tmp_path, "# made by X\na,b\n1,x\n2,y\n")

    with refused(3, "RAGGED") as caught:
        read_csv(path, ReadOptions(), null="", expected=None)

    assert "fields of the first line is 1, of line 2 2, and no other" in caught.text
    assert "drop" not in caught.text


def test_a3_dropping_bad_lines_is_explicit_and_counted(tmp_path: Path) -> None:
    path = written(tmp_path, f"a,b\n1,x\n{MARKER}\n1,2,3\n2,y\n")

    with pytest.warns(
        DroppedLines, match="2 lines do not have 2 fields, the first is line 3"
    ) as seen:
        frame = read_columns(path, schema=TWO, options=ReadOptions(on_bad_line="drop"))

    assert frame.rows() == [("1", "x"), ("2", "y")]
    assert MARKER not in str(seen[0].message)


def test_a3b_other_names_are_a_mismatch_that_lists_both(tmp_path: Path) -> None:
    with refused(4, "COLUMNS") as caught:
        read_columns(
            written(tmp_path, "a,b,c\n1,x,y\n"), schema=Schema((*TWO, replace(TWO["b"], name="d")))
        )

    assert "missing from the data: 'd'" in caught.text
    assert "not in the schema: 'c'" in caught.text


def test_a7_latin_1_is_read_when_it_is_declared(tmp_path: Path) -> None:
    path = written(tmp_path, "a,b\n1,café\n".encode("latin-1"))

    assert read_columns(path, options=ReadOptions(encoding="latin-1")).rows() == [("1", "café")]


def test_a8_a_byte_order_mark_is_accepted(tmp_path: Path) -> None:
    path = written(tmp_path, b"\xef\xbb\xbfa,b\n1,x\n")

    assert read_columns(path, schema=TWO).columns == ["a", "b"]


@pytest.mark.parametrize("head", [b"\xef\xbb\xbf\xef\xbb\xbfa,b", b"a,\xef\xbb\xbfb"])
def test_a_byte_order_mark_in_a_name_is_refused(tmp_path: Path, head: bytes) -> None:
    path = written(tmp_path, head + b"\n1,x\n2,y\n")

    for read in (read_columns, infer_schema):
        with refused(3, "BYTEORDER"):
            read(path)


def test_a10_an_unclosed_quote_in_a_long_file_names_its_line(tmp_path: Path) -> None:
    rows = "1,xxxxxxxxxxxx\n" * 1_500_000
    path = written(tmp_path, f'a,b\n1,x\n2,"{MARKER}\n{rows}')

    with refused(3, "UNCLOSEDQUOTE") as caught:
        read_columns(path)

    assert "line 3" in caught.text


def test_a11_mixed_line_ends_give_the_same_table(tmp_path: Path) -> None:
    for text in (b"a,b\r\n1,x\n2,y\r\n", b"a,b\n1,x\r\n2,y", b'"a",b\r\n"1",x\n2,"y"\r\n'):
        assert read_columns(written(tmp_path, text)).rows() == [("1", "x"), ("2", "y")]


def test_a11_line_ends_inside_quotes_are_data(tmp_path: Path) -> None:
    frame = read_columns(written(tmp_path, b'a,b\r\n"l1\r\nl2","p\rq"\r\n'))

    assert frame.rows() == [("l1\r\nl2", "p\rq")]


def test_a12_the_declared_separator_is_used(tmp_path: Path) -> None:
    semicolons = written(tmp_path, "a;b\n1;2,5\n")
    tabs = written(tmp_path, "a\tb\n1\t2,5\n", "d.tsv")

    assert read_columns(semicolons, options=ReadOptions(sep=";")).rows() == [("1", "2,5")]
    assert read_columns(tabs).rows() == [("1", "2,5")]


def test_a14_a15_every_text_is_kept_and_only_the_null_text_is_null(tmp_path: Path) -> None:
    texts = ["01234", "NA", "NULL", "None", "nan", "N/A", "-", "true", "1e5", " x ", "0x10"]
    path = written(tmp_path, "a,b\n" + "".join(f"{t},1\n" for t in texts) + ',1\n"",1\n')

    plain = read_columns(path)["a"].to_list()
    declared = Schema((Column("a", "nominal", ("x",)), Column("b", "nominal", ("1",))), null="NA")
    with_null = read_columns(path, schema=declared)["a"].to_list()

    assert plain == [*texts, None, None]
    assert with_null == [None if t == "NA" else t for t in texts] + ["", ""]


def test_a15_a_level_that_is_the_null_text_is_refused(tmp_path: Path) -> None:
    schema = Schema((Column("a", "nominal", ("NA", "ZA")),), null="NA")

    with refused(2, "NULLTEXT"):
        read_columns(written(tmp_path, "a\nNA\n"), schema=schema)


def test_a19_a_field_of_40_mb_is_a_resource_limit(tmp_path: Path) -> None:
    path = written(tmp_path, b"a,b\n1," + b"x" * 40_000_000)

    with refused(10, "LONGRECORD"):
        read_columns(path)


def test_a20_100_000_columns_are_refused_at_the_header(tmp_path: Path) -> None:
    header = ",".join(f"column_{i}" for i in range(100_000))
    path = written(tmp_path, header + "\n" + ",".join("1" * 100_000) + "\n")

    start = time.process_time()
    with refused(10, "TOOMANYCOLUMNS"):
        read_columns(path)

    assert time.process_time() - start < 2


@pytest.mark.slow
def test_a21_a_gzip_bomb_is_stopped_while_it_unpacks(tmp_path: Path) -> None:
    path = written(
        tmp_path, gzip.compress(b"a,b\n" + (b"1," + b"x" * 1000 + b"\n") * 75_000, 9), "d.csv.gz"
    )

    with refused(10, "BOMB"):
        read_columns(path)
    with refused(10, "TOOLARGE"):
        read_columns(path, options=ReadOptions(max_bytes=1_000_000))


def test_a21_gzip_is_read_in_several_members_and_refused_when_damaged(tmp_path: Path) -> None:
    packed = gzip.compress(b"a,b\n1,x\n") + gzip.compress(b"2,y\n")
    whole = written(tmp_path, packed, "d.csv.gz")

    assert read_columns(whole).rows() == [("1", "x"), ("2", "y")]
    for damaged in (packed[:-9], packed[:20] + b"\xff" * 10 + packed[30:], b"a,b\n1,x\n"):
        with refused(3, "GZIP"):
            read_columns(written(tmp_path, damaged, "e.csv.gz"))


def test_a22_archives_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "d.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../../x.csv", "a,b\n1,x\n")

    with refused(3, "ARCHIVE"):
        read_columns(path)
    path.rename(tmp_path / "d.csv")
    with refused(3):
        read_columns(tmp_path / "d.csv")


def test_a23_a_file_that_changes_while_it_is_read_is_an_engine_failure(tmp_path: Path) -> None:
    from gibbous.read.files import opened

    path = written(tmp_path, "a,b\n1,x\n")

    with refused(11, "INPUTCHANGED"), opened(path) as file:
        file.read()
        with path.open("a") as more:
            more.write("2,y\n")


def test_a24_only_one_regular_local_file_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "dangling.csv").symlink_to(tmp_path / "nowhere.csv")
    (tmp_path / "device.csv").symlink_to("/dev/zero")
    names = [
        "pipe.csv",
        "folder.csv",
        "dangling.csv",
        "device.csv",
        "none.csv",
        "*.csv",
        "n\0l.csv",
    ]

    for name in names:
        with refused(3, "NOTAFILE"):
            read_columns(tmp_path / name)
    for address in (
        "http://example.org/d.csv",
        "s3://bucket/d.csv",
        Path("https://example.org/d.csv"),
    ):
        with refused(3, "NOTAFILE") as caught:
            read_columns(address)
        assert "://" in caught.text
    with refused(3, "FORMAT"):
        read_columns(written(tmp_path, "a,b\n", "d.xlsx"))


def test_a24_odd_file_names_are_read(tmp_path: Path) -> None:
    for name in ('d"q.csv', "d\nn.csv", "-d.csv", "d[1]*.csv", "ü.csv"):
        assert read_columns(written(tmp_path, "a,b\n1,x\n", name)).height == 1


def test_a25_hostile_names_and_values_are_plain_data(tmp_path: Path) -> None:
    names = [
        'a"; drop table t; --',
        "x" * 10_000,
        "🌖",
        "\u202eabc",
        "__proto__",
        "<script>",
        "a\nb",
    ]
    text = io.StringIO()
    csv.writer(text).writerows([names, ["=1+1", "#c", "'", '"', ",", "\n", "\\"]])

    frame = read_columns(written(tmp_path, text.getvalue()))

    assert frame.columns == names
    assert frame.rows() == [("=1+1", "#c", "'", '"', ",", "\n", "\\")]


def test_one_column_keeps_its_blank_lines_as_missing(tmp_path: Path) -> None:
    frame = read_columns(written(tmp_path, '\ufeff"a"\n\nx\n\n"y, z"\n""\n'))

    assert frame["a"].to_list() == [None, "x", None, "y, z", None]


def test_bad_reading_options_are_usage_errors() -> None:
    for wrong in ({"sep": ";;"}, {"sep": '"'}, {"encoding": "ebcdic"}, {"on_bad_line": "skip"}):
        with refused(2, "READOPTIONS"):
            ReadOptions(**wrong)  # type: ignore[arg-type]


def test_a_probe_reads_the_header_only(tmp_path: Path) -> None:
    path = written(tmp_path, b"a,b\n1,x\n\xff\n")

    assert probe(path).names == ("a", "b")
    assert probe(path).kind == "csv"


cells = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=5)


@pytest.mark.slow
@given(
    st.lists(st.tuples(cells, cells, cells), max_size=8),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.sampled_from([",", ";", "\t"]),
)
def test_what_a_csv_writer_writes_is_read_back(
    rows: list[tuple[str, str, str]], end: str, quoting: int, sep: str
) -> None:
    if any("\r" in cell for row in rows for cell in row):
        quoting = csv.QUOTE_ALL  # with LF line ends the writer leaves a carriage return bare
    text = io.StringIO()
    writer = csv.writer(text, lineterminator=end, quoting=quoting, delimiter=sep)
    writer.writerows([("a", "b", "c"), *rows])
    path = Path(os.environ["GIBBOUS_HOME"]) / "round.csv"
    path.write_bytes(text.getvalue().encode())

    frame = read_columns(path, options=ReadOptions(sep=sep))

    assert frame.rows() == [tuple(v or None for v in row) for row in rows]


def test_pieces_cut_anywhere_give_the_same_table(tmp_path: Path) -> None:
    from gibbous.read.csv_text import pieces

    text = 'a,b\r\n1,"x\r\ny"\r\n2,"p""q"\n"é",\n\n'.encode()
    whole = [(p.text, p.fields.tolist()) for p in pieces(iter([text]), ",", "utf-8")]

    for cut in range(1, len(text)):
        parts = list(pieces(iter([text[:cut], text[cut:]]), ",", "utf-8"))

        assert b"".join(p.text for p in parts) == b"".join(t for t, _ in whole)
        assert [f for p in parts for f in p.fields.tolist()] == [f for _, fs in whole for f in fs]
