"""Screen 5: a sheet to review, a typed confirmation, and the run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gibbous.core.request import FORMATS, Imprint
from gibbous.studio import accounts, commands
from gibbous.studio.screens.budget import budget_of, plan_of
from gibbous.studio.screens.screen import Screen, needed_data, needed_schema
from gibbous.studio.words import refusal, words

if TYPE_CHECKING:
    from gibbous.core.plan import Plan
    from gibbous.studio.app import Studio
    from gibbous.studio.forms import Form

KEY = "sign.key"
TEXTS = ("issuer", "contact", "date", "license")


def _show(studio: Studio, form: Form) -> dict[str, Any]:
    schema, place, values = needed_schema(studio), studio.place, studio.place.request()
    made, problem = _plan(studio)
    accept = bool(schema.inferred())
    command = commands.synthesized(values, place.reading(), accept)
    run, key = studio.jobs.newest("synthesize"), studio.jobs.newest("keys", "new")
    keys = sorted(p.name for p in place.folder.glob("*.pub"))
    return {
        "values": {"data": "", "output.format": "", "output.seed": "", "output.sign": ""} | values,
        "unit": schema.unit.words() if schema.unit else "",
        "columns": len(schema),
        "inferred": schema.inferred(),
        "plan": made,
        "method": accounts.made_by(made.mechanism, made.params) if made else "",
        "plan_rows": [(s.what, s.claim.amount(), s.detail) for s in made.spends] if made else [],
        "plan_problem": problem,
        "memory_mb": max(1, round(made.memory_bytes / 1e6)) if made else None,
        "before": took_before(studio, made) if made else None,
        "amount": confirmation(studio),
        "unbounded": made is not None and not made.total.is_dp,
        "formats": FORMATS,
        "texts": [(name, form.get(name, str(values.get(f"output.{name}", "")))) for name in TEXTS],
        "title": form.get("title", schema.name or ""),
        "typed": form,
        "keys": [name.removesuffix(".pub") for name in keys],
        "looked": accounts.looked_at_results(studio),
        "exists": place.release.exists(),
        "out": place.short(place.release),
        "job": run,
        "keyjob": key,
        "keymade": key if studio.jobs.latest([j for j in (run, key) if j]) is key else None,
        "unfinished": accounts.unfinished(studio),
        "command": command.shell,
        "python": command.python,
    }


def took_before(studio: Studio, made: Plan) -> dict[str, Any] | None:
    """What the newest run of the same method took here, else its fastest and slowest on Compare.

    A plan knows cells and bytes, no seconds: what a method takes hangs on the records and the machine.
    """
    asked = made.to_json()
    for job in studio.jobs.all():
        seconds = studio.jobs.took(job) if job.verb == "synthesize" else None
        answer = studio.jobs.answer(job) if seconds is not None else None
        if not answer or answer.get("bought_before"):
            continue  # what was bought before is not counted again
        then = answer["plan"]
        if _methods(then) == _methods(asked):
            rows = answer["rows"]
            return {"seconds": seconds, "rows": f"{sum(rows):,}", "sets": len(rows)}
    study = studio.jobs.answer(studio.jobs.newest("compare")) or {}
    some = [p for p in study.get("points", []) if p.get("mechanism") in _methods(asked)]
    spans = [float(point["seconds"]) for point in some if point.get("seconds")]
    if not spans:
        return None
    most = f"{max(point['rows'] for point in some):,.0f}"
    return {"seconds": min(spans), "slowest": max(spans), "rows": most, "sets": 0}


def _methods(plan: Mapping[str, Any]) -> tuple[Any, Any]:
    return plan["mechanism"], plan["params"].get("method")


def _plan(studio: Studio) -> tuple[Plan | None, str]:
    """The plan of the request; none before a budget was chosen, where the method spends one."""
    made, problem = plan_of(studio, {})
    if "privacy.epsilon" not in studio.place.request() and (made is None or made.total.is_dp):
        return None, ""
    return made, problem


def confirmation(studio: Studio) -> str:
    """What is typed before a spend: its epsilon, or "no bound" for a method that has none."""
    made, _ = _plan(studio)
    if made is None:
        return ""
    from gibbous.core.claim import short

    return short(made.total.epsilon) if made.total.is_dp else words()["run"]["nobound"]


def _texts(studio: Studio, form: Form) -> str:
    """What stands on the release, and no more: nothing is spent."""
    _keep(studio, form)
    return "run"


def _keep(studio: Studio, form: Form) -> None:
    """What stands on the release: public texts, its format, its folder, who signs it."""
    from dataclasses import replace

    from gibbous.studio.screens.describe import save_schema

    schema = needed_schema(studio)
    changes: dict[str, Any] = {f"output.{name}": form.text(name, 300) for name in TEXTS}
    Imprint(
        **{name: str(changes[f"output.{name}"]) for name in TEXTS}
    )  # refuses what no release takes
    out = form.text("out", 80) or "release"
    if not out.replace("-", "").replace("_", "").isalnum() or not out.isascii():
        raise refusal("OUT")
    changes |= {"output.path": out, "output.seed": form.whole("seed", 0)}
    if form.text("format", 20) in FORMATS:
        changes["output.format"] = form.text("format", 20)
    key = form.text("sign", 100)
    if key and studio.place.inside(key) is None:
        raise refusal("KEY")
    studio.place.save(changes | {"output.sign": key})
    title = form.text("title", 200)
    if title != (schema.name or ""):
        save_schema(studio, replace(schema, name=title))


def _key(studio: Studio, form: Form) -> str:
    secret = form.text("passphrase", 500)
    command = commands.new_key(KEY, form.text("name", 100), bool(secret))
    studio.jobs.start(command, "run", form.get("once", ""), secret=secret)
    studio.place.save({"output.sign": KEY})
    return "run"


def _start(studio: Studio, form: Form) -> str:
    """Spend. Nothing is started unless the amount was typed, and facts that are not covered accepted."""
    if "out" in form:  # what the sheet shows is what runs
        _keep(studio, form)
    place, schema = studio.place, needed_schema(studio)
    data, amount = needed_data(studio), confirmation(studio)
    if not amount or form.text("confirm", 40) != amount:
        raise refusal("CONFIRM_amount", amount or words()["run"]["noamount"])
    accept = bool(schema.inferred()) or schema.unit is None
    if accept and form.get("accept") != "yes":
        raise refusal("INFERRED")
    values = place.request()
    place.save(budget_of(studio) | {"output.path": values.get("output.path", "release")})
    secret = form.text("passphrase", 500) if values.get("output.sign") else ""
    command = commands.synthesized(place.request(), place.reading(), accept, bool(secret))
    then = commands.account(data, place.reading())
    studio.jobs.start(command, "run", form.get("once", ""), then, secret)
    return "run"


SCREEN = Screen("run", _show, {"texts": _texts, "key": _key, "start": _start})
