"""Every command that a page shows is run, or listed with a reason and the test that covers it."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gibbous.cli import main
from tests.frame import documented
from tests.frame.commands import (
    NOT_RUN,
    SHELL,
    SLOW,
    commands,
    fences,
    named,
    why_not,
    with_commands,
)
from tests.frame.tree import ROOT, pages, project

MOST_ROWS = 1_000
FIRST = ("README.md", "CONTRIBUTING.md", "docs/tutorials/")
LANGUAGES = {
    "python run",
    "python",
    "python sdv",
    "python snsql",
    "python sdmetrics",
    "python anonymeter",
    "text output",
    "text",
    "toml",
    "sql",
    "r",
    "",
    SHELL,
}
STARTS = re.compile(r"^\s*(\$ |gibbous \w|pip |\./dev|pytest |python |sh )", re.MULTILINE)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every file that a page assumes."""
    folder = tmp_path_factory.mktemp("prepared")
    documented.prepare(folder)
    return folder


def _pages(slow: bool) -> list[object]:
    """Pages with commands that are run, or those with slow ones; all but the first wait for a slow run."""
    found = []
    for page in with_commands():
        run = [c for c in commands(page) if why_not(c) is None]
        if run if not slow else any(re.match(SLOW, c) for c in run):
            marks = () if named(page).startswith(FIRST) else pytest.mark.slow
            found.append(pytest.param(page, id=named(page), marks=marks))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("page", _pages(slow=False))
def test_A_commands_of_the_page_run(
    page: Path, prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In order, in one folder, with smaller numbers; a command that fails ends it."""
    _follow(page, prepared, tmp_path, monkeypatch, slow=False)


@pytest.mark.slow
@pytest.mark.parametrize("page", _pages(slow=True))
def test_A_slow_commands_of_the_page_run(
    page: Path, prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _follow(page, prepared, tmp_path, monkeypatch, slow=True)


def test_A_commands_stand_in_blocks_that_are_run() -> None:
    """A block of another language, or of none, shows no command."""
    strange = {(named(page), info) for page in pages() for info, _ in fences(page)}
    hidden = [
        (named(page), text)
        for page in pages()
        for info, text in fences(page)
        if info in ("", "text", "text output") and STARTS.search(text)
    ]

    assert {info for _, info in strange} <= LANGUAGES
    assert not hidden


def test_A_a_block_that_nobody_covers_fails(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "1. first\n\n   ```sh\n   gibbous frobnicate  # so\n   rm -rf x \\\n     y\n   ```\n"
    )

    assert commands(page) == ["gibbous frobnicate", "rm -rf x y"]
    assert why_not("rm -rf x y") is None
    with pytest.raises(AssertionError, match="frobnicate"):
        _run("gibbous frobnicate", tmp_path)
    with pytest.raises(AssertionError, match="rm -rf"):
        _run("rm -rf x y", tmp_path)


@pytest.mark.parametrize(("pattern", "reason", "test"), NOT_RUN, ids=[n[0] for n in NOT_RUN])
def test_A_what_is_not_run_is_shown_and_covered(pattern: str, reason: str, test: str) -> None:
    shown = [c for page in with_commands() for c in commands(page) if re.match(pattern, c)]
    path, _, name = test.partition("::")

    assert shown
    assert reason
    assert f"def {name}" in (ROOT / path).read_text(encoding="utf-8")


def test_A_extras_that_pages_install_exist() -> None:
    extras = set(project()["project"]["optional-dependencies"])
    text = "\n".join(c for page in with_commands() for c in commands(page))

    found = {
        e for group in re.findall(r"pip install .*\[([\w,]+)\]", text) for e in group.split(",")
    }

    assert found
    assert found <= extras


def test_A_benches_that_pages_name_exist() -> None:
    text = "\n".join(c for page in with_commands() for c in commands(page))
    listed = re.findall(r"for bench in ([\w ]+);", text)
    named_ = [*re.findall(r"bench/(\w+)\.py", text), *" ".join(listed).split()]

    assert len(named_) > 3
    assert not [name for name in named_ if not (ROOT / "bench" / f"{name}.py").is_file()]


@pytest.mark.slow
def test_A_a_command_that_runs_tests_collects_some() -> None:
    """`./dev test PATHS`, in blocks and in sentences; a mechanism of the reader's own is a built-in one."""
    lines = {
        line.split("  ")[0].strip("` ")
        for page in pages()
        for line in re.findall(r"\./dev test [^`\n]+", page.read_text(encoding="utf-8"))
    }
    asked = [line.removeprefix("./dev test ").replace("my_mechanism", "sbhg") for line in lines]
    asked = [line for line in asked if line.startswith(("tests/", "src/"))]

    assert len(asked) > 1
    for line in asked:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-n0", "-q", "--collect-only", *shlex.split(line)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (line, done.stdout[-2_000:])


def test_A_verbs_and_options_in_sentences_exist() -> None:
    from typer.main import get_command

    from gibbous.cli.app import app

    verbs = get_command(app).commands  # type: ignore[attr-defined]
    wrong = []
    for page in pages():
        text = FENCED.sub("", page.read_text(encoding="utf-8"))
        for span in re.findall(r"`gibbous ((?:\w+ ?)[^`]*)`", text):
            words = span.split()
            verb = verbs.get(words[0])
            if verb is not None and hasattr(verb, "commands") and len(words) > 1:
                verb = verb.commands.get(words[1])
            known = {o for p in getattr(verb, "params", ()) for o in (*p.opts, "--help")}
            flags = {w.split("=")[0] for w in words if w.startswith("--")}
            if verb is None or flags - known:
                wrong.append((named(page), span))

    assert not wrong


FENCED = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)


def _follow(
    page: Path, prepared: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, *, slow: bool
) -> None:
    work = folder / "work"
    shutil.copytree(prepared, work)
    monkeypatch.setenv("GIBBOUS_HOME", str(folder / "home"))
    monkeypatch.chdir(work)
    todo = [c for c in commands(page) if why_not(c) is None]
    configured = documented.configurations(page)
    for name, text in configured.items():
        (work / name).write_text(re.sub(r"(repeats|rows) = \d+", r"\1 = 1", text))
    outputs = r"(?:--out|-o) (\S+)|^path = \"(\S+)\""
    for made in re.findall(outputs, "\n".join([*todo, *configured.values()]), re.MULTILINE):
        place = work / "".join(made)  # the page makes it
        shutil.rmtree(place) if place.is_dir() else place.unlink(missing_ok=True)
    for command in todo:
        if slow or not re.match(SLOW, command):
            _run(command, work)


def _run(command: str, work: Path) -> None:
    words = shlex.split(command.replace("/srv/", f"{work}/"))
    target = None
    if ">" in words:
        words, target = words[: words.index(">")], work / words[-1]
    if words[0] == "gibbous":
        code, out = _called([*_smaller(words[1:])])
        assert code == 0, f"{command}\n{out}"
        if target:
            target.write_text(out)
        if words[1:3] == ["schema", "infer"]:
            documented.declare(work / words[-1])
    elif words[0] == "$EDITOR":
        documented.declare(work / words[1])
    else:
        assert words[0] == "mkdir", f"no test runs: {command}"
        subprocess.run(words, cwd=work, check=True)


def _called(words: list[str]) -> tuple[int, str]:
    from contextlib import redirect_stderr, redirect_stdout
    from io import StringIO

    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(words)
    return code, out.getvalue() + err.getvalue() * bool(code)


def _smaller(words: list[str]) -> list[str]:
    """The same command with fewer rows and runs."""
    found = list(words)
    for place, word in enumerate(words[:-1]):
        if word == "--rows":
            found[place + 1] = str(min(int(words[place + 1]), MOST_ROWS))
    return found + ["--runs", "4"] * (words[0] == "audit")
