"""The licenses of everything that an ordinary installation brings along."""

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
    "PSF-2.0",
    "Unicode-3.0",
    "Zlib",
}
CLASSIFIERS = {
    "License :: OSI Approved :: Apache Software License": "Apache-2.0",
    "License :: OSI Approved :: BSD License": "BSD",
    "License :: OSI Approved :: ISC License (ISCL)": "ISC",
    "License :: OSI Approved :: MIT License": "MIT",
    "License :: OSI Approved :: Python Software Foundation License": "PSF-2.0",
}


def test_every_license_of_the_installed_core_is_on_the_list() -> None:
    found = {name: licenses(name) for name in core()}

    outside = {name: given for name, given in found.items() if not given or given - ALLOWED}

    assert len(found) > 8
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


def licenses(name: str) -> set[str]:
    """SPDX names in the metadata of an installed package; unknown text stays as it is."""
    facts = importlib.metadata.metadata(name)
    if expression := facts.get("License-Expression"):
        return {part.strip(" ()") for part in re.split(r"\bAND\b|\bOR\b", expression)}
    given = [c for c in facts.get_all("Classifier") or () if c.startswith("License ::")]
    if given:
        return {CLASSIFIERS.get(c, c) for c in given}
    text = (facts.get("License") or "").strip()
    return {text.removesuffix(" License")} if text else set()
