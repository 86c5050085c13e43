"""A signed release is from whoever has the key; forged, cut, re-signed, downgraded ones are refused."""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gibbous.core.errors import GibbousError, ModelRejected, OutputNotWritten, UsageError
from gibbous.core.request import Output
from gibbous.privacy.ledger import Ledger
from gibbous.reporting import release_report
from gibbous.write import load, manifest, release_texts
from gibbous.write.sampled_rows import write_sampled
from gibbous.write.signature import HEAD, RELEASE, NotSigned, SigningKey, new_key, signer_of
from gibbous.write.verify import verify
from tests.needs import need
from tests.write import made
from tests.write.test_verify import edit, forged

OFFICE, MALLORY = "Office of Health Data", "Mallory"


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("signed")
    for key, name in (("office", OFFICE), ("mallory", MALLORY)):
        new_key(folder / key, name, "")
    ledger = Ledger.open(folder / "home" / "ledger.sqlite")
    made.write(folder / "rel", ledger, sign=SigningKey.load(folder / "office"))
    made.write(folder / "bare", Ledger.ephemeral())
    return folder


@pytest.fixture
def signed(origin: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(origin / "rel", tmp_path / "rel"))


def sealed(folder: Path, sign: SigningKey | None = None) -> None:
    manifest.seal(folder, sign=sign)


def cheaper(folder: Path) -> None:
    """A smaller price, consistent everywhere, as far as the noise allows."""
    document = json.loads((folder / "ledger.json").read_text())
    forged(document, "0.95")
    (folder / "ledger.json").write_text(json.dumps(document))
    tables = load.released_tables(folder, made.SCHEMA, document)
    for name, text in release_texts.release_texts(
        document, made.SCHEMA, tables, manifest.digests(folder)
    ).items():
        (folder / name).write_bytes(text)


def keep_signature(folder: Path, change: Callable[[Path], object]) -> None:
    """Change files and make every digest again; the manifest names the key, whose signature stays."""
    signature = (folder / manifest.SIGNATURE).read_bytes()
    signer = json.loads((folder / "manifest.json").read_text())["signer"]
    change(folder)
    sealed(folder)
    renamed(folder, signature, lambda document: document.update(signer=signer))


def renamed(folder: Path, signature: bytes | None, change: Callable[[Any], object]) -> None:
    """Another manifest, beside this signature, with right digests."""
    document = json.loads((folder / "manifest.json").read_text())
    change(document)
    (folder / "manifest.json").write_text(json.dumps(document))
    sums = manifest.digests(folder) | {"manifest.json": ""}
    sums.pop(manifest.SIGNATURE, None)
    if signature is not None:
        (folder / manifest.SIGNATURE).write_bytes(signature)
        sums[manifest.SIGNATURE] = ""
    else:
        (folder / manifest.SIGNATURE).unlink(missing_ok=True)
    for name in sums:
        sums[name] = manifest.sha256_of(folder / name)
    text = "".join(f"{sums[name]}  {name}\n" for name in sorted(sums))
    (folder / "SHA256SUMS").write_text(text)


def test_a_signed_release_names_its_signer_in_second_place(origin: Path, signed: Path) -> None:
    report = verify(signed, key=origin / "office.pub", ledger=origin / "home" / "ledger.sqlite")

    fingerprint = SigningKey.load(origin / "office").public.fingerprint
    assert "exactly those of the manifest" in report.checks[0]
    assert report.checks[1].startswith(f"signed by '{OFFICE}' ({fingerprint})")
    assert "add up to the total" in report.checks[2]
    assert "ledger" in report.checks[-1]
    assert report.to_json()["signature"] == {
        "state": "signed",
        "fingerprint": fingerprint,
        "name": OFFICE,
    }


def test_a_signature_of_a_key_that_nobody_gave_is_said_to_be_unchecked(signed: Path) -> None:
    signer = verify(signed).signer

    assert signer.state == "unknown key"
    assert "was not checked" in signer.words
    assert OFFICE not in signer.words  # nobody has vouched for a name


def test_an_unsigned_release_is_said_to_be_unsigned(origin: Path) -> None:
    signer = verify(origin / "bare").signer

    assert signer.state == "unsigned"
    assert signer.words == "not signed: no key says who made it"
    assert signer.brief == "it is not signed"


def test_a_release_holds_the_public_key_and_nothing_else_of_it(signed: Path) -> None:
    kept = b"".join(p.read_bytes() for p in signed.rglob("*") if p.is_file())
    public = json.loads((signed / "manifest.json").read_text())["signer"]

    assert public.split()[0] == "ssh-ed25519"
    assert OFFICE.encode() not in kept
    assert b"PRIVATE KEY" not in kept


FORGED: dict[str, tuple[Callable[[Path, Path], object], str, str]] = {
    "a smaller price, every hash made again": (
        lambda folder, _: keep_signature(folder, cheaper),
        "SIGNATURE",
        "its signature does not belong to what it is said to sign",
    ),
    "a smaller price, unsigned": (
        lambda folder, _: (cheaper(folder), sealed(folder)),
        "UNSIGNED",
        "It is not signed.",
    ),
    "signed again by somebody else": (
        lambda folder, keys: (cheaper(folder), sealed(folder, SigningKey.load(keys / "mallory"))),
        "SIGNER",
        "It is signed with the key SHA256:",
    ),
    "somebody else's signature under the name of the office": (
        lambda folder, keys: renamed(
            folder,
            SigningKey.load(keys / "mallory")
            .sign((folder / "manifest.json").read_bytes(), RELEASE)
            .encode(),
            lambda document: None,
        ),
        "SIGNATURE",
        "does not belong to what it is said to sign",
    ),
    "the signature removed": (
        lambda folder, _: renamed(folder, None, lambda document: None),
        "SIGNATURE",
        "manifest.sig is missing, and its manifest says that it was signed",
    ),
    "the signature and the name of its key removed": (
        lambda folder, _: renamed(folder, None, lambda document: document.pop("signer")),
        "UNSIGNED",
        "It is not signed.",
    ),
    "the name of the key removed, the signature left": (
        lambda folder, _: renamed(
            folder,
            (folder / manifest.SIGNATURE).read_bytes(),
            lambda document: document.pop("signer"),
        ),
        "SIGNATURE",
        "it has a manifest.sig, and its manifest names no key",
    ),
    "an older format": (
        lambda folder, _: renamed(
            folder,
            (folder / manifest.SIGNATURE).read_bytes(),
            lambda document: document.update(format="gibbous-release/0"),
        ),
        "VERSION",
        "it has the format 'gibbous-release/0'",
    ),
    "the signature cut in half": (
        lambda folder, _: renamed(
            folder, (folder / manifest.SIGNATURE).read_bytes()[:120], lambda document: None
        ),
        "SIGNATURE",
        "is not a whole Ed25519 signature",
    ),
    "the signature of another kind of document": (
        lambda folder, keys: renamed(
            folder,
            SigningKey.load(keys / "office")
            .sign((folder / "manifest.json").read_bytes(), HEAD)
            .encode(),
            lambda document: None,
        ),
        "SIGNATURE",
        "was made for another kind of document",
    ),
    "a set missing, with its line in the manifest": (
        lambda folder, _: keep_signature(
            folder, lambda folder: (folder / "synthetic_2.parquet").unlink()
        ),
        "SIGNATURE",
        "does not belong to what it is said to sign",
    ),
    "the sentence of a file changed": (
        lambda folder, _: (folder / "METHODS.md").write_text("All is well.\n"),
        "DIGEST",
        "'METHODS.md' was changed",
    ),
}


@pytest.mark.parametrize("case", FORGED)
def test_a_forged_release_is_refused_in_a_sentence(case: str, origin: Path, signed: Path) -> None:
    change, name, words = FORGED[case]
    change(signed, origin)

    with pytest.raises(ModelRejected) as caught:
        verify(signed, key=origin / "office.pub")

    assert caught.value.name == name
    assert words in str(caught.value)
    assert "do not use" in caught.value.fix


@pytest.mark.parametrize("case", ["UNSIGNED", "SIGNER"])
def test_a_refusal_names_whom_the_reader_expected(case: str, origin: Path, signed: Path) -> None:
    sealed(signed, SigningKey.load(origin / "mallory") if case == "SIGNER" else None)

    with pytest.raises(ModelRejected) as caught:
        verify(signed, key=origin / "office.pub")

    assert caught.value.name == case
    assert f"Nothing shows that {str(signed)!r} is from '{OFFICE}' (SHA256:" in str(caught.value)


def test_without_a_key_what_a_forger_signed_is_never_called_signed(
    origin: Path, signed: Path
) -> None:
    cheaper(signed)
    sealed(signed, SigningKey.load(origin / "mallory"))

    report = verify(signed)

    assert report.signer.state == "unknown key"
    assert not any(sentence.startswith("signed") for sentence in report.checks)


def test_one_of_several_keys_is_enough(origin: Path, signed: Path, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    lines = [(origin / f"{name}.pub").read_text() for name in ("mallory", "office")]
    keys.write_text("# who may publish\n" + "".join(lines))

    assert verify(signed, key=keys).signer.key == SigningKey.load(origin / "office").public


def test_openssh_takes_our_signature_and_our_keys(origin: Path, signed: Path) -> None:
    """Another program as the truth: ssh-keygen checks what we signed, with the namespace."""
    need("ssh-keygen")
    allowed = signed.parent / "allowed"
    allowed.write_text(f"office {(origin / 'office.pub').read_text()}")

    def checked(namespace: str) -> int:
        command = ["ssh-keygen", "-Y", "verify", "-f", str(allowed), "-I", "office"]
        command += ["-n", namespace, "-s", str(signed / manifest.SIGNATURE)]
        whole = (signed / "manifest.json").read_bytes()
        return subprocess.run(command, input=whole, capture_output=True).returncode

    assert checked(RELEASE) == 0
    assert checked(HEAD) != 0


@pytest.mark.parametrize("passphrase", ["", "five horses"], ids=["plain", "with a passphrase"])
def test_we_take_signatures_and_keys_of_openssh(tmp_path: Path, passphrase: str) -> None:
    need("ssh-keygen")
    key, text = tmp_path / "key", tmp_path / "text"
    run = ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", OFFICE, "-f", str(key)]
    subprocess.run(run, check=True, capture_output=True)
    text.write_bytes(b"a manifest")
    own = SigningKey.load(key, passphrase)
    if not passphrase:
        run = ["ssh-keygen", "-q", "-Y", "sign", "-n", RELEASE, "-f", str(key), str(text)]
        subprocess.run(run, check=True, capture_output=True)
        theirs = text.with_name("text.sig").read_text()
        assert signer_of(theirs, b"a manifest", RELEASE) == own.public
        assert theirs == own.sign(b"a manifest", RELEASE)  # Ed25519 has no randomness

    assert signer_of(own.sign(b"a manifest", RELEASE), b"a manifest", RELEASE) == own.public


def test_every_bit_of_a_signature_counts(origin: Path) -> None:
    key = SigningKey.load(origin / "office")
    text = key.sign(b"a manifest", RELEASE)

    for at in range(len(text)):
        changed = text[:at] + chr(ord(text[at]) ^ 1) + text[at + 1 :]
        with pytest.raises(NotSigned):
            signer_of(changed, b"a manifest", RELEASE)
    for changed in ("", text[:-1], text + "\n", text * 2, text.replace("\n", "\r\n")):
        with pytest.raises(NotSigned):
            signer_of(changed, b"a manifest", RELEASE)


def test_a_private_key_is_not_printed_pickled_or_read_by_others(tmp_path: Path) -> None:
    new_key(tmp_path / "key", OFFICE, "")
    key = SigningKey.load(tmp_path / "key")

    assert repr(key) == f"<SigningKey {key.public.fingerprint}>"
    assert "sign" not in repr(Output(out="x", sign=key))
    with pytest.raises(TypeError):
        pickle.dumps(key)
    (tmp_path / "key").chmod(0o640)
    with pytest.raises(UsageError, match="may be read by other users"):
        SigningKey.load(tmp_path / "key")


def test_a_key_is_never_written_over(tmp_path: Path) -> None:
    new_key(tmp_path / "key", OFFICE, "")
    before = (tmp_path / "key").read_bytes(), (tmp_path / "key.pub").read_bytes()

    with pytest.raises(OutputNotWritten):
        new_key(tmp_path / "key", OFFICE, "")
    (tmp_path / "key.pub").rename(tmp_path / "aside.pub")
    with pytest.raises(OutputNotWritten):
        new_key(tmp_path / "key", OFFICE, "")

    assert ((tmp_path / "key").read_bytes(), (tmp_path / "aside.pub").read_bytes()) == before
    assert not (tmp_path / "key.pub").exists()


WRONG_KEYS: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (Path.unlink, "KEY"),
    "public": (lambda p: p.with_name("key.pub").rename(p), "KEY"),  # which others may read
    "damaged": (lambda p: p.write_bytes(p.read_bytes()[:200]), "KEY"),
    "no key": (lambda p: p.write_bytes(b"hello"), "KEY"),
    "encrypted": (lambda p: None, "PASSPHRASE"),
}


@pytest.mark.parametrize("case", WRONG_KEYS)
def test_a_wrong_key_is_answered(case: str, tmp_path: Path) -> None:
    path = tmp_path / "key"
    new_key(path, OFFICE, "five horses" if case == "encrypted" else "")
    change, name = WRONG_KEYS[case]
    change(path)

    for passphrase in (None, "four horses"):
        with pytest.raises(UsageError) as caught:
            SigningKey.load(path, passphrase)
        assert caught.value.name == name
        assert "horses" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["", "# nobody\n", "ssh-rsa AAAA x\n", "ssh-ed25519\n", "ssh-ed25519 AAAA x\n", "hello\n"],
)
def test_a_file_without_public_keys_trusts_nobody(text: str, signed: Path) -> None:
    keys = signed.parent / "keys"
    keys.write_text(text)

    with pytest.raises(UsageError) as caught:
        verify(signed, key=keys)

    assert caught.value.name == "PUBLICKEY"


def test_a_signature_that_fails_leaves_no_half_release_and_the_same_command_goes_on(
    origin: Path, tmp_path: Path
) -> None:
    class Broken(SigningKey):
        def sign(self, message: bytes, namespace: str) -> str:
            raise OSError(5, "the card was pulled out")

    key, ledger = SigningKey.load(origin / "office"), Ledger.ephemeral()
    with pytest.raises(GibbousError):
        made.write(tmp_path / "rel", ledger, sign=Broken(key._private))
    assert not (tmp_path / "rel").exists()

    made.write(tmp_path / "rel", ledger, sign=key)

    assert verify(tmp_path / "rel", key=origin / "office.pub").signer.state == "signed"
    assert [entry.kind for entry in ledger.entries()] == ["reserve", "commit"]  # charged once


def test_further_rows_are_signed_too(origin: Path, signed: Path, tmp_path: Path) -> None:
    release, key = load.load(signed), SigningKey.load(origin / "office")
    target = tmp_path / "more"

    write_sampled(release, Output(20, seed=1, out=target, sign=key), target)

    assert verify(target, key=origin / "office.pub").signer.state == "signed"
    one = tmp_path / "one.csv"
    with pytest.raises(UsageError, match="no folder to sign"):
        write_sampled(release, Output(20, seed=1, format="csv", out=one, sign=key), one)


@pytest.mark.slow
def test_a_report_does_not_void_a_signature(origin: Path, signed: Path) -> None:
    before = (signed / "manifest.json").read_bytes()
    with pytest.raises(UsageError, match="would make that signature void"):
        release_report.into_release(signed)
    assert (signed / "manifest.json").read_bytes() == before

    release_report.into_release(signed, sign=SigningKey.load(origin / "office"))

    assert verify(signed, key=origin / "office.pub").signer.state == "signed"
    assert (signed / "report.public.html").is_file()


def test_without_the_library_a_signature_is_unchecked_and_a_key_is_refused(
    origin: Path, signed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Saboteur of the machine: cryptography is not there. Nothing is then called signed."""

    class Absent:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "cryptography":
                raise ModuleNotFoundError(name=name)

    for name in [name for name in sys.modules if name.split(".")[0] == "cryptography"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Absent(), *sys.meta_path])

    assert verify(signed).signer.state == "not checked"
    with pytest.raises(GibbousError, match="extra 'sign'"):
        verify(signed, key=origin / "office.pub")


def test_who_signed_is_not_what_was_signed(origin: Path, signed: Path) -> None:
    """A signature makes no lie true: the office signs a release with too small a price."""
    edit(signed, "ledger.json", lambda receipt: forged(receipt, "0.5"))
    sealed(signed, SigningKey.load(origin / "office"))

    with pytest.raises(ModelRejected, match="noise in its tables"):
        verify(signed, key=origin / "office.pub")
