"""The licenses of everything that is installed: with gibbous, with its extras, and for its tests."""

from __future__ import annotations

import importlib.metadata
import re
from functools import cache

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.frame.tree import ROOT, project

# SPDX names, and the classifiers and free text that older packages use for the same licenses.
ALLOWED = {
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "PSF-2.0",
    "Unicode-3.0",
    "Zlib",
}
CLASSIFIERS = {
    "License :: OSI Approved :: Apache Software License": "Apache-2.0",
    "License :: OSI Approved :: BSD License": "BSD",
    "License :: OSI Approved :: ISC License (ISCL)": "ISC",
    "License :: OSI Approved :: MIT License": "MIT",
    "License :: OSI Approved :: Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "License :: OSI Approved :: Python Software Foundation License": "PSF-2.0",
}
FILES = {
    "axe-playwright-python": {"MIT", "MPL-2.0"}
}  # by its file of the license; axe-core inside is MPL-2.0
TEXTS = {"Apache 2.0": "Apache-2.0", "Apache License, Version 2.0": "Apache-2.0"}


def test_every_license_of_the_installed_core_is_on_the_list() -> None:
    found = {name: licenses(name) for name in core()}

    outside = {name: given for name, given in found.items() if not given or given - ALLOWED}

    assert len(found) > 8
    assert not outside


def test_every_license_of_what_the_locks_install_is_on_the_list() -> None:
    """What only builds and tests may have a license of files (MPL-2.0); nothing of it is handed on."""
    allowed = {"core": ALLOWED, "extras": ALLOWED, "dev": ALLOWED | {"MPL-2.0"}}
    found = {
        (lock, name): licenses(name) for lock in allowed for name in locked(lock) if installed(name)
    }

    outside = {key: given for key, given in found.items() if not given or given - allowed[key[0]]}

    assert len(found) > 60
    assert not outside


def test_heavy_frameworks_are_no_part_of_the_core() -> None:
    assert not core() & {"torch", "jax", "pandas", "scikit-learn", "pyspark", "statsmodels"}


def test_our_own_license_is_the_apache_license_in_full() -> None:
    text = (ROOT / "LICENSE").read_text()

    assert project()["project"]["license"] == "Apache-2.0"
    assert "Apache License" in text
    assert "9. Accepting Warranty or Additional Liability." in text


@cache
def core() -> frozenset[str]:
    """Names of all packages that `pip install gibbous` brings, without extras."""
    found: set[str] = set()
    waiting = [Requirement(line) for line in project()["project"]["dependencies"]]
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name in found:
            continue
        found.add(name)
        extras = requirement.extras or {""}
        for line in importlib.metadata.requires(name) or ():
            inner = Requirement(line)
            if inner.marker is None or any(inner.marker.evaluate({"extra": e}) for e in extras):
                waiting.append(inner)
    return frozenset(found)


def locked(lock: str) -> list[str]:
    """Names in one file of requirements/."""
    text = (ROOT / "requirements" / f"{lock}.txt").read_text()
    return re.findall(r"^([a-z0-9-]+)==", text, re.MULTILINE)


def installed(name: str) -> bool:
    """Whether it is here: some are for other systems or Pythons only."""
    return any(True for _ in importlib.metadata.distributions(name=name))


def licenses(name: str) -> set[str]:
    """SPDX names in the metadata of an installed package; unknown text stays as it is."""
    facts = importlib.metadata.metadata(name)
    if name in FILES:
        return FILES[name]
    if expression := facts.get("License-Expression"):
        return {part.strip(" ()") for part in re.split(r"\bAND\b|\bOR\b", expression)}
    given = [c for c in facts.get_all("Classifier") or () if c.startswith("License ::")]
    if given:
        return {CLASSIFIERS.get(c, c) for c in given}
    text = (facts.get("License") or "").strip()
    text = TEXTS.get(text, text.removesuffix(" License"))
    return {text} if text else set()
