"""What a screen is: a name, what it shows, and its forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gibbous.core.schema import Schema
from gibbous.studio.words import refusal

if TYPE_CHECKING:
    from gibbous.studio.app import Studio
    from gibbous.studio.forms import Form


@dataclass(frozen=True, slots=True)
class Screen:
    """One screen; its actions return the address to go on to."""

    name: str
    show: Callable[[Studio, Form], dict[str, Any]]
    actions: Mapping[str, Callable[[Studio, Form], str]] = field(default_factory=dict)


def needed_data(studio: Studio) -> str:
    """The data set that is open; UsageError if none is."""
    data = studio.place.data()
    if not data:
        raise refusal("NODATA")
    return data


def needed_schema(studio: Studio) -> Schema:
    """The schema; UsageError if there is none yet."""
    schema = studio.place.schema()
    if schema is None:
        raise refusal("NOSCHEMA")
    return schema


def needed_release(studio: Studio) -> str:
    """The folder of the release, as a command takes it; UsageError if there is none yet."""
    path = studio.place.release
    if not (path / "manifest.json").is_file():
        raise refusal("NORELEASE")
    return studio.place.short(path)
