"""`gibbous keys new`, and the private keys that other verbs sign with: opened before anything is done."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gibbous.cli import show
from gibbous.core.documents import Unreadable, read_text
from gibbous.core.errors import UsageError
from gibbous.write.signature import MAX_BYTES, SigningKey, new_key

if TYPE_CHECKING:
    from gibbous.cli.flags import ScreenFlags
    from gibbous.cli.output_flags import SignFlags


def new(
    out: Path, name: str, passphrase_file: Path | None, plain: bool, screen: ScreenFlags
) -> None:
    """Write a private key and, beside it, its public half.

    Args:
        name: for people: who signs with it.
        plain: whether the private key is left without a passphrase.
    """
    if plain and passphrase_file is not None:
        raise UsageError(
            "PASSPHRASE",
            "Both --no-passphrase and --passphrase-file were given.",
            "A key has a passphrase or none.",
            "Leave out one of them.",
        )
    secret = "" if plain else _from(passphrase_file) if passphrase_file else _twice(out)
    public = new_key(out, name, secret)
    beside = out.with_name(f"{out.name}.pub")
    if screen.json:
        named = {"fingerprint": public.fingerprint, "name": public.name}
        show.as_json({"private": str(out), "public": str(beside)} | named)
        return
    if not screen.quiet:
        show.line(f"{out}: the private key. Keep it; whoever can open it signs as you.")
        show.line(
            f"{beside}: the public key. Give it to whoever checks your releases, and tell them"
        )
        show.line("  the fingerprint by another way, for example by telephone.")
    show.line(f"key of {public.words}")


def opened(given: SignFlags) -> SigningKey | None:
    """The key that a verb signs with; None where none is named. Its passphrase is in a file, or asked for.

    Raises:
        UsageError, EngineFailure: see `SigningKey.load`.
    """
    path, kept = given.sign, given.passphrase_file
    if path is None:
        return None
    return SigningKey.load(path, lambda: _from(kept) if kept else _ask(path))


def _from(path: Path) -> str:
    if str(path) == "-":
        return sys.stdin.readline(MAX_BYTES).rstrip("\r\n") if sys.stdin else ""
    try:
        return read_text(path, MAX_BYTES).split("\n", 1)[0].rstrip("\r")
    except Unreadable as error:
        raise UsageError(
            "PASSPHRASE",
            f"The file {str(path)!r} {error}.",
            "Its first line is the passphrase of the key.",
            "Correct --passphrase-file.",
        ) from None


def _twice(path: Path) -> str:
    first = _ask(path)
    if not first or first != _ask(path, "again "):
        raise UsageError(
            "PASSPHRASE",
            "No passphrase was given, or not the same one twice.",
            "It encrypts the private key. It is asked for on a terminal, and shown nowhere.",
            "Try again, or pass --passphrase-file FILE, or --no-passphrase for a key without one.",
        )
    return first


def _ask(path: Path, again: str = "") -> str:
    import getpass

    if not (sys.stdin and sys.stdin.isatty()):
        return ""
    return getpass.getpass(f"Passphrase of {path} {again}(not shown): ")
