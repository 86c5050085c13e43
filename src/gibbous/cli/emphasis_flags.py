"""The flags that say what a release is for: a target, weights of columns and pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from typer import Option


@dataclass(frozen=True, eq=False, repr=False)
class EmphasisFlags:
    """What tables count for, where the method chooses among them."""

    target: Annotated[
        str | None,
        Option("--target", help="Column to be predicted: its tables come first. Public."),
        "mechanism.target",
    ] = None
    weight: Annotated[
        list[str] | None,
        Option("--weight", help="age=2, or age*income=5: what tables count for; repeatable."),
        "mechanism.weights",
    ] = None
