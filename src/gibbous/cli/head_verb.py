"""`gibbous ledger head`: the newest entry of a ledger in one line, signed or not; such a line, checked."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gibbous.cli import show
from gibbous.cli.keys_verb import opened
from gibbous.core.documents import Unreadable, read_text
from gibbous.core.errors import ModelRejected, UsageError
from gibbous.privacy.ledger import Ledger
from gibbous.write.signature import HEAD, MAX_BYTES, NotSigned, PublicKey, public_keys, signer_of

if TYPE_CHECKING:
    from gibbous.cli.flags import MachineFlags
    from gibbous.cli.output_flags import SignFlags

FORMAT = "gibbous-ledger-head/1"


def run(
    path: Path | None,
    signing: SignFlags,
    check: Path | None,
    key: Path | None,
    machine: MachineFlags,
) -> None:
    """Print the line of a ledger, or hold a line that was printed earlier against it.

    Args:
        check: file of the earlier line; None prints a new one.
        key: public keys of which one has to have signed that line.
    Raises:
        LedgerUnusable: there is no such ledger, it is damaged, or does not hold the entry any longer.
        ModelRejected: the line is not signed by such a key, or was changed.
        UsageError, EngineFailure: a key cannot be read.
    """
    if check is None:
        if key is not None:
            raise UsageError(
                "HEAD",
                "--key was given without --check.",
                "A public key checks a line that was printed and signed earlier.",
                "Pass --check FILE, or --sign PRIVATE to sign a new line.",
            )
        signer, ledger = opened(signing), Ledger.read(path)
        line = _line(ledger, ledger.head)
        if signer:
            line = f"{line} {base64.b64encode(signer.sign(line.encode(), HEAD).encode()).decode()}"
        show.as_json({"line": line}) if machine.json else show.line(line)
        return
    line, signature = _read(check)
    said = _signed_by(line, signature, public_keys(key) if key is not None else ())
    ledger, head = Ledger.read(path), line.rpartition(" ")[2]
    ledger.verify(head)
    if _line(ledger, head) != line:
        raise _changed("it does not say which entry of which ledger has this hash")
    newer = len(ledger.entries()) - (ledger.number(head) or 0)
    if machine.json:
        show.as_json({"ok": True, "entry": ledger.number(head), "newer": newer, "signature": said})
        return
    show.line(f"  {said}")
    show.line(
        f"{ledger.path} holds entry {ledger.number(head)} as it was; newer entries: {newer:,}."
    )


def _line(ledger: Ledger, entry: str) -> str:
    return f"{FORMAT} {ledger.name} {ledger.number(entry)} {entry}"


def _read(path: Path) -> tuple[str, str]:
    """A line that was printed, and its signature or ""."""
    try:
        text = read_text(path, MAX_BYTES).strip()
    except Unreadable as error:
        raise UsageError(
            "HEAD",
            f"{str(path)!r} {error}.",
            "It is a file with the line that `gibbous ledger head` printed.",
            "Correct --check.",
        ) from None
    form, *fields = text.split(" ")
    if form != FORMAT or len(fields) not in (3, 4):
        raise _changed(f"it is not {FORMAT!r}, a ledger, a number, a hash, and at most a signature")
    return " ".join([form, *fields[:3]]), "".join(fields[3:])


def _signed_by(line: str, signature: str, trusted: Sequence[PublicKey]) -> str:
    if not signature and not trusted:
        return "NOT SIGNED: no key says who printed the line"
    try:
        signer = signer_of(base64.b64decode(signature).decode(), line.encode(), HEAD)
    except NotSigned as error:
        raise _changed(f"its signature {error}" if signature else "it is not signed") from None
    except ValueError:
        raise _changed("its signature is not whole") from None
    theirs = next((one for one in trusted if one == signer), None)
    if theirs is not None:
        return f"ok: signed by {theirs.words}"
    if trusted:
        raise _changed(f"it is signed with another key, {signer.words}")
    return f"NOT CHECKED: signed with the key {signer.words}; whose that is, --key checks"


def _changed(what: str) -> ModelRejected:
    return ModelRejected(
        "HEADLINE",
        f"This is not a line that `gibbous ledger head` printed for that key: {what}.",
        "The line is taken whole, as the notary has it.",
        "Get it again from the notary or the log; do not trust the ledger because of this one.",
        state="Nothing was read beyond that.",
    )
