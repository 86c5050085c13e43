"""Many faults, one a run: each in a folder of its own, each followed by the same command without one."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.faults.injected import COMMANDS, NONE, Fault, Runner, faults, place
from tests.faults.words import Case, Facts, facts, same, untrue


class Storm:
    """One command, met by faults.

    Args:
        folder: an empty one.
        runner: runs commands.
        name: of the command, in COMMANDS.
    """

    def __init__(self, folder: Path, runner: Runner, name: str) -> None:
        self._runner, self.command = runner, COMMANDS[name]
        self._run, self._before = folder / "run", folder / "before"
        place(self._run, None)  # requests name the path: all runs are at this one
        if self.command.first:
            killed = self.command.killed
            first = COMMANDS[self.command.first].argv
            assert runner.run(self._run, first, killed or NONE).code == (-9 if killed else 0)
        self._run.rename(self._before)
        self._facts = facts(self._before, self.command)
        whole = runner.run(place(self._run, self._before), self.command.argv)
        assert whole.code == 0, whole.err
        shutil.rmtree(self._run)
        self.faults = faults(whole.counts)

    def some(self, count: int, *, seed: int = 1) -> list[Fault]:
        """So many of all faults, each as likely."""
        return random.Random(seed).sample(self.faults, min(count, len(self.faults)))

    def cases(self, chosen: Sequence[Fault], patches: tuple[str, ...] = ()) -> Iterator[Case]:
        """What happened at each fault; the folder is removed afterwards."""
        for fault in chosen:
            shutil.rmtree(self._run, ignore_errors=True)
            place(self._run, self._before)
            yield self._case(self._run, fault, patches)

    def _case(self, folder: Path, fault: Fault, patches: tuple[str, ...]) -> Case:
        command, runner = self.command, self._runner
        said = runner.run(folder, command.argv, fault, patches)
        after = facts(folder, command)
        case = Case(command, fault, said, self._facts, after, None, after)
        if said.code == 0 or self._over(folder, after):
            return same(case)
        again = runner.run(folder, command.argv)
        return Case(command, fault, said, self._facts, after, again, facts(folder, command))

    def _over(self, folder: Path, after: Facts) -> bool:
        """Whether the run replaced the output and had only an empty folder left to remove."""
        return "--overwrite" in self.command.argv and (
            after.out != self._facts.out and not after.resumable
        )


def report(cases: Iterator[Case]) -> tuple[int, int, list[str]]:
    """Errors that were injected, kills, and every sentence that was not so, with its fault."""
    errors = kills = 0
    wrong: list[str] = []
    for case in cases:
        killed = case.fault.mode == "kill"
        errors, kills = errors + (not killed), kills + killed
        wrong += [f"{case.fault}: {words}" for words in untrue(case)]
    return errors, kills, wrong
