"""Built packages in empty environments: installed without extras, each plans, releases and verifies.

    python .ci/bare_wheel.py dist/packages

A folder holds a wheel, an sdist, or both; nothing else of the repository is used. It prints the size of the
environment, its largest packages, and how long an import takes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

SCHEMA = """format = "gibbous-schema/1"
null = ""
ignore = []

[unit]
kind = "row"

[[column]]
name = "ill"
kind = "binary"
levels = ["no", "yes"]
"""


def main(packages: Path) -> None:
    """Install the wheel of a folder and use it, then its sdist."""
    built = [*packages.resolve().glob("*.whl"), *packages.resolve().glob("*.tar.gz")]
    if not built:
        sys.exit(f"{packages} holds no package")
    for package in built:
        _try(package)


def _try(package: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        venv.create(place / "venv", with_pip=True)
        programs = place / "venv" / ("Scripts" if os.name == "nt" else "bin")
        env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        env["GIBBOUS_HOME"] = str(place / "home")

        def run(*words: str) -> str:
            done = subprocess.run(
                words, cwd=place, env=env, capture_output=True, text=True, check=False
            )
            if done.returncode:
                sys.exit(f"{' '.join(words)} failed:\n{done.stdout}{done.stderr}")
            return done.stdout

        run(str(programs / "python"), "-m", "pip", "install", "--quiet", str(package))
        (place / "schema.toml").write_text(SCHEMA)
        (place / "data.csv").write_text("ill\n" + "no\nyes\n" * 500)
        gibbous = str(programs / "gibbous")
        budget = (
            "--schema",
            "schema.toml",
            "--method",
            "noisy_pegs",
            "--epsilon",
            "1",
            "--delta",
            "1e-6",
        )
        version = run(gibbous, "--version").strip()
        print(f"{package.name}: {version} on Python {sys.version.split()[0]}")
        run(gibbous, "plan", *budget)
        run(gibbous, "synthesize", "data.csv", *budget, "--rows", "100", "--out", "release")
        run(gibbous, "verify", "release")
        sizes = _sizes(place / "venv")
        print(f"installed, released, verified; the environment holds {sum(sizes.values()):.0f} MB")
        print(
            ", ".join(f"{n} {mb:.0f}" for n, mb in sorted(sizes.items(), key=lambda s: -s[1])[:10])
        )
        python = str(programs / "python")
        for code in ("pass", "import gibbous", "import gibbous.cli.app"):
            run(python, "-c", code)  # once for the files of compiled Python
            begun = time.perf_counter()
            run(python, "-c", code)
            print(f"{code}: {time.perf_counter() - begun:.2f} s")


def _sizes(environment: Path) -> dict[str, float]:
    """MB of each package of an environment, and of the rest."""
    (home,) = {p.parent for p in environment.rglob("gibbous") if p.parent.name == "site-packages"}
    sizes: dict[str, float] = {}
    for path in (p for p in environment.rglob("*") if p.is_file() and not p.is_symlink()):
        name = path.relative_to(home).parts[0] if path.is_relative_to(home) else "other"
        sizes[name] = sizes.get(name, 0.0) + path.stat().st_size / 1e6
    return sizes


if __name__ == "__main__":
    main(Path(sys.argv[1]))
