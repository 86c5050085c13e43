"""Signatures in the form of OpenSSH: a key and bytes in, a text out; and whose key signed which bytes.

`ssh-keygen -Y verify` reads them, too, and OpenSSH's Ed25519 keys are taken as they are. A namespace keeps
a signature of one kind of document from standing under another kind.
"""

from __future__ import annotations

import base64
import hashlib
import os
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from gibbous.core.documents import Unreadable, read_bytes, read_text
from gibbous.core.errors import UsageError
from gibbous.core.extras import need
from gibbous.core.keywords import answering
from gibbous.write.durable_files import new_file

RELEASE, HEAD = "gibbous-release", "gibbous-ledger-head"  # namespaces
MAX_BYTES = 1 << 16  # of a file of keys, a passphrase or a signature
_KIND, _MAGIC, _HASH = b"ssh-ed25519", b"SSHSIG", b"sha512"
_BEGIN, _END = "-----BEGIN SSH SIGNATURE-----\n", "-----END SSH SIGNATURE-----\n"
_WIDTH = 70  # of the lines between them
_KEYS = "cryptography.hazmat.primitives.serialization"
_ED25519 = "cryptography.hazmat.primitives.asymmetric.ed25519"

Passphrase = str | bytes | Callable[[], str | bytes] | None


class NotSigned(ValueError):
    """A text that is not a signature, or not of these bytes; the words end a sentence about it."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """The public half of an Ed25519 key.

    Attributes:
        raw: 32 bytes.
        name: what the file that it was read from calls it; no part of the key.
    """

    raw: bytes
    name: str = field(default="", compare=False)

    @property
    def line(self) -> str:
        """As OpenSSH writes it, without a name."""
        return f"{_KIND.decode()} {base64.b64encode(self._blob).decode()}"

    @property
    def fingerprint(self) -> str:
        """As `ssh-keygen -l` prints it."""
        digest = base64.b64encode(hashlib.sha256(self._blob).digest()).decode()
        return f"SHA256:{digest.rstrip('=')}"

    @property
    def words(self) -> str:
        """Name and fingerprint, as they are printed."""
        shown = "".join(c if c.isprintable() else "?" for c in self.name)[:80]
        return f"{shown!r} ({self.fingerprint})" if shown else self.fingerprint

    @property
    def _blob(self) -> bytes:
        return _string(_KIND) + _string(self.raw)

    @staticmethod
    def of(line: str) -> PublicKey:
        """Read a line "ssh-ed25519 BASE64 NAME"; else ValueError."""
        kind, text, *name = line.split(None, 2)
        key = PublicKey(base64.b64decode(text, validate=True)[-32:], " ".join(name).strip())
        if len(key.raw) != 32 or key.line != f"{kind} {text}":
            raise ValueError("not an Ed25519 key")
        return key


class SigningKey:
    """The private half of an Ed25519 key; it cannot be printed, pickled or copied.

    Make it by `load`. `gibbous keys new` and `ssh-keygen -t ed25519` write such keys.

    Args:
        private: the key as the library `cryptography` has it.

    Attributes:
        public: its public half, which is all that a release holds of it.
    """

    __slots__ = ("_private", "public")

    def __init__(self, private: Any) -> None:
        self._private = private
        self.public = PublicKey(private.public_key().public_bytes_raw())

    def __repr__(self) -> str:
        return f"<SigningKey {self.public.fingerprint}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SigningKey) and self.public == other.public

    def __hash__(self) -> int:
        return hash(self.public)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a private key is not pickled")

    @staticmethod
    @answering
    def load(path: str | Path, passphrase: Passphrase = None) -> SigningKey:
        """Read a private key in OpenSSH's form.

        Args:
            path: the file, readable by its owner only.
            passphrase: of an encrypted key, or what gives it when it turns out to be needed.
        Raises:
            UsageError: it is no such key, others may read it, or the passphrase is missing or wrong.
            EngineFailure: the extra "sign" is not installed.
        """
        private = _opened(Path(path), passphrase)
        if not isinstance(private, need(_ED25519, "sign").Ed25519PrivateKey):
            raise _no_key(path)
        return SigningKey(private)

    def sign(self, message: bytes, namespace: str) -> str:
        """A signature of some bytes as a document of one kind.

        Guarantee:
            None of privacy: it says who stands behind the bytes, not that what they say is true.
        Source:
            Ed25519 [rfc8032]; SSHSIG [openssh, PROTOCOL.sshsig], with SHA-512.
        """
        signature = self._private.sign(_signed(message, namespace))
        return _armored(self.public, namespace, signature)


def signing_key(given: SigningKey | str | Path | None) -> SigningKey | None:
    """A key as it is, or read by `SigningKey.load` from its file, which has no passphrase."""
    return SigningKey.load(given) if isinstance(given, str | Path) else given


def new_key(path: Path, name: str, passphrase: str | bytes) -> PublicKey:
    """Write a new key, and its public half beside it with the ending .pub.

    Args:
        name: for people: who signs with it.
        passphrase: encrypts the private key; empty leaves it plain.
    Raises:
        UsageError: the name is not one line.
        OutputNotWritten: one of the two files exists, or cannot be written.
        EngineFailure: the extra "sign" is not installed.
    """
    if not name.isprintable() or not 0 < len(name) <= 80:
        raise UsageError(
            "KEYNAME",
            "The name of the key is empty, too long, or holds a character that cannot be printed.",
            "It is public text of at most 80 characters, for example 'Office of Health Data 2026'.",
            "Correct --name.",
        )
    serialization = need(_KEYS, "sign")
    key = need(_ED25519, "sign").Ed25519PrivateKey.generate()
    secret = passphrase.encode() if isinstance(passphrase, str) else passphrase
    encryption = (
        serialization.BestAvailableEncryption(secret) if secret else serialization.NoEncryption()
    )
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, encryption
    )
    public = PublicKey(key.public_key().public_bytes_raw(), name)
    beside = path.with_name(f"{path.name}.pub")
    with new_file(beside) as file:
        file.write(f"{public.line} {name}\n".encode())
        with new_file(path) as private:
            private.write(text)
    beside.chmod(0o644)
    return public


def public_keys(path: str | Path) -> tuple[PublicKey, ...]:
    """The public keys of a file, one a line, each with its name; UsageError for anything else."""
    try:
        lines = [line.strip() for line in read_text(Path(path), MAX_BYTES).splitlines()]
        keys = tuple(PublicKey.of(line) for line in lines if line and not line.startswith("#"))
    except Unreadable as error:
        raise _no_public_key(path, str(error)) from None
    except ValueError:
        raise _no_public_key(path, "does not hold public Ed25519 keys") from None
    if not keys:
        raise _no_public_key(path, "holds no key")
    return keys


def signer_of(text: str, message: bytes, namespace: str) -> PublicKey:
    """Whose key signed these bytes as a document of this kind. Whose that key is, it cannot say.

    Raises:
        NotSigned: it is not a signature, or one of other bytes, or of another kind of document.
        EngineFailure: the extra "sign" is not installed.
    """
    key, found, signature = _parsed(text)
    if found != namespace:
        raise NotSigned("was made for another kind of document")
    verifier = need(_ED25519, "sign").Ed25519PublicKey.from_public_bytes(key.raw)
    try:
        verifier.verify(signature, _signed(message, namespace))
    except need("cryptography.exceptions", "sign").InvalidSignature:
        raise NotSigned("does not belong to what it is said to sign") from None
    return key


def _parsed(text: str) -> tuple[PublicKey, str, bytes]:
    """Key, namespace and signature; of each signature there is one text, and no other is taken."""
    lines = text.removeprefix(_BEGIN).removesuffix(_END)
    try:
        blob = base64.b64decode(lines.replace("\n", ""), validate=True)
        parts, rest = list[bytes](), blob[10:]
        while rest and len(parts) < 5:
            (size,) = struct.unpack(">I", rest[:4])
            parts.append(rest[4 : 4 + size])
            rest = rest[4 + size :]
        key, namespace, signature = PublicKey(parts[0][-32:]), parts[1].decode(), parts[4][-64:]
        if text == _armored(key, namespace, signature):
            return key, namespace, signature
    except (ValueError, IndexError, struct.error):
        pass
    raise NotSigned("is not a whole Ed25519 signature in the form of OpenSSH")


def _armored(key: PublicKey, namespace: str, signature: bytes) -> str:
    blob = _MAGIC + struct.pack(">I", 1)
    for part in (key._blob, namespace.encode(), b"", _HASH, _string(_KIND) + _string(signature)):
        blob += _string(part)
    text = base64.b64encode(blob).decode()
    lines = [text[at : at + _WIDTH] + "\n" for at in range(0, len(text), _WIDTH)]
    return _BEGIN + "".join(lines) + _END


def _signed(message: bytes, namespace: str) -> bytes:
    """What is really signed: the digest, under its namespace."""
    parts = (namespace.encode(), b"", _HASH, hashlib.sha512(message).digest())
    return _MAGIC + b"".join(map(_string, parts))


def _string(part: bytes) -> bytes:
    return struct.pack(">I", len(part)) + part


def _opened(path: Path, passphrase: Passphrase) -> Any:
    refused = (ValueError, need("cryptography.exceptions", "sign").UnsupportedAlgorithm)
    data, load = _private_bytes(path), need(_KEYS, "sign").load_ssh_private_key
    try:
        return load(data, None)
    except TypeError:  # it is encrypted
        given = passphrase() if callable(passphrase) else passphrase
    except refused:
        raise _no_key(path) from None
    if not given:
        raise _wrong_passphrase(path, "is encrypted, and no passphrase was given")
    try:
        return load(data, given.encode() if isinstance(given, str) else given)
    except refused:
        raise _wrong_passphrase(path, "is not opened by this passphrase") from None


def _private_bytes(path: Path) -> bytes:
    try:
        data = read_bytes(path, MAX_BYTES)
    except Unreadable as error:
        raise _no_key(path, str(error)) from None
    if not data.startswith(b"-----BEGIN"):
        raise _no_key(path)
    if os.name == "posix" and path.stat().st_mode & 0o077:
        raise UsageError(
            "KEYMODE",
            f"The private key {str(path)!r} may be read by other users.",
            "Whoever reads it can sign in your name.",
            f"Run: chmod 600 {str(path)!r}; if others had access, make a new key.",
        )
    return data


def _no_key(path: str | Path, what: str = "is not a private Ed25519 key") -> UsageError:
    return UsageError(
        "KEY",
        f"{str(path)!r} {what}.",
        "It is one in the form of OpenSSH; other kinds (RSA, ECDSA) and hardware keys are not taken.",
        "Pass the private key, not the .pub file, or make one with `gibbous keys new`.",
    )


def _wrong_passphrase(path: str | Path, what: str) -> UsageError:
    return UsageError(
        "PASSPHRASE",
        f"The private key {str(path)!r} {what}.",
        "A passphrase is asked for on a terminal, or read from the first line of a file.",
        "Pass --passphrase-file FILE, or in Python SigningKey.load(path, passphrase).",
    )


def _no_public_key(path: str | Path, what: str) -> UsageError:
    return UsageError(
        "PUBLICKEY",
        f"{str(path)!r} {what}.",
        'A file of public keys has lines "ssh-ed25519 BASE64 NAME", as in KEY.pub.',
        "Ask whoever signs for their public key, and pass that file.",
    )
