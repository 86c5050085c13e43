"""Docstrings say `epsilon, delta: of one release` once; the API reference lists each name with that text.

An extension of griffe, which reads docstrings for mkdocstrings: website/mkdocs.yml names it.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_SECTION = re.compile(r"^ *(Args|Attributes):(?:\n(?: +[^\n]*)?)+", re.MULTILINE)
_JOINT = re.compile(r"^( +)(\w+(?:, \w+)+)(: [^\n]*(?:\n\1 +[^\n]*)*)", re.MULTILINE)


def apart(docstring: str) -> str:
    """The same docstring, with one entry for each name of a joint one."""
    return _SECTION.sub(lambda section: _JOINT.sub(_each, section.group()), docstring)


def _each(joint: re.Match[str]) -> str:
    indent, names, text = joint.groups()
    return "\n".join(f"{indent}{name}{text}" for name in names.split(", "))


class JointArguments(griffe.Extension):
    """Writes joint entries apart before they are read."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Of each module, class and function, once it is loaded."""
        if obj.docstring is not None:
            obj.docstring.value = apart(obj.docstring.value)
