"""Methods of a comparison: usual ones are ticked, others have parameters and a name of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gibbous.core.documents import Unreadable, read_text, toml
from gibbous.core.keywords import DEFAULT_METHOD
from gibbous.studio.screens.parameters import checked, line, parameters, shown
from gibbous.studio.words import refusal
from gibbous.studio.workplace import MAX_BYTES

if TYPE_CHECKING:
    from gibbous.core.method_card import About
    from gibbous.studio.app import Studio
    from gibbous.studio.forms import Form

USUAL = (DEFAULT_METHOD, "privbayes")  # those that Method recommends
KINDS = ("approximate", "pure", "zcdp", "gdp")
VARIED = ("epsilon",)  # by the study itself
NAME = 60  # characters
ASKED = {
    "privacy.epsilon": 1.0,
    "output.rows": 1,
    "output.sets": 1,
}  # parameters are checked beside it


@dataclass(frozen=True, slots=True)
class Arm:
    """One method of a study.

    Attributes:
        label: what points of it are called; "" for its name and what is given of it.
        given: parameters that are not the usual ones.
    """

    method: str
    label: str = ""
    given: Mapping[str, Any] = field(default_factory=dict)

    @property
    def called(self) -> str:
        """What points of it are called."""
        said = [line(name, value) for name, value in self.given.items()]
        return self.label or ", ".join((self.method, *said))

    @property
    def usual(self) -> bool:
        """Whether a tick alone says it."""
        return not self.given and self.called == self.method


def offered() -> list[About]:
    """Methods that a study may compare: those with a guarantee."""
    from gibbous.mechanisms.registry import methods

    return [a for a in methods() if a.kind in KINDS]


def document(path: Path) -> dict[str, Any]:
    """A study file as plain values; empty where there is none that this screen can read."""
    try:
        found: dict[str, Any] = toml(read_text(path, MAX_BYTES))
    except (OSError, Unreadable):
        return {}
    said = found.get("study", {})
    lists = [found.get("methods", [])]
    lists += (
        [said.get(key, []) for key in ("epsilon", "metrics")] if isinstance(said, dict) else [0]
    )
    fits = all(isinstance(one, list) for one in lists)
    return found if fits and "geography" not in found else {}


def kept(study: Mapping[str, Any]) -> list[Arm]:
    """The methods of a study file; the usual ones where there is no file."""
    if not study:
        return [Arm(name) for name in USUAL]
    names = {about.name for about in offered()}
    found = []
    for table in study.get("methods", []):
        if not isinstance(table, dict) or table.get("name") not in names:
            continue
        given = {key: v for key, v in table.items() if key not in ("name", "label")}
        own = Arm(table["name"], given=given)
        label = str(table.get("label", own.method))
        found.append(own if label == own.called else Arm(own.method, label, given))
    return found


def asked(studio: Studio, form: Form) -> list[Arm]:
    """The methods of a form: those that are ticked, then those with parameters of their own.

    Raises:
        UsageError: a parameter is not taken; or two methods are called the same.
    """
    found = [Arm(name) for name in form.many.get("methods", [])]
    found += _own(studio, form)
    names = [arm.called for arm in found]
    for name in names:
        if names.count(name) > 1:
            raise refusal("STUDY_twice", name)
    return found


def _own(studio: Studio, form: Form) -> list[Arm]:
    request = ("privacy.delta", *studio.place.request())  # of which a study knows nothing
    held = {key: None for key in request if key.startswith(("mechanism.", "privacy."))}
    found = []
    for place, method in enumerate(_methods(form)):
        if form.get(f"gone{place}") == "yes":
            continue
        usual = held | ASKED | {"mechanism.name": method}
        given = checked(studio, form, parameters(method, VARIED), usual, f"v{place}-")
        params = {key.partition(".")[2]: v for key, v in given.items() if v is not None}
        found.append(Arm(method, form.text(f"called{place}", NAME), params))
    return found


def _methods(form: Form) -> list[str]:
    """Those with parameters of their own, in the order of the form; unknown ones are no methods."""
    names = {about.name for about in offered()}
    found: list[str] = []
    while (name := form.get(f"method{len(found)}", "")) in names:
        found.append(name)
    return found


def fields(study: Mapping[str, Any], form: Form) -> dict[str, Any]:
    """What the screen shows of the methods; of a form that was refused, as it was typed.

    Args:
        study: what its file says.
        form: one that was refused, or an address: "add" of it names one more method to change.
    """
    sent, some = "epsilons" in form, kept(study)
    names = [about.name for about in offered()]
    own = [Arm(m) for m in _methods(form)] if sent else [arm for arm in some if not arm.usual]
    own += [Arm(name) for name in names if name == form.get("add")]
    return {
        "methods": names,
        "ticked": form.many.get("methods", []) if sent else [a.method for a in some if a.usual],
        "own": [_shown(place, arm, form) for place, arm in enumerate(own)],
        "opened": range(len(own)) if sent else [len(own) - 1] if form.get("add") else [],
    }


def _shown(place: int, arm: Arm, form: Form) -> dict[str, Any]:
    values = {f"mechanism.{name}": value for name, value in arm.given.items()}
    label = form.get(f"called{place}", arm.label)
    return {
        "place": place,
        "method": arm.method,
        "called": label or arm.called,
        "label": label,
        "gone": form.get(f"gone{place}") == "yes",
        "fields": [shown(p, values, form, f"v{place}-") for p in parameters(arm.method, VARIED)],
    }
