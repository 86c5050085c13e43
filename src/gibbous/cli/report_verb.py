"""`gibbous report`: the public report of a release, or the internal one with real data beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gibbous.cli import show
from gibbous.cli.progress import Bars
from gibbous.core.errors import UsageError
from gibbous.core.extras import require

if TYPE_CHECKING:
    from gibbous.evaluate.findings import Findings
    from gibbous.read.source import ReadOptions

LIBRARIES = ("altair", "vl_convert")
CONFIDENTIAL = "Confidential: comparisons with real records, outside the guarantee of any release."


@dataclass(frozen=True, slots=True)
class Compared:
    """What the internal report compares the release with; lists are split at commas.

    Attributes:
        findings: a file of findings, in place of an evaluation now.
        study: folder of a study, whose risk-utility map is shown.
        geography: file of the places of a release of flows: maps are drawn.
        destinations: ids to draw; empty for the largest.
        options: makes the reading options; late, because the reader is a heavy import.
    """

    options: Callable[[], ReadOptions]
    real: Path | None = None
    schema: Path | None = None
    holdout: Path | None = None
    findings: Path | None = None
    keys: Sequence[str] = ()
    sensitive: Sequence[str] = ()
    targets: Sequence[str] = ()
    formulas: Sequence[str] = ()
    seed: int = 0
    study: Path | None = None
    geography: Path | None = None
    destinations: Sequence[str] = ()

    @property
    def maps(self) -> dict[str, Any]:
        """What draws maps of flows; the records are drawn only in an internal report."""
        if self.geography is None and not self.destinations:
            return {}
        found: dict[str, Any] = {
            "geography": self.geography,
            "destinations": tuple(self.destinations),
        }
        if self.real is not None:
            found |= {"flows": self.real, "options": self.options()}
        return found

    @property
    def given(self) -> list[str]:
        """Flags that were given."""
        named = {
            "--real": self.real,
            "--findings": self.findings,
            "--holdout": self.holdout,
            "--keys": self.keys,
            "--sensitive": self.sensitive,
            "--targets": self.targets,
            "--formula": self.formulas,
            "--study": self.study,
        }
        return [flag for flag, value in named.items() if value]


def run(
    release: Path,
    audience: str,
    out: Path | None,
    compared: Compared,
    overwrite: bool,
    json: bool,
    quiet: bool,
) -> None:
    """Write a report and its JSON twin.

    Args:
        out: the HTML file; None puts the public report into the release itself.
    Raises:
        GibbousError: one class an exit code.
    """
    require(LIBRARIES, "report")
    _check(audience, out, compared)
    from gibbous.report import faces

    with Bars(quiet=quiet or json) as bars:
        if audience == "public":
            bars("report", 0, 1)
            path = faces.report(release, "public", out, overwrite=overwrite, **compared.maps)
        else:
            mapped = _study(compared.study) | compared.maps
            found = _findings(release, out, compared, overwrite, bars)
            bars("report", 0, 1)
            path = faces.report(
                release, "internal", out, findings=found, overwrite=overwrite, **mapped
            )
    _said(path, audience, out, json, quiet, "and public places " if compared.maps else "")


def _said(
    path: Path, audience: str, out: Path | None, json: bool, quiet: bool, more: str = ""
) -> None:
    twin = path.with_suffix(".json")
    if json:
        show.as_json({"path": str(path), "twin": str(twin), "audience": audience})
        return
    if not quiet:
        show.line(f"{path}: open it in a browser; it asks for nothing from the network.")
        show.line(f"{twin}: the same content for programs.")
        if audience == "public" and out is None:
            show.line("The release was sealed again with both; `gibbous verify` covers them.")
    if audience == "internal":
        show.line(f"{CONFIDENTIAL} {path}")
    else:
        show.line(f"Public: made from the release {more}alone. {path}")


def _check(audience: str, out: Path | None, compared: Compared) -> None:
    if audience not in ("public", "internal"):
        raise UsageError(
            "AUDIENCE",
            f"There is no audience {audience!r}.",
            "Audiences are 'public' and 'internal'.",
            "Correct --audience.",
        )
    given = compared.given
    if audience == "public" and given:
        raise UsageError(
            "AUDIENCE",
            f"{', '.join(given)} was given for a public report.",
            "A public report is made from the release alone; comparisons with real records are internal.",
            "Leave these out, or pass --audience internal.",
        )
    if audience == "internal" and (
        out is None or (compared.real is None) == (compared.findings is None)
    ):
        raise UsageError(
            "FINDINGS",
            "An internal report needs --out, and either --real or --findings.",
            "--real FILE evaluates now; --findings FILE takes what gibbous evaluate wrote.",
            "Pass --out report.internal.html and one of the two.",
        )
    beside = [f for f in given if f not in ("--findings", "--study")]
    if compared.findings is not None and beside:
        raise UsageError(
            "FINDINGS",
            f"{', '.join(beside)} was given together with --findings.",
            "The findings of a file are shown as they are.",
            "Leave the other flags out, or pass --real to evaluate again.",
        )


def _study(folder: Path | None) -> dict[str, Any]:
    """A study and the axes of its map: pairs where they were measured, else its first finding."""
    if folder is None:
        return {}
    from gibbous.frontier.study import Study

    study = Study.load(folder)
    y = "tv2" if "tv2" in study.metrics() else study.metrics()[0]
    return {"study": study, "axes": ("epsilon_proven", y)}


def _findings(
    release: Path, out: Path | None, compared: Compared, overwrite: bool, bars: Bars
) -> Findings | Path:
    if compared.findings is not None:
        return compared.findings
    from gibbous.report import faces, page

    assert out is not None, "checked before"
    page.check_path(out, overwrite=overwrite)
    schema: Any = compared.schema or release / "schema.toml"
    if compared.geography is not None:
        from gibbous.flows import load_geography

        schema = load_geography(compared.geography)
    return faces.evaluate(
        compared.real,
        release,
        schema,
        keys=_split(compared.keys),
        sensitive=_split(compared.sensitive),
        targets=_split(compared.targets),
        formulas=tuple(compared.formulas),
        holdout=compared.holdout,
        seed=compared.seed,
        progress=bars,
        options=compared.options(),
    )


def _split(values: Sequence[str]) -> tuple[str, ...]:
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())
