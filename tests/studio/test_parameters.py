"""Lists and tables of a method's parameters: written by lines, checked by the method, kept as TOML."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

import pytest

from gibbous.studio.app import Studio
from gibbous.studio.screens.parameters import _lines, entries
from tests.studio.conftest import Visitor

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:starlette")

READ = {
    "": None,
    "\n \n": None,
    "age": ["age"],
    "age\nsex": ["age", "sex"],
    "age = 2\nage*income=5.5": {"age": 2, "age*income": 5.5},
    '"a = b" = 2': {"a = b": 2},
    "sex = [51, 49]": {"sex": [51, 49]},
    "[10, 0.5]\n[30, 0.9]": [[10, 0.5], [30, 0.9]],
    "sweeps = 3\ncriterion = plain": {"sweeps": 3, "criterion": "plain"},
    "age = young, old": {"age": ["young", "old"]},
    "3": [3],
    '"3"': ["3"],
}


@pytest.mark.parametrize("text", READ)
def test_lines_are_read_as_lists_and_tables_and_shown_as_they_were(text: str) -> None:
    found = entries("weights", text)

    assert found == READ[text]
    assert entries("weights", "\n".join(_lines(found))) == found


def test_contexts_are_lists_and_a_word_that_is_allowed_stands_for_itself() -> None:
    allowed = "a list or one of 'ordered', 'lsh', 'minhash'"

    assert entries("contexts", "income = age\nsex = age, income") == {
        "income": ["age"],
        "sex": ["age", "income"],
    }
    assert entries("contexts", "lsh", allowed) == "lsh"
    assert entries("contexts", "age", allowed) == ["age"]


def chosen(studio: Studio, method: str) -> Visitor:
    """A visitor who took a method, with a budget."""
    visitor = Visitor(studio)
    visitor.do("budget/spend", epsilon="1", delta="1e-9", own="", size="10", sets="1")
    visitor.do("method/choose", method=method)
    return visitor


KEPT: dict[str, tuple[str, dict[str, str], dict[str, Any]]] = {
    "weights": (
        "adaptive_gibbs",
        {"weights": "age = 2\nage*income = 5.5", "target": "sex"},
        {"weights": {"age": 2, "age*income": 5.5}, "target": "sex"},
    ),
    "contexts": ("noisy_pegs", {"contexts": "income = age, sex"}, {"contexts": {"income": ["age", "sex"]}}),
    "diverse": ("noisy_pegs", {"diverse": "sex = 2", "parents": "2"}, {"diverse": {"sex": 2}, "parents": 2}),
    "a word": ("pegs", {"contexts": "ordered"}, {"contexts": "ordered"}),
    "prior": ("pegs", {"prior": "sex = [51, 49]"}, {"prior": {"sex": [51, 49]}}),
    "columns": ("paid_bins", {"columns": "income"}, {"columns": ["income"]}),
    "options": ("paid_bins", {"options": "sweeps = 3"}, {"options": {"sweeps": 3}}),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", KEPT)
def test_what_was_written_is_what_the_command_reads(
    described: Studio, folder: Path, name: str
) -> None:
    from gibbous.cli.config import read_config, request_of, resolve

    method, fields, wanted = KEPT[name]
    if name in ("columns", "options"):
        text = (folder / "schema.toml").read_text()
        (folder / "schema.toml").write_text(text.replace("bins = 10", "bins = 1"))
    visitor = chosen(described, method)

    answer = visitor.do("method/set", **fields)
    page = html.unescape(visitor.get("method").text)

    assert answer.headers.get("location") == "/run", answer.text[:3000]
    request = read_config(folder / "release.toml")
    found = {key.partition(".")[2]: v for key, v in request.items() if key.startswith("mechanism.")}
    assert {key: _plain(found[key]) for key in wanted} == wanted
    made = request_of(resolve(folder / "release.toml", [], {})).privacy.method
    usual = {"weights": ("age=2", "age*income=5.5"), "contexts": (("income", ("age", "sex")),)}
    if name in usual:
        assert getattr(made, name) == usual[name]
    for key, text in fields.items():
        shown = page.partition(f'id="f-{key}"')[2].partition("</p>")[0]
        assert text.split(",")[0].split(" = ")[0] in shown
    cleared = visitor.do("method/set", **dict.fromkeys(fields, ""))
    assert cleared.headers.get("location") == "/run"
    assert not {f"mechanism.{key}" for key in fields} & set(described.place.request())


def _plain(value: Any) -> Any:
    """Numbers as Python's own."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return value if isinstance(value, str | int) else float(value)


WRONG = {
    "no column": ("adaptive_gibbs", {"weights": "age = 2\nagee = 3"}, "weights, agee = 3: ", "'agee'"),
    "no weight": ("adaptive_gibbs", {"weights": "age = 2\nsex = heavy"}, "weights, sex = heavy: ", "weight"),
    "no context": ("noisy_pegs", {"contexts": "income = age\nsex = agee"}, 'sex = ["agee"]', "'agee'"),
    "no such word": ("pegs", {"contexts": "orderd"}, "contexts, orderd", ""),
    "twice": ("adaptive_gibbs", {"weights": "age = 2\nage = 3"}, "weights names age twice", ""),
    "mixed": ("adaptive_gibbs", {"weights": "age = 2\nsex"}, "with = and without: sex", ""),
    "an unknown option": ("parallel", {"options": "sweps = 3"}, "options, sweps = 3", "'sweps'"),
    "a target": ("adaptive_gibbs", {"target": "agee"}, "", "target names 'agee'"),
    "no number": ("noisy_pegs", {"parents": "many"}, "parents is not a number", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_the_faulty_word_is_named_and_nothing_is_kept(described: Studio, name: str) -> None:
    method, fields, line, word = WRONG[name]
    visitor = chosen(described, method)
    before = described.place.request()

    answer = visitor.do("method/set", **fields)
    page = html.unescape(answer.text)

    assert answer.status_code == 422
    said = page.partition('class="problem"')[2].partition("</div>")[0]
    assert line in said
    assert word in said
    assert said.count("Nothing was released") == 1
    for key, text in fields.items():  # to be corrected, not to be typed again
        assert text in page.partition(f'id="f-{key}"')[2].partition("</p>")[0]
    assert described.place.request() == before


@pytest.mark.slow
@pytest.mark.parametrize("method", ["pegs", "laplace", "bootstrap"])
def test_a_method_without_delta_or_without_a_budget_runs(described: Studio, method: str) -> None:
    visitor = chosen(described, method)
    visitor.do("budget/spend", epsilon="1", delta="1e-9", own="", size="20", sets="1")
    amount = (
        html.unescape(visitor.get("run").text).partition("Type ")[2].partition(" to confirm")[0]
    )

    answer = visitor.do("run/start", confirm=amount, once="r")
    visitor.settle()

    assert answer.status_code == 303, answer.text[:2000]
    job = described.jobs.newest("synthesize")
    assert job is not None
    assert (job.state, job.error) == ("done", ("", ""))
