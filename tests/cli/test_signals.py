"""Ctrl-C and SIGTERM end a run at once, in Python and inside compiled code, with one line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gibbous.cli import signals
from tests.needs import need


@pytest.fixture(autouse=True)
def _signals() -> None:
    need("POSIX")


PATIENT = 120  # seconds, on a machine that others use; a run that hangs still fails

# Each body runs where a verb would; "ready" tells the test when to send the signal.
IN_PYTHON = "while True: sum(range(1000))"
IN_NATIVE = "import hashlib; hashlib.pbkdf2_hmac('sha256', b'x', b'y', 2**31 - 1)"
IN_A_POOL = (
    "from concurrent.futures import ThreadPoolExecutor as P; import hashlib\n"
    "    with P(2) as pool: list(pool.map(lambda i: hashlib.pbkdf2_hmac("
    "'sha256', b'x', b'y', 2**31 - 1), range(2)))"
)
SWALLOWED = (
    "\n    while True:\n        try:\n            sum(range(1000))\n        except Exception: pass"
)
PROGRAM = """
import sys, threading
from gibbous.cli import entry
from gibbous.cli import release_verbs

def work(*_):
    threading.Timer(0.3, print, ["ready"], {{"flush": True}}).start()
    {body}

release_verbs.warmup = work
sys.argv = ["gibbous", "warmup"]
sys.exit(entry.main())
"""


@pytest.mark.parametrize(
    ("body", "number", "code"),
    [
        pytest.param(IN_PYTHON, signal.SIGINT, 130, id="python"),
        pytest.param(IN_PYTHON, signal.SIGTERM, 143, id="python-term"),
        pytest.param(IN_PYTHON, signal.SIGHUP, 129, id="python-hup"),
        pytest.param(IN_NATIVE, signal.SIGINT, 130, id="native"),
        pytest.param(IN_A_POOL, signal.SIGTERM, 143, id="pool", marks=pytest.mark.slow),
        pytest.param(SWALLOWED, signal.SIGINT, 130, id="swallowed"),
    ],
)
def test_i5_i6_a_signal_ends_a_run_with_its_code_and_one_line(
    body: str, number: signal.Signals, code: int
) -> None:
    run = _start(body)

    run.send_signal(number)

    out, err = run.communicate(timeout=PATIENT)
    assert run.returncode == code
    assert err.startswith(f"error[GB{code}-STOPPED]: ")
    assert err.count("\n") == 1
    assert "Traceback" not in out + err
    assert "This command reserves no budget." in err  # warmup does not


@pytest.mark.slow
def test_i5_ctrl_c_in_a_long_run_leaves_no_output_and_a_truthful_ledger(home: Path) -> None:
    from gibbous.privacy.ledger import Ledger
    from gibbous.read import demo_data

    pytest.importorskip("statsmodels", reason="the data are a file of statsmodels")
    schema = Path(demo_data.__file__).parents[1] / "data" / "randhie.schema.toml"
    line = [
        "synthesize", demo_data.demo_file(), "--schema", schema, "--method", "laplace",
        "--epsilon", "1", "--rows", "10", "--out", "release",
    ]  # fmt: skip
    # The joint table has 3.4 million cells, each with noise: many seconds of work.
    run = subprocess.Popen(
        [sys.executable, "-m", "gibbous", *map(str, line)], stderr=subprocess.PIPE, text=True
    )
    book = home / "ledger.sqlite"
    while run.poll() is None and not (book.exists() and _charged(book)):
        time.sleep(0.1)
    time.sleep(0.5)

    run.send_signal(signal.SIGINT)

    _, err = run.communicate(timeout=PATIENT)
    assert run.returncode == 130
    assert err.splitlines()[-1].startswith("error[GB130-STOPPED]: ")  # behind a line of progress
    assert not Path("release").exists()
    account = Ledger.open(home / "ledger.sqlite").accounts()[0]
    assert [release.state for release in account.releases] == ["open"]


@pytest.mark.slow
def test_i5_a_second_ctrl_c_does_not_wait() -> None:
    run = _start("from gibbous.cli import signals; signals.PATIENCE = 600\n    " + IN_NATIVE)

    run.send_signal(signal.SIGINT)
    time.sleep(0.2)
    assert run.poll() is None
    for _ in range(PATIENT):  # signals are one while the process does not get its turn
        run.send_signal(signal.SIGINT)
        time.sleep(0.2)
        if run.poll() is not None:
            break

    run.communicate(timeout=PATIENT)
    assert run.returncode == 130


def test_i6_a_closed_pipe_is_quiet(home: Path) -> None:
    read, write = os.pipe()
    os.close(read)

    done = subprocess.run(
        [sys.executable, "-m", "gibbous", "--help"], stdout=write, stderr=subprocess.PIPE, text=True
    )

    os.close(write)
    assert done.stderr == ""
    assert done.returncode == 141


def test_i11_m4_the_process_is_private_whatever_the_shell_says(tmp_path: Path) -> None:
    program = (
        "import os, sys, resource\n"
        "os.umask(0)\n"
        "from gibbous.cli import entry\n"
        "sys.argv = ['gibbous', '--version']\n"
        "entry.main()\n"
        "import faulthandler\n"
        "print(oct(os.umask(0)), resource.getrlimit(resource.RLIMIT_CORE), faulthandler.is_enabled())"
    )

    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", program], capture_output=True, text=True
    )

    assert done.stdout.splitlines()[-1] == "0o77 (0, 0) False"


def _charged(path: Path) -> bool:
    from gibbous.privacy.ledger import Ledger

    book = Ledger.open(path)
    entries = book.entries()
    book.close()
    return bool(entries)


def _start(body: str) -> subprocess.Popen[str]:
    run = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(body=body)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert run.stdout is not None
    assert run.stdout.readline() == "ready\n"
    return run


@pytest.mark.parametrize(
    ("verb", "reserves"), [("synthesize", True), ("compare", True), ("evaluate", False)]
)
def test_only_a_command_that_may_have_reserved_speaks_of_it(
    verb: str, reserves: bool, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["gibbous", verb, "data.csv"])

    signals.say(143)

    assert ("stays spent" in capfd.readouterr().err) == reserves
