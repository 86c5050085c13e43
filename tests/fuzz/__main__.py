"""`./dev fuzz [TARGET ...] [--minutes N]`: run targets in turn; 1 if one found something or tried nothing."""

from __future__ import annotations

import argparse
import hashlib
import sys
from pathlib import Path

from tests.fuzz import campaign, planted, worker

FOLDER = worker.ROOT / "tests" / "fuzz" / "findings"
MOST = 25_000  # bytes of each target that are committed
KEPT = worker.ROOT / ".cache" / "fuzz"  # what reached further, for the next run


def main() -> int:
    """Run what is asked for."""
    from tests.fuzz.targets import TARGETS

    parser = argparse.ArgumentParser(prog="./dev fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--minutes", type=float, default=60.0, help="of each target (60)")
    parser.add_argument("--engine", choices=("atheris", "plain"), help="plain: without coverage")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder for findings")
    parser.add_argument("--planted", choices=planted.TARGETS, help="try the harness on a known bug")
    parser.add_argument(
        "--distil", action="store_true", help="add to the corpus what reached further"
    )
    given = parser.parse_args()
    if unknown := sorted(set(given.targets) - set(TARGETS)):
        parser.error(f"there is no target {unknown[0]!r}; they are {', '.join(TARGETS)}")
    engine = given.engine or ("atheris" if worker.has_coverage() else "plain")
    names, patches = given.targets or list(TARGETS), ()
    if given.distil:
        return sum(_distil(name) for name in names)
    if given.planted:
        names = [planted.TARGETS[given.planted]]
        patches = (f"{planted.__name__}.{given.planted}",)
    return min(1, sum(_run(name, engine, patches, given.minutes * 60, given.out) for name in names))


def _distil(name: str) -> int:
    """Short inputs of earlier runs that reach new lines go to the corpus, as reach-..."""
    from tests.fuzz.targets import CORPUS

    for data in campaign.distilled(name, KEPT / name, MOST):
        path = CORPUS / name / f"reach-{hashlib.sha256(data).hexdigest()[:12]}"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        print(path, len(data))
    return 0


def _run(name: str, engine: str, patches: tuple[str, ...], seconds: float, out: Path) -> int:
    """One target; its findings, made small, are saved below `out`."""
    one = campaign.Campaign(name, engine, patches, None if patches else KEPT / name)
    one.run(seconds, enough=1 if patches else campaign.MOST)
    print(f"{name}: {one.executions:,} inputs in {one.seconds:.0f} s ({engine})", flush=True)
    if not (one.executions or one.findings):  # a starved worker looks like a clean pass otherwise
        print("  nothing was tried: give it more minutes, or an idle machine", flush=True)
        return 1
    for finding in one.findings:
        small = campaign.minimized(finding, lambda data: campaign.outcome(name, data, patches))
        path = campaign.save(small, out / name)
        print(f"  {finding.kind}: {finding.signature}\n    {path}", flush=True)
    return len(one.findings)


if __name__ == "__main__":
    sys.exit(main())
