"""Keys, signed releases and signed heads of a ledger on the command line, as a board member reads them."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from gibbous.core.schema import Column, Schema, Unit
from gibbous.privacy.ledger import Ledger
from gibbous.read.schema_write import schema_toml
from tests.cli.conftest import Cli

NAME = "Office of Health Data"


@pytest.fixture
def work(home: Path) -> Path:
    folder = home.parent / "work"
    schema = Schema((Column("sex", "binary", levels=("f", "m")),), unit=Unit("row"))
    (folder / "schema.toml").write_text(schema_toml(schema))
    (folder / "in.csv").write_text("sex\n" + "f\nm\nm\n" * 40)
    (folder / "word").write_text("five horses\n")
    return folder


def synthesize(cli: Cli, *more: object, out: str = "rel") -> object:
    run = ("synthesize", "in.csv", "-s", "schema.toml", "-m", "laplace", "-e", "1", "-n", "20")
    done = cli(*run, "--out", out, *more)
    assert done.code == 0, done.err
    return done


def test_a_board_reads_whole_signed_paid_in_this_order(cli: Cli, work: Path) -> None:
    made = cli("keys", "new", "office", "--name", NAME, "--passphrase-file", "word")
    synthesize(cli, "--sign", "office", "--passphrase-file", "word")

    done = cli("verify", "rel", "--key", "office.pub", "--ledger", "../home/ledger.sqlite")

    fingerprint = made.out.split("(")[-1].split(")")[0]
    lines = done.out.splitlines()
    assert done.code == 0, done.err
    assert lines[0].endswith("files are exactly those of the manifest, with their digests")
    assert lines[1].startswith(f"  ok: signed by '{NAME}' ({fingerprint}), whose key you gave")
    assert lines[2].startswith("  ok: the parts of the cost add up")
    assert lines[-2] == "  ok: the ledger holds this reservation and this commit in its chain"
    assert lines[-1].endswith(f"; signed by '{NAME}' ({fingerprint}).")
    assert "five horses" not in done.out + made.out


def test_the_passphrase_is_read_from_standard_input_where_it_is_asked_for(
    cli: Cli, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def given(text: str) -> None:
        monkeypatch.setattr("sys.stdin", io.StringIO(text))

    run = ("synthesize", "in.csv", "-s", "schema.toml", "-m", "laplace", "-e", "1", "-n", "20")
    signed = (*run, "--out", "rel", "--sign", "office", "--passphrase-file", "-")
    given("five horses\r\nmore\n")
    assert cli("keys", "new", "office", "--name", NAME, "--passphrase-file", "-").code == 0
    given("")
    assert "is encrypted, and no passphrase was given" in cli(*signed).err
    given("five horses")
    assert cli(*signed).code == 0


@pytest.mark.parametrize("quiet", [(), ("--quiet",)], ids=["all lines", "quiet"])
def test_an_unsigned_release_is_called_so_and_refused_as_somebodys(
    cli: Cli, work: Path, quiet: tuple[str, ...]
) -> None:
    cli("keys", "new", "office", "--name", NAME, "--no-passphrase")
    synthesize(cli)

    plain = cli("verify", "rel", *quiet)
    asked = cli("verify", "rel", "--key", "office.pub", *quiet)

    assert plain.code == 0
    assert "  NOT SIGNED: no key says who made it\n" in plain.out
    assert plain.out.endswith("rel is whole and says what it is; it is not signed.\n")
    assert asked.code == 8
    assert asked.out == ""
    assert asked.err.startswith(f"error[GB8-UNSIGNED]: Nothing shows that 'rel' is from '{NAME}' (")
    assert "It is not signed." in asked.err


@pytest.mark.slow
def test_a_request_file_and_a_report_sign_too(cli: Cli, work: Path) -> None:
    cli("keys", "new", "office", "--name", NAME, "--no-passphrase")
    (work / "release.toml").write_text(
        'data = "in.csv"\nschema = "schema.toml"\n[mechanism]\nname = "laplace"\n'
        '[privacy]\nepsilon = 1\n[output]\nrows = 20\npath = "rel"\nsign = "office"\n'
    )

    assert cli("synthesize", "--config", "release.toml").code == 0
    assert cli("verify", "rel", "--key", "office.pub").code == 0
    refused = cli("report", "rel")
    assert cli("report", "rel", "--sign", "office").code == 0
    signature = json.loads(cli("verify", "rel", "--key", "office.pub", "--json").out)["signature"]

    assert refused.code == 2
    assert "--sign KEY" in refused.err
    assert (signature["state"], signature["name"]) == ("signed", NAME)


def test_a_key_that_does_not_open_is_refused_before_anything_is_spent(cli: Cli, work: Path) -> None:
    cli("keys", "new", "office", "--name", NAME, "--passphrase-file", "word")
    (work / "other").write_text("six horses\n")
    run = ("synthesize", "in.csv", "-s", "schema.toml", "-m", "laplace", "-e", "1", "--out", "rel")

    for more, words in (
        ((), "is encrypted, and no passphrase was given"),
        (("--passphrase-file", "other"), "is not opened by this passphrase"),
        (("--passphrase-file", "absent"), "is missing or cannot be read"),
    ):
        done = cli(*run, "-n", "20", "--sign", "office", *more)
        assert done.code == 2
        assert words in done.err
        assert done.err.endswith("no budget was spent.\n")
        assert not (work / "rel").exists()
    assert not (work.parent / "home" / "ledger.sqlite").exists()


@pytest.mark.parametrize(
    ("more", "name"),
    [
        (("--name", NAME), "PASSPHRASE"),  # no terminal to ask on
        (("--name", NAME, "--no-passphrase", "--passphrase-file", "word"), "PASSPHRASE"),
        (("--name", "two\nlines", "--no-passphrase"), "KEYNAME"),
    ],
)
def test_a_key_is_not_made_by_halves(
    cli: Cli, work: Path, more: tuple[str, ...], name: str
) -> None:
    done = cli("keys", "new", "office", *more)

    assert done.code == 2
    assert f"GB2-{name}" in done.err
    assert not (work / "office").exists()


def test_a_head_that_a_notary_keeps_finds_a_ledger_that_was_put_back(cli: Cli, work: Path) -> None:
    cli("keys", "new", "office", "--name", NAME, "--no-passphrase")
    cli("keys", "new", "mallory", "--name", "Mallory", "--no-passphrase")
    ledger = work.parent / "home" / "ledger.sqlite"
    synthesize(cli, out="first")
    old = {path: path.read_bytes() for path in ledger.parent.iterdir() if path.is_file()}
    synthesize(cli, "--fresh", out="second")
    line = cli("ledger", "head", "--sign", "office").out
    Path("line").write_text(line)
    Path("forged").write_text(line.replace(" 4 ", " 3 ", 1))
    Path("bare").write_text(line.rpartition(" ")[0])
    Path("theirs").write_text(cli("ledger", "head", "--sign", "mallory").out)

    good = cli("ledger", "head", "--check", "line", "--key", "office.pub")
    bad = [
        cli("ledger", "head", "--check", name, "--key", "office.pub")
        for name in ("forged", "bare", "theirs")
    ]
    synthesize(cli, "--fresh", out="third")
    later = cli("ledger", "head", "--check", "line", "--key", "office.pub")
    for path in ledger.parent.iterdir():
        path.is_dir() or path.unlink()
    for path, whole in old.items():
        path.write_bytes(whole)
    back = cli("ledger", "head", "--check", "line", "--key", "office.pub")

    assert line.startswith(f"gibbous-ledger-head/1 {Ledger.read(ledger).name} 4 ")
    assert line.count("\n") == 1
    assert good.code == 0
    assert good.out.startswith(f"  ok: signed by '{NAME}' (SHA256:")
    assert good.out.endswith("holds entry 4 as it was; newer entries: 0.\n")
    assert later.out.endswith("holds entry 4 as it was; newer entries: 2.\n")
    assert [done.code for done in bad] == [8, 8, 8]
    assert "does not belong to what it is said to sign" in bad[0].err
    assert "it is not signed" in bad[1].err
    assert "signed with another key" in bad[2].err
    assert back.code == 7
    assert "an old copy" in back.err


def test_a_line_about_another_ledger_is_refused(cli: Cli, work: Path) -> None:
    synthesize(cli)
    whole = cli("ledger", "head").out.split()
    Path("line").write_text(" ".join([whole[0], "0" * 32, *whole[2:]]))

    done = cli("ledger", "head", "--check", "line")

    assert done.code == 8
    assert "which entry of which ledger" in done.err
