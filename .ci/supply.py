"""The supply chain: locks with hashes; and what CI checks of the installed packages, of wheel and sdist.

`lock` writes requirements/*.txt from pyproject.toml and constraints.txt. `check` writes a list of packages
and fails on a known fault of one, on a list that is not whole, and on a wheel or sdist not built alike twice.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = Path(sys.executable).parent  # those of requirements/supply.txt
LOCKS = ROOT / "requirements"
# Each file goes on from those before it; together they are what ./dev installs.
EXTRAS = (
    "pandas",
    "demo",
    "evaluate",
    "report",
    "duckdb",
    "postgresql",
    "sign",
    "formats",
    "studio",
    "contract",
)
NEVER = "sys_platform == 'emscripten'"  # a browser is no platform of ours
ALONE = ("docs", "supply")  # tools with an environment each
BUILD = ("hatchling", "editables", "setuptools", "wheel")
FILES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "core": ((), ()),
    "extras": (EXTRAS, ()),
    "dev": ((*EXTRAS, "dev", "test"), BUILD),
    "spark": ((*EXTRAS, "dev", "test", "spark"), BUILD),
    "fuzz": ((*EXTRAS, "dev", "test", "spark", "fuzz"), BUILD),
}
BLOCK = re.compile(r"^(\S+)==(\S+).*\\\n(?: +--hash=sha256:[0-9a-f]{64}(?: \\)?\n)+", re.MULTILINE)
HEAD = "# Versions and hashes of every file of them, for pip --require-hashes. ./dev lock writes this file.\n"


def main(verb: str) -> int:
    """Run one verb; the exit code is 0 where everything holds."""
    if verb == "lock":
        lock()
        return 0
    wrong = [*bill(), *audit(), *packages()]
    for sentence in wrong:
        print(f"supply: {sentence}", file=sys.stderr)
    return 1 if wrong else 0


def lock() -> None:
    """Write the hashes of all pinned packages: for every Python and platform, of every file of a version."""
    before: set[str] = set()
    for name, (extras, more) in FILES.items():
        flags = [word for extra in extras for word in ("--extra", extra)]
        blocks = _compiled(["-c", "constraints.txt", *flags, "pyproject.toml"], more)
        kept = [
            block for known, block in blocks.items() if known not in before and NEVER not in block
        ]
        before |= blocks.keys()
        (LOCKS / f"{name}.txt").write_text(HEAD + "".join(kept))
    for asked in ALONE:
        tools = (LOCKS / f"{asked}.in").read_text().split()
        (LOCKS / f"{asked}.txt").write_text(HEAD + "".join(_compiled([], tools).values()))


def bill() -> list[str]:
    """Write dist/gibbous.cdx.json, a CycloneDX list of what .venv holds; say what it lacks.

    Licenses are judged by tests/frame/test_licences.py, which knows more words for them.
    """
    target = ROOT / "dist" / "gibbous.cdx.json"
    target.parent.mkdir(exist_ok=True)
    _run("cyclonedx-py", "environment", ROOT / ".venv/bin/python", "--output-reproducible",
         "--pyproject", "pyproject.toml", "--of", "JSON", "-o", target)  # fmt: skip
    listed = json.loads(target.read_text())["components"]
    names = {_plain(one["name"]) for one in listed}
    missing = pinned("core", "extras", "dev") - names
    print(f"supply: {target.relative_to(ROOT)} lists {len(listed)} packages")
    return [f"{name} is locked and not in the list" for name in sorted(missing)]


def audit() -> list[str]:
    """Ask for known faults of all pinned versions; where no service answers, say so, or fail if it must."""
    wrong: list[str] = []
    skipped = asked = 0
    for names in (tuple(FILES), *((tool,) for tool in ALONE)):  # tools have versions of their own
        files = [word for name in names for word in ("-r", LOCKS / f"{name}.txt")]
        done = _run("pip-audit", *files, "--disable-pip", "-f", "json", check=False)
        faults, silent = judged(done.stdout, len(pinned(*names)))
        wrong, skipped, asked = wrong + faults, skipped + silent, asked + len(pinned(*names))
    if skipped == asked and os.environ.get("GIBBOUS_AUDIT") != "required":
        print("supply: SKIPPED pip-audit: no service of advisories answered. NOTHING WAS AUDITED.")
        return []
    return wrong


def judged(answer: str, asked: int) -> tuple[list[str], int]:
    """Faults that an answer of pip-audit names, and how many packages it says nothing about."""
    try:
        found = json.loads(answer)["dependencies"]
    except (ValueError, KeyError):
        return ["pip-audit gave no answer"], asked
    skipped = sum("vulns" not in one for one in found) + asked - len(found)
    faults = [
        f"{one['name']} {one['version']} has the known fault {fault['id']}"
        for one in found
        for fault in one.get("vulns", ())
    ]
    return faults + [f"{skipped} of {asked} packages were not audited"] * bool(skipped), skipped


def packages() -> list[str]:
    """Build wheel and sdist twice: in two folders, with two times of the files and two umasks."""
    with tempfile.TemporaryDirectory() as folder:
        built = [
            _built(Path(folder) / f"copy{n}", n, mask) for n, mask in enumerate((0o022, 0o077))
        ]
        for _, path in sorted(built[0].items()):
            print(f"supply: {path.name} {_digest(path)}, {path.stat().st_size:,} bytes")
        return [
            f"two builds of the {name} differ"
            for name in built[0]
            if _digest(built[0][name]) != _digest(built[1][name])
        ]


def _built(place: Path, number: int, umask: int) -> dict[str, Path]:
    """The wheel and the sdist of a copy of the sources."""
    skipped = shutil.ignore_patterns(".git", ".venv", "build", "dist", "__pycache__", ".*_cache")
    shutil.copytree(ROOT, place, ignore=skipped)
    for path in (p for p in place.rglob("*") if p.is_file() and not p.is_symlink()):
        path.chmod(0o644 & ~umask | (path.stat().st_mode & 0o100))
        os.utime(path, (10**9 * (number + 1),) * 2)
    command = [
        str(ROOT / ".venv/bin/python"),
        "-m",
        "hatchling",
        "build",
        "-t",
        "wheel",
        "-t",
        "sdist",
    ]
    subprocess.run(command, cwd=place, check=True, capture_output=True, env=dated())
    (wheel,), (sdist,) = (place / "dist").glob("*.whl"), (place / "dist").glob("*.tar.gz")
    return {"wheel": wheel, "sdist": sdist}


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def dated() -> dict[str, str]:
    """The environment of a build whose time is that of the commit."""
    command = ["git", "log", "-1", "--format=%ct"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return os.environ | {"SOURCE_DATE_EPOCH": done.stdout.strip() or "1577836800"}


def pinned(*names: str) -> set[str]:
    """Names of the packages in some of the locks."""
    text = "".join((LOCKS / f"{name}.txt").read_text() for name in names)
    return {_plain(match[1]) for match in BLOCK.finditer(text)}


def _compiled(flags: list[str], more: Sequence[str]) -> dict[str, str]:
    """Name -> lines of a lock, without what only Windows needs, which is not claimed."""
    with tempfile.NamedTemporaryFile("w", suffix=".in") as file:
        file.write("\n".join(more))
        file.flush()
        quiet = ("--quiet", "--universal", "--no-header", "--no-annotate", "--generate-hashes")
        done = _run("uv", "pip", "compile", *quiet, "--python-version", "3.11", *flags, file.name)
    return {m[1]: m[0] for m in BLOCK.finditer(done.stdout) if "win32" not in m[0]}


def _run(tool: str, *words: object, check: bool = True) -> subprocess.CompletedProcess[str]:
    command = [str(TOOLS / tool), *map(str, words)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if check and done.returncode:
        sys.exit(f"supply: {tool} failed:\n{done.stderr[-2000:]}")
    return done


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
