"""Who signed a release: its folder and the keys that the reader trusts in, a sentence or a refusal out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from gibbous.core.errors import EngineFailure, ModelRejected
from gibbous.write import manifest
from gibbous.write.durable_files import read_json, refusing, rejected
from gibbous.write.signature import RELEASE, NotSigned, PublicKey, signer_of

State = Literal["unsigned", "unknown key", "not checked", "signed"]


@dataclass(frozen=True, slots=True)
class Signer:
    """What was found out about the signature of a release.

    Attributes:
        state: "signed" is said of a key that the reader gave, and of no other.
        key: that signed; None where nobody did.
    """

    state: State
    key: PublicKey | None = None

    @property
    def words(self) -> str:
        """The same as a sentence."""
        key = self.key.words if self.key else ""
        return {
            "unsigned": "not signed: no key says who made it",
            "signed": f"signed by {key}, whose key you gave, over every file of the manifest",
            "unknown key": f"signed with the key {key}; whose key that is, was not checked: give the "
            "public key of whoever you expect (--key)",
            "not checked": f"it says that it is signed with the key {key}, which was not checked: the "
            "extra 'sign' of gibbous is not installed",
        }[self.state]

    @property
    def brief(self) -> str:
        """The same in a few words."""
        if self.key is None:
            return "it is not signed"
        return (
            f"signed by {self.key.words}"
            if self.state == "signed"
            else "its signer was not checked"
        )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        key = self.key
        named = {"fingerprint": key.fingerprint, "name": key.name or None} if key else {}
        return {"state": self.state} | named


UNSIGNED = Signer("unsigned")


def check_signature(folder: Path, trusted: Sequence[PublicKey] = ()) -> Signer:
    """Look who signed a release whose files were found to be those of its manifest.

    Args:
        trusted: keys of which one has to be the signer's; none takes any key, and no signature.
    Raises:
        ModelRejected: its signature is damaged or not of this manifest; or it is not one of a trusted key.
        EngineFailure: keys were given, and the extra "sign" is not installed.
    """
    named = _named(folder)
    if named is None:
        if trusted:
            raise _not_theirs(folder, trusted, "UNSIGNED", "It is not signed.")
        return UNSIGNED
    try:
        key = signer_of(
            manifest.signature_text(folder), (folder / "manifest.json").read_bytes(), RELEASE
        )
    except NotSigned as error:
        raise rejected("SIGNATURE", f"its signature {error}") from None
    except EngineFailure:
        if trusted:
            raise
        return Signer("not checked", named)
    if key != named:
        raise rejected("SIGNATURE", "its signature is not of the key that its manifest names")
    theirs = next((one for one in trusted if one == key), None)
    if trusted and theirs is None:
        raise _not_theirs(
            folder, trusted, "SIGNER", f"It is signed with the key {key.fingerprint}."
        )
    return Signer("signed", theirs) if theirs else Signer("unknown key", key)


def _named(folder: Path) -> PublicKey | None:
    """The key that the manifest says it is signed with."""
    document = read_json(folder / "manifest.json")
    with refusing("SIGNATURE", "its manifest does not name the key that signed it"):
        return PublicKey.of(document["signer"]) if "signer" in document else None


def _not_theirs(folder: Path, trusted: Sequence[PublicKey], name: str, what: str) -> ModelRejected:
    holders = " or ".join(key.words for key in trusted)
    return ModelRejected(
        name,
        f"Nothing shows that {str(folder)!r} is from {holders}. {what}",
        "It counts as theirs only with a signature of that key over the files as they stand.",
        "Ask the holder of the key for the signed release; do not use this one as theirs.",
        state="Its files were hashed and not read further, and nothing was run.",
    )
