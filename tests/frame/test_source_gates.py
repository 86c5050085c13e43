"""What the package must never contain, read off its syntax trees."""

from __future__ import annotations

import ast
import re

import pytest

from tests.frame.tree import DOCS, SRC, called, calls, dotted, imports, nodes, sources, tree, where

# Reasons: noise has known makers; loading a file must never run code; nothing leaves the machine.
BANNED_IMPORTS = {
    "random": "seeded or not, it is neither noise nor a counter-based stream",
    "numpy.random": "noise comes from privacy.entropy, sampling from core.stream",
    "pickle": "loading runs code",
    "cPickle": "loading runs code",
    "cloudpickle": "loading runs code",
    "dill": "loading runs code",
    "joblib": "loading runs code",
    "marshal": "loading runs code",
    "shelve": "loading runs code",
    "yaml": "schemas and configurations are TOML",
    "http": "no network",
    "requests": "no network",
    "socket": "no network",
    "urllib.request": "no network",
    "opendp.prelude": "slow, and pulls optional packages; import the submodules",
}
BANNED_CALLS = {"eval", "exec", "compile", "__import__", "os.system", "os.popen", "breakpoint"}
ENTROPY = ("os.urandom", "os.getrandom", "secrets.")
ENTROPY_OWNERS = {
    "privacy/entropy.py": "noise, and words for draws that are the mechanism",
    "privacy/ledger/ledger.py": "names of reservations",
    "privacy/ledger/chain.py": "the nonce that hides what an entry keeps private",
    "privacy/ledger/store.py": "the key of an installation",
    "write/in_memory.py": "the name of a run in memory",
    "write/sampler.py": "the sampling seed when none is given",
    "write/partial.py": "names of temporary folders",
    "studio/app.py": "keys of forms",
    "studio/door.py": "the token of the studio, and its sessions",
    "studio/guard.py": "numbers of faults",
    "studio/looking.py": "the key by which looks at records are known again",
    "studio/jobs.py": "names of jobs",
    "studio/uploads.py": "names of uploads",
}
LISTENERS = {"studio/server.py"}  # the studio listens on 127.0.0.1; nothing connects anywhere

NOISE = "makes noise"
WORD_TAKERS = {
    "privacy/curator.py": "hands words to draws that are the mechanism, and to random parts",
    "privacy/spend.py": "hands words to the curator",
    "privacy/noise.py": NOISE + " through privacy/entropy.py, on counts",
    "sampling/flows/grid.py": NOISE + " of its own, on cells that are not listed",
    "encode/encode.py": "which rows of a person stay",
    "disintegrate/scanning.py": "which rows of a person stay",
    "contract/auditor/run.py": "audits draw as runs do",
    "contract/repeated_answers.py": "repeats the answers of one run in another",
    "contract/runs.py": "checks draw as runs do",
    "contract/saboteurs.py": "breaks the noise on purpose",
}


@pytest.mark.parametrize("banned", BANNED_IMPORTS)
def test_banned_module_is_not_imported(banned: str) -> None:
    found = [
        where(path, line)
        for path in sources()
        for name, line in imports(path)
        if (name == banned or name.startswith(f"{banned}."))
        and not (banned == "socket" and path.relative_to(SRC).as_posix() in LISTENERS)
    ]

    assert not found, BANNED_IMPORTS[banned]


def test_g6_numpy_random_is_not_reached_as_an_attribute() -> None:
    found = [
        where(path, node.lineno)
        for path in sources()
        for node in nodes(path)
        if isinstance(node, ast.Attribute) and dotted(node) in ("np.random", "numpy.random")
    ]

    assert not found


def test_no_call_runs_text_as_code_or_opens_a_shell() -> None:
    found = [
        where(path, node.lineno)
        for path, node in calls()
        if called(node) in BANNED_CALLS
        or any(k.arg == "shell" and getattr(k.value, "value", None) for k in node.keywords)
    ]

    assert not found


def test_k1_arrays_are_never_loaded_as_objects() -> None:
    found = [
        where(path, keyword.value.lineno)
        for path, node in calls()
        for keyword in node.keywords
        if keyword.arg == "allow_pickle" and getattr(keyword.value, "value", True) is not False
    ]
    unsaid = [
        where(path, node.lineno)
        for path, node in calls()
        if called(node) == "np.load" and "allow_pickle" not in {k.arg for k in node.keywords}
    ]

    assert not found + unsaid


def test_random_bytes_of_the_system_are_read_by_known_files_for_known_reasons() -> None:
    found = {
        path.relative_to(SRC).as_posix()
        for path, node in calls()
        if called(node).startswith(ENTROPY)
    }

    assert found <= set(ENTROPY_OWNERS)


def test_B6_files_that_take_cryptographic_words_are_known_and_the_page_names_who_makes_noise() -> (
    None
):
    found = {
        path.relative_to(SRC).as_posix()
        for path in sources()
        for name, _ in imports(path)
        if name.startswith("gibbous.privacy.entropy")
    }
    makers = {name for name, why in WORD_TAKERS.items() if why.startswith(NOISE)} & found
    page = (DOCS / "reference" / "guarantees.md").read_text("utf-8")

    assert found == set(WORD_TAKERS)
    assert makers == {"privacy/noise.py", "sampling/flows/grid.py"}
    assert "sampling/flows/grid.py" in page
    assert "noise is made in one file" not in page


def test_idealized_numerics_of_opendp_is_never_switched_on() -> None:
    found = [
        where(path, node.lineno)
        for path in sources()
        for node in nodes(path)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value in ("idealized-numerics", "floating-point", "honest-but-curious")
    ]

    assert not found


def test_the_clock_is_read_only_where_people_watch() -> None:
    # Sequence numbers order the ledger (H9); nothing that is released depends on a clock.
    allowed = {"cli", "privacy/ledger/entries.py"}
    readings = {"time.time", "datetime.now", "datetime.datetime.now", "datetime.date.today"}

    found = [
        where(path, node.lineno)
        for path, node in calls()
        if called(node) in readings
        and not {path.relative_to(SRC).as_posix(), path.relative_to(SRC).parts[0]} & allowed
    ]

    assert not found


def test_every_file_with_code_starts_with_a_sentence() -> None:
    found = [
        str(path.relative_to(SRC))
        for path in sources()
        if tree(path).body
        and not re.match(r"\S.*[.:]", ast.get_docstring(tree(path)) or "", re.DOTALL)
    ]

    assert not found


def test_no_stub_is_left() -> None:
    found = [
        where(path, node.lineno)
        for path in sources()
        for node in nodes(path)
        if isinstance(node, ast.Raise) and "NotImplementedError" in ast.dump(node)
    ]
    todo = [
        where(path, number)
        for path in sources()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if re.search(r"#.*\b(TODO|FIXME|XXX)\b", line)
    ]

    assert not found + todo


def test_pandas_frames_are_never_made_of_a_whole_input() -> None:
    # `to_pandas` is allowed where a user handed over a pandas frame and gets one back.
    allowed = {"write/pandas_frames.py"}

    found = {
        path.relative_to(SRC).as_posix()
        for path, node in calls()
        if called(node).endswith(".to_pandas")
    }

    assert found <= allowed
