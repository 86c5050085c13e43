"""`./dev fuzz [TARGET ...] [--minutes N]`: run targets, one after the other; 1 when something was found."""

from __future__ import annotations

import argparse
import sys

from tests.fuzz import campaign, worker

FINDINGS = worker.ROOT / "tests" / "fuzz" / "findings"


def main() -> int:
    """Run what is asked for."""
    from tests.fuzz.targets import TARGETS

    parser = argparse.ArgumentParser(prog="./dev fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--minutes", type=float, default=60.0, help="of each target (60)")
    parser.add_argument("--engine", choices=("atheris", "plain"), help="plain: without coverage")
    given = parser.parse_args()
    if unknown := sorted(set(given.targets) - set(TARGETS)):
        parser.error(f"there is no target {unknown[0]!r}; they are {', '.join(TARGETS)}")
    engine = given.engine or ("atheris" if worker.has_coverage() else "plain")
    found = 0
    for name in given.targets or TARGETS:
        one = campaign.Campaign(name, engine)
        one.run(given.minutes * 60)
        print(f"{name}: {one.executions:,} inputs in {one.seconds:.0f} s ({engine})", flush=True)
        for finding in one.findings:
            found += 1
            small = campaign.minimized(
                finding, lambda data, name=name: campaign.outcome(name, data)
            )
            path = campaign.save(small, FINDINGS / name)
            print(f"  {finding.kind}: {finding.signature}\n    {path}", flush=True)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
