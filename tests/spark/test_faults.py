"""What Spark raises becomes one line of ours, whatever its text holds."""

from __future__ import annotations

import fcntl
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from gibbous.core.errors import MAY_BE_SPENT, EngineFailure, GibbousError, OutputNotWritten
from gibbous.disintegrate.spark import session
from gibbous.disintegrate.spark.faults import guarded, refused
from gibbous.disintegrate.spark.session import sweep
from gibbous.disintegrate.spark.shield import TaskFailed, attempted, shielded
from tests.spark.breakage import MARKER

TRACE = "Job aborted due to stage failure: Task 3 in stage 1.0 failed 4 times. Traceback\n"


class Py4JNetworkError(Exception):
    """Named as the one of py4j."""


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (RuntimeError(f"{TRACE}ModuleNotFoundError: No module named 'gibbous'"), "GB11-WORKERS"),
        (RuntimeError(f"{TRACE}ModuleNotFoundError: No module named 'pyarrow'"), "GB11-WORKERS"),
        (RuntimeError("[PYTHON_VERSION_MISMATCH] Python in worker has another"), "GB11-WORKERS"),
        (RuntimeError(f"{TRACE}java.io.IOException: No space left on device"), "GB10-DISK"),
        (RuntimeError(f"{TRACE}java.lang.OutOfMemoryError: Java heap space"), "GB10-MEMORY"),
        (RuntimeError("bigger than spark.driver.maxResultSize (1024 MiB)"), "GB10-MEMORY"),
        (RuntimeError("[PATH_NOT_FOUND] Path does not exist: file:/data"), "GB3-NOTREAD"),
        (RuntimeError(f"{TRACE}TaskFailed: gibbous: a task raised ComputeError"), "GB11-SPARK"),
        (RuntimeError(f"{TRACE}ExecutorLostFailure (executor 2 exited)"), "GB11-SPARK"),
        (Py4JNetworkError("Answer from Java side is empty"), "GB11-SPARK"),
        (ConnectionRefusedError("Connection refused"), "GB11-SPARK"),
        (RuntimeError("something else"), "GB11-SPARK"),
    ],
)
def test_j7_j9_j10_an_exception_of_spark_becomes_one_line_without_its_text(
    raised: Exception, code: str
) -> None:
    raised.args = (f"{raised.args[0]} {MARKER}",)

    def fail() -> None:
        raise raised

    with pytest.raises(GibbousError) as caught:
        guarded(fail, state=MAY_BE_SPENT)

    assert caught.value.code == code
    assert caught.value.state == MAY_BE_SPENT
    assert MARKER not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.__context__ is None


def test_m10_an_exception_of_pyspark_is_replaced_whatever_it_is_derived_from() -> None:
    kind = type("PySparkAssertionError", (AssertionError,), {"__module__": "pyspark.errors"})

    def fail() -> None:
        raise kind(MARKER)

    with pytest.raises(EngineFailure) as caught:
        guarded(fail)
    with pytest.raises(ZeroDivisionError):  # ours: a fault of the program is not dressed up
        guarded(lambda: 1 // 0)

    assert MARKER not in str(caught.value)


def test_m2_folders_of_sessions_that_are_gone_are_swept_and_others_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    gone, used = (tmp_path / f"gibbous-spark-{name}" for name in ("gone", "used"))
    for folder in (gone, used):
        folder.mkdir(mode=0o700)
        (folder / "lock").touch()
        (folder / "blockmgr").mkdir()

    with (used / "lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        sweep()

    assert list(tmp_path.iterdir()) == [used]


def test_m2_a_folder_in_which_a_jvm_still_writes_keeps_its_lock_until_it_is_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(session, "time", SimpleNamespace(sleep=lambda _: None))
    folder, busy, honest = tmp_path / "gibbous-spark-dying", {"spill"}, Path.unlink
    folder.mkdir(mode=0o700)
    for name in ("lock", "spill", "other"):
        (folder / name).touch()

    def unlink(path: Path, *, missing_ok: bool = False) -> None:
        if path.name not in busy:
            honest(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", unlink)
    sweep()
    kept = sorted(one.name for one in folder.iterdir())
    busy.clear()
    sweep()

    assert kept == ["lock", "spill"]
    assert not folder.exists()


def test_a_refusal_travels_as_words_and_anything_else_as_the_name_of_its_class() -> None:
    def refuse() -> None:
        raise OutputNotWritten("WRITE", "Wrong.", "Allowed.", "Do this.", state="So it stands.")

    def fail() -> None:
        raise ValueError(MARKER)

    words, value = attempted(refuse)
    with pytest.raises(TaskFailed) as caught:
        attempted(fail)

    again = refused(words, state="")
    assert value is None
    assert isinstance(again, OutputNotWritten)
    assert str(again) == "Wrong. Allowed. Do this. So it stands."
    assert str(caught.value) == "gibbous: a task raised ValueError"
    assert caught.value.__context__ is None


def test_a_batch_before_a_failure_arrives_and_the_failure_loses_its_text() -> None:
    def work() -> object:
        yield 1
        raise KeyError(MARKER)

    batches = shielded(work(), str)  # type: ignore[arg-type]

    assert next(batches) == 1
    with pytest.raises(TaskFailed, match="KeyError") as caught:
        next(batches)
    assert caught.value.__context__ is None


def test_words_of_a_task_cannot_name_a_class_that_is_no_error_of_ours() -> None:
    found = refused('["annotations", "NAME", "Wrong.", "Allowed.", "Fix.", "State."]', state="")

    assert isinstance(found, EngineFailure)
