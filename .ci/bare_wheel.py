"""The built wheel in an empty environment: installed without extras, it plans, releases and verifies.

    python .ci/bare_wheel.py dist/packages

Nothing of the repository is used but the wheel, on whatever Python and system runs this.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
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
    """Install the one wheel of a folder, and use it."""
    (wheel,) = packages.resolve().glob("*.whl")
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

        run(str(programs / "python"), "-m", "pip", "install", "--quiet", str(wheel))
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
        print(run(gibbous, "--version").strip(), "on Python", sys.version.split()[0])
        run(gibbous, "plan", *budget)
        run(gibbous, "synthesize", "data.csv", *budget, "--rows", "100", "--out", "release")
        run(gibbous, "verify", "release")
        size = sum(f.stat().st_size for f in (place / "venv").rglob("*") if f.is_file())
        print(f"installed, released, verified; the environment holds {size / 1e6:.0f} MB")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
