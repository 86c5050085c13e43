"""Keep a built site as one version among others: a folder that is read offline, and published as it is.

    python website/versions.py build/site build/versions [NAME]

`build/versions/NAME` is the site, `versions.js` the list that the pages of every version read, `index.html` leads
to the newest. An older version is made by its own checkout, into the same folder; nothing here builds it anew.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z.-]*")
INDEX = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>gibbous</title>
<meta http-equiv="refresh" content="0; url={0}/index.html">
<a href="{0}/index.html">gibbous {0}</a></html>
"""


def version() -> str:
    """The version that pyproject.toml states."""
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return str(stated["project"]["version"])


def keep(site: Path, home: Path, name: str) -> list[str]:
    """Copy a site into `home` under its name, in place of an earlier build of it; all names, newest first."""
    if not NAME.fullmatch(name):
        raise SystemExit(f"{name!r} is not a name for a version: letters, digits, . and -")
    if not (site / "index.html").is_file():
        raise SystemExit(f"{site} holds no site; run ./dev docs first")
    shutil.rmtree(home / name, ignore_errors=True)
    shutil.copytree(site, home / name)
    script = home / name / "assets" / "site.js"
    text = script.read_text(encoding="utf-8")
    script.write_text(text.replace("kept = false", "kept = true"), encoding="utf-8")
    names = sorted((p.parent.name for p in home.glob("*/index.html")), key=_order, reverse=True)
    listed = json.dumps([[one, one] for one in names])
    (home / "versions.js").write_text(f"window.gibbousVersions = {listed};\n", encoding="utf-8")
    (home / "index.html").write_text(INDEX.format(names[0]), encoding="utf-8")
    return names


def _order(name: str) -> list[tuple[int, int, str]]:
    """0.10 above 0.9, and 0.1.0 above 0.1.0-rc1."""
    parts = re.findall(r"\d+|[A-Za-z]+", name)
    return [(1, int(p), "") if p.isdigit() else (-1, 0, p) for p in parts] + [(0, 0, "")]


if __name__ == "__main__":
    print(*keep(Path(sys.argv[1]), Path(sys.argv[2]), (sys.argv[3:] or [version()])[0]))
