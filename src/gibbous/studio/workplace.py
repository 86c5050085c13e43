"""The folder that a studio works in: release.toml, schema.toml, and private scratch that is swept."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from gibbous.core import durable
from gibbous.core.documents import Unreadable, floats, read_text, toml
from gibbous.core.errors import OutputNotWritten
from gibbous.core.schema import Schema
from gibbous.studio.words import refusal

REQUEST, SCHEMA, SCRATCH, PASSWORD = "release.toml", "schema.toml", ".studio", "pgpass"
STUDY, RUNS, INTERNAL = "study.toml", "study", "internal"
MAX_BYTES = 1 << 20
SECTIONS = ("privacy", "mechanism", "output", "engine", "evaluate", "audit", "studio")
READ = {"sep": ",", "encoding": "utf-8", "decimal": "."}
"""How text is read unless [studio] of the request says otherwise."""

Values = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Workplace:
    """One folder; its files are the only state.

    Attributes:
        board: name of a release in it that is all that is shown, and never changed; "" for none.
        elsewhere: where private files are; None for inside the folder.
    """

    folder: Path
    board: str = ""
    elsewhere: Path | None = None

    @property
    def scratch(self) -> Path:
        """Private files of the studio."""
        return self.elsewhere or self.folder / SCRATCH

    @property
    def uploads(self) -> Path:
        """Copies of what a browser sent; the one that the request names is kept."""
        return self.scratch / "uploads"

    @property
    def schema_file(self) -> Path:
        """Where the schema is, or will be."""
        if self.board:
            return self.release / SCHEMA
        return self.folder / str(self.value("schema", SCHEMA))

    @property
    def release(self) -> Path:
        """The folder of the release."""
        return self.folder / (self.board or str(self.value("output.path", "release")))

    @property
    def flow_map(self) -> Path:
        """Where a map of the release's flows is drawn: beside the release; of a board elsewhere."""
        if self.board:
            return self.scratch / "flows.svg"
        return self.release.with_name(f"{self.release.name}.flows.svg")

    def prepare(self) -> None:
        """Make the private folders, and sweep what an earlier studio left.

        Raises:
            OutputNotWritten: the folder cannot be written.
        """
        try:
            for path in (self.scratch, self.uploads, self.scratch / "jobs"):
                path.mkdir(mode=0o700, exist_ok=True)
                path.chmod(0o700)
        except OSError:
            raise refusal("NOTWRITABLE", str(self.folder), kind=OutputNotWritten) from None
        self.sweep()

    def sweep(self) -> None:
        """Remove every upload that the request does not name, and every half-written file."""
        for path in sorted(self.uploads.rglob("*"), reverse=True):  # files before their folders
            if path.is_dir() and not path.is_symlink():
                with suppress(OSError):
                    path.rmdir()
            elif not self._named(path):
                path.unlink(missing_ok=True)

    def _named(self, path: Path) -> bool:
        """Whether the request names this upload: itself, its folder, or a pattern of all files there."""
        kept = self.folder / self.data()
        kept = kept.parent if kept.name.startswith("*") else kept
        return kept.is_relative_to(self.uploads) and path.is_relative_to(kept)

    def upload(self, name: str) -> Path | None:
        """A file or folder that a browser sent, by the name that it was told; None where there is none."""
        path = self.uploads / name
        whole = re.fullmatch(r"[0-9a-f]{8}/[\w-]+(\.\w+)*", name, re.ASCII)
        return path if whole and path.resolve() == path and path.exists() else None

    def request(self) -> Values:
        """The request as dotted keys; empty where there is none; UsageError if it is not TOML."""
        path = self.folder / REQUEST
        if self.board or not path.exists():
            return {}
        try:
            document = toml(read_text(path, MAX_BYTES), parse_float=Decimal)
        except Unreadable as error:
            raise refusal("CONFIG", REQUEST, error) from None
        flat: Values = {}
        for key, value in document.items():
            more = value if isinstance(value, dict) else {}
            flat |= {f"{key}.{name}": inner for name, inner in more.items()} or {key: value}
        return flat

    def value(self, key: str, usual: Any = "") -> Any:
        """One value of the request."""
        return self.request().get(key, usual)

    def data(self) -> str:
        """The data set: a path, relative to the folder or absolute, or an address; "" for none."""
        return str(self.value("data"))

    def called(self) -> str:
        """The data set as a screen names it: an upload by its own name."""
        data = self.data()
        path = self.folder / data
        if not data or not path.is_relative_to(self.uploads):
            return data
        return path.parent.name if path.name.startswith("*") else path.name

    def save(self, changes: Mapping[str, Any]) -> None:
        """Change keys of the request; None and "" remove one."""
        values = self.request() | dict(changes)
        values = {key: value for key, value in values.items() if value not in (None, "", [])}
        write(self.folder / REQUEST, document_text(values))

    def schema(self) -> Schema | None:
        """The schema; None where there is none yet; an error if the file is not a schema."""
        from gibbous.read.schema_file import load_schema

        return load_schema(self.schema_file) if self.schema_file.exists() else None

    def read(self) -> dict[str, str]:
        """How text was found to be written, as far as it is not the usual way."""
        said = {name: str(self.value(f"studio.{name}", usual)) for name, usual in READ.items()}
        return {name: text for name, text in said.items() if text != READ[name]}

    def reading(self) -> tuple[str, ...]:
        """The flags that read text as it was found to be."""
        return tuple(word for name, text in self.read().items() for word in (f"--{name}", text))

    def short(self, path: Path) -> str:
        """A path as a command in this folder takes it."""
        with suppress(ValueError):
            return str(path.relative_to(self.folder))
        return str(path)

    def inside(self, *names: str) -> Path | None:
        """A regular file of the folder, reached through no link; None where there is none."""
        path = self.folder.joinpath(*names)
        whole = path.resolve() == path and path.is_relative_to(self.folder)
        return path if whole and path.is_file() else None


def doors(scratch: Path) -> dict[str, str]:
    """What a process of ours finds the password of a database by: never in an argument."""
    path = scratch / PASSWORD
    return {"PGPASSFILE": str(path)} if path.exists() else {}


def document_text(values: Mapping[str, Any]) -> str:
    """Dotted keys as TOML: first those without a section, then one section after the other."""
    from gibbous.read.schema_write import pair

    lines = [pair(key, floats(v)) for key, v in values.items() if "." not in key]
    more = (key.partition(".")[0] for key in values if "." in key)
    for section in dict.fromkeys((*SECTIONS, *more)):  # those of others are kept as they are
        own = {k.partition(".")[2]: v for k, v in values.items() if k.startswith(f"{section}.")}
        if own:
            lines += ["", f"[{section}]", *(pair(name, floats(v)) for name, v in own.items())]
    return "\n".join(lines) + "\n"


def aside(path: Path) -> str:
    """Rename a file or folder, if it is there, to a name that is free; the new name, or ""."""
    if not path.exists():
        return ""
    stem, ending = path.stem if path.is_file() else path.name, path.suffix if path.is_file() else ""
    count = 1
    while (kept := path.with_name(f"{stem}.before-{count}{ending}")).exists():
        count += 1
    path.rename(kept)
    return kept.name


def write(path: Path, text: str) -> None:
    """Write a small private file whole or not at all."""
    durable.write_private(path, text.encode())


def slug(name: str) -> str:
    """The harmless part of a file name that somebody sent; never a path."""
    stem = re.sub(
        r"[^A-Za-z0-9_-]+", "-", name.rpartition("/")[2].rpartition("\\")[2].split(".")[0]
    )
    return stem.strip("-")[:40] or "table"
