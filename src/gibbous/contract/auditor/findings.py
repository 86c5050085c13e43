"""What an audit found: each piece of evidence with its level, and the verdict in words and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from gibbous.core.claim import Relation

EvidenceKind = Literal["canaries", "pairs", "mu", "noise", "price", "doors", "diversity"]
Verdict = Literal["nothing found", "VIOLATION", "cannot tell", "nothing to audit"]
SCHEMA = "gibbous.audit/1"
MEANING: dict[EvidenceKind, str] = {
    "canaries": "the outputs refute the claim, at this confidence",
    "pairs": "the outputs refute the claim, at this confidence",
    "mu": "the outputs refute the claim, at this confidence",
    "diversity": "the outputs refute the claim, at this confidence",
    "noise": "the noise in the tables is less than the tables state; whether the claim still holds, "
    "this alone does not say",
    "price": "the noise that the tables state does not cover the claim; no statistics involved",
    "doors": "with noise, choices and draws held fixed the output still depends on the records; no "
    "statistics involved",
}


@dataclass(frozen=True, slots=True)
class Evidence:
    """One test of the claim.

    Attributes:
        kind: canaries and pairs bound epsilon from below, mu that of Gaussian DP; noise compares noisy
            with exact counts under the law that the tables state; price compares that law with the
            claim; doors holds every random answer fixed; diversity bounds l from above.
        name: what was run, in words.
        relation: neighbor relation of the claim.
        runs: runs of the mechanism (of pairs: on each side).
        violated: whether it contradicts what is claimed or declared.
        claimed: epsilon of the claim (mu: mu; diversity: l; noise: 1, the stated scale); None without
            one.
        delta: of the claim.
        bound: lower bound of epsilon or mu (diversity: upper bound of l; noise: the scale that fits
            best, as a share of the stated one).
        ceiling: the largest epsilon or mu that these runs could have shown (noise: the largest share of the
            stated scale that they would show in 99 of 100 audits); None without statistics.
        level: probability that a sound method is flagged here; 0 without statistics.
        words: the attack, or what was found.
        caught: of mu: the share of the stated noise at which 95 of 100 such audits would flag.
    """

    kind: EvidenceKind
    name: str
    relation: Relation
    runs: int
    violated: bool
    claimed: float | None = None
    delta: float = 0.0
    bound: float | None = None
    ceiling: float | None = None
    level: float = 0.0
    words: str = ""
    caught: float | None = None

    @property
    def refutes(self) -> bool:
        """Whether a violation is a statement about the claim itself, not about declared noise."""
        return self.kind != "noise"

    @property
    def holds(self) -> bool:
        """Whether the claim survives."""
        return not self.violated

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self) | {"refutes_claim": self.refutes}


@dataclass(frozen=True, slots=True)
class SelfTest:
    """The same attacks on outputs whose noise was taken away: an audit must flag them.

    Attributes:
        flagged: whether it does, by at least one attack.
        evidence: what the attacks found there.
    """

    flagged: bool
    evidence: tuple[Evidence, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"flagged": self.flagged, "evidence": [e.to_json() for e in self.evidence]}


@dataclass(frozen=True, slots=True, repr=False)
class Audit:
    """The result of `gibbous.audit`. It rests on constructed data alone and may be published.

    Attributes:
        method: registered name.
        params: its parameters as JSON values.
        claim: what it claims, in words.
        kind: kind of claim.
        verdict: VIOLATION when any evidence is violated; cannot tell when the self-test was not
            flagged, for example because the claimed epsilon is above what these runs can refute.
        evidence: every test.
        self_test: None where there is nothing to audit.
        level: probability that a sound method is flagged by any test of this audit.
        seconds: CPU seconds.
        seed: of the canaries' coins.
        notes: sentences to read with it.
    """

    method: str
    params: dict[str, object]
    claim: str
    kind: str
    verdict: Verdict
    evidence: tuple[Evidence, ...] = ()
    self_test: SelfTest | None = None
    level: float = 0.0
    seconds: float = 0.0
    seed: int = 0
    notes: tuple[str, ...] = ()

    @property
    def violations(self) -> tuple[Evidence, ...]:
        """The evidence against the method, that which refutes the claim first."""
        return tuple(sorted((e for e in self.evidence if e.violated), key=lambda e: not e.refutes))

    @property
    def mu(self) -> Evidence | None:
        """The bound of mu that comes nearest to its claim; None without a claim of one."""
        bounds = [e for e in self.evidence if e.kind == "mu"]
        return max(bounds, key=lambda e: (e.bound or 0.0) / (e.claimed or 1.0), default=None)

    @property
    def best(self) -> Evidence | None:
        """The bound that comes nearest to its claim, or exceeds it most; None without bounds."""
        bounds = [e for e in self.evidence if e.kind in ("canaries", "pairs")]
        return max(bounds, key=lambda e: (e.bound or 0.0) / (e.claimed or 1.0), default=None)

    @property
    def runs(self) -> int:
        """Runs of the mechanism in all tests together; noise and mu read those of canaries."""
        times = {"pairs": 2, "noise": 0, "mu": 0}
        return sum(e.runs * times.get(e.kind, 1) for e in self.evidence)

    def __repr__(self) -> str:
        return f"<Audit of {self.method}: {self.verdict}>"

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """The audit for people; the last line is the verdict."""
        given = ", ".join(f"{k}={v}" for k, v in self.params.items())
        yield f"{self.method}({given})"
        yield f"  claims: {self.claim}"
        for one in self.evidence:
            yield f"  {one.kind:<9} {'VIOLATED: ' * one.violated}{_shown(one)}"
        if self.self_test is not None:
            state = "flagged, as it must be" if self.self_test.flagged else "NOT flagged"
            shown = "; ".join(_numbers(e) for e in self.self_test.evidence)
            yield f"  self-test without noise: {state} ({shown})"
        for note in self.notes:
            yield f"  note: {note}"
        yield self.headline()

    def headline(self) -> str:
        """The verdict in one line: claim, bound, confidence, runs, ceiling, seconds."""
        if self.verdict == "nothing to audit":
            return f"verdict: nothing to audit. {self.method} claims {self.claim}."
        tail = f"{self.runs:,} runs, {self.seconds:.1f} s."
        sure = f"{100 * (1 - self.level):.6g} %"
        if self.violations:
            first = self.violations[0]
            return (
                f"verdict: VIOLATION. {MEANING[first.kind].capitalize()}: {_shown(first)}. {tail}"
            )
        if self.best is None:
            sound = f"verdict: {self.verdict} at {sure} confidence."
            return f"{sound} {'; '.join(_shown(e) for e in self.evidence)}. {tail}"
        said = [f" {e.name}: {_numbers(e)}." for e in self.evidence if e.kind == "diversity"]
        name, nearest = ("mu", self.mu) if self.mu is not None else ("epsilon", self.best)
        return (
            f"verdict: {self.verdict}. Claimed {name} = {nearest.claimed:.4g}, at least "
            f"{nearest.bound:.4g} is shown ({sure} confidence); up to {nearest.ceiling:.4g} could have "
            f"been.{''.join(said)} {tail}"
        )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; the form is described in docs/how-to/audit.md."""
        best = self.best
        return {
            "schema": SCHEMA,
            "method": self.method,
            "params": self.params,
            "claim": self.claim,
            "kind": self.kind,
            "verdict": self.verdict,
            "claimed_epsilon": best.claimed if best else None,
            "claimed_delta": best.delta if best else None,
            "audited_epsilon": best.bound if best else None,
            "ceiling": best.ceiling if best else None,
            "claimed_mu": self.mu.claimed if self.mu else None,
            "audited_mu": self.mu.bound if self.mu else None,
            "confidence": 1 - self.level,
            "level": self.level,
            "runs": self.runs,
            "seconds": round(self.seconds, 2),
            "seed": self.seed,
            "self_test": self.self_test.to_json() if self.self_test else None,
            "evidence": [e.to_json() for e in self.evidence],
            "notes": list(self.notes),
        }


def _shown(one: Evidence) -> str:
    numbers = _numbers(one)
    words = f" ({one.words})" if one.words else ""
    return f"{one.name}, {one.relation}{': ' if numbers else ''}{numbers}{words}"


def _numbers(one: Evidence) -> str:
    if one.bound is None or one.claimed is None:
        return ""
    runs = f"{one.runs:,} runs"
    if one.kind == "noise":
        return f"scale {one.bound:.4f} of the stated one; below {one.ceiling:.3f} shows"
    if one.kind == "diversity":
        return f"l <= {one.bound:.4g}, claimed {one.claimed:.4g}"
    if one.kind == "mu":
        faults = f"{100 * (one.caught or 0):.0f} % of the stated noise shows in 95 of 100 audits"
        return (
            f"mu >= {one.bound:.4g}, claimed {one.claimed:.4g}, could show {one.ceiling:.4g}; "
            f"{faults}, {runs}"
        )
    delta = f" at delta {one.delta:.3g}" if one.delta else ""
    return (
        f"epsilon >= {one.bound:.4g}{delta}, claimed {one.claimed:.4g}, "
        f"could show {one.ceiling:.4g}, {runs}"
    )
