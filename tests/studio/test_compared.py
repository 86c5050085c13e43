"""Methods compared with parameters of their own: what is typed, what the study file says, what is run."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import pytest

from gibbous.frontier.grid import Arm
from gibbous.frontier.study_file import load
from gibbous.studio.app import Studio
from gibbous.studio.screens import compare
from tests.studio.conftest import Visitor

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:starlette")

TWICE: dict[str, Any] = {
    "methods[]": ["noisy_pegs"],
    "method0": "noisy_pegs", "called0": "", "v0-parents": "1",
    "method1": "noisy_pegs", "called1": "with a context", "v1-contexts": "income = age, sex",
    "method2": "adaptive_gibbs", "called2": "", "v2-weights": "age = 2.5", "v2-delta": "1e-8",
    "epsilons": "0.5 2", "repeats": "1", "once": "s",
}  # fmt: skip
LONG = "adaptive_gibbs, delta = 1e-08, weights = age = 2.5"
ARMS = {
    "noisy_pegs": Arm("noisy_pegs", "noisy_pegs"),
    "noisy_pegs, parents = 1": Arm("noisy_pegs, parents = 1", "noisy_pegs", (("parents", 1),)),
    "with a context": Arm(
        "with a context", "noisy_pegs", (("contexts", {"income": ["age", "sex"]}),)
    ),
    LONG: Arm(LONG, "adaptive_gibbs", (("delta", 1e-8), ("weights", {"age": 2.5}))),
}


def field_of(page: str, name: str) -> str:
    """What a field of a page holds."""
    tag = page.partition(f'name="{name}"')[2]
    return html.unescape(tag.partition("</p>")[0])


def test_the_same_method_stands_twice_and_the_file_says_so(described: Studio, folder: Path) -> None:
    visitor = Visitor(described)

    kept = visitor.do("compare/keep", **TWICE)
    page = visitor.get("compare").text

    assert kept.headers["location"] == "/compare#ask"
    assert described.jobs.newest("compare") is None
    study = load(folder / "study.toml")
    assert study.methods == ARMS
    assert type(dict(study.methods[LONG].params)["weights"]["age"]) is float
    assert study.settings["epsilon"] == [0.5, 2.0]
    assert 'income = ["age", "sex"]' in field_of(page, "v1-contexts")
    assert 'value="with a context"' in field_of(page, "called1")
    assert 'value="1e-08"' in field_of(page, "v2-delta")
    assert page.count(" checked> noisy_pegs<") == 1
    visitor.do("compare/keep", **TWICE | {"gone0": "yes", "gone1": "yes"})
    assert [*load(folder / "study.toml").methods] == ["noisy_pegs", LONG]


@pytest.mark.slow
def test_the_study_runs_each_and_a_point_is_taken_over_with_its_parameters(
    described: Studio, folder: Path
) -> None:
    visitor = Visitor(described)
    visitor.do("compare/start", **TWICE | {"epsilons": "2"})
    visitor.settle()

    points = described.jobs.answer(described.jobs.newest("compare"))["points"]
    visitor.do("compare/keep", **{"methods[]": "privbayes", "epsilons": "1"})
    taken = visitor.do(
        "compare/take", method="noisy_pegs", label="noisy_pegs, parents = 1", epsilon="2"
    )
    first = described.place.request()
    visitor.do("compare/take", method="adaptive_gibbs", label=LONG, epsilon="2")

    assert {p["label"] for p in points if p.get("mechanism")} == set(ARMS)
    assert taken.headers["location"] == "/budget"
    assert (first["mechanism.name"], first["mechanism.parents"]) == ("noisy_pegs", 1)
    request = described.place.request()
    assert request["mechanism.weights"] == {"age": 2.5}
    assert float(request["privacy.delta"]) == 1e-8
    assert "mechanism.parents" not in request
    assert "Type 2 to confirm" in visitor.get("run").text


def test_a_point_that_was_not_drawn_here_is_not_taken_over(described: Studio) -> None:
    visitor = Visitor(described)
    visitor.do("compare/keep", **TWICE)
    before = described.place.request()

    answer = visitor.do("compare/take", method="noisy_pegs", label="another name", epsilon="2")

    assert answer.status_code == 422
    assert "not one of the last comparison" in answer.text
    assert described.place.request() == before


def test_a_first_run_takes_as_long_as_the_fastest_to_the_slowest_on_compare(
    described: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gibbous.studio.jobs import Jobs

    points = [
        {"mechanism": name, "label": name, "rows": 390.0 + k, "seconds": seconds}
        for name, *some in (("", 300), ("noisy_pegs", 20, 52, 240), ("pegs", 11, 12))
        for k, seconds in enumerate(some)
    ]
    visitor = Visitor(described)
    visitor.do("budget/spend", epsilon="1", delta="1e-9", own="", size="300", sets="1")
    visitor.do("method/choose", method="noisy_pegs")
    before = html.unescape(visitor.get("run").text)
    monkeypatch.setattr(Jobs, "answer", lambda self, job: {"points": points})

    page, cards = visitor.get("run").text, visitor.get("method").text

    assert "Compare times it on these records" in before
    assert "20 s to 4 min for one set of 392 rows, as on Compare" in page
    assert "<dd>10 s for one set of 391 rows, as on Compare" in cards
    bootstrap = cards.partition("<code>bootstrap</code>")[2].partition("</dl>")[0]
    assert "not known before a first run" in bootstrap
    assert "Compare times it" not in bootstrap


def test_no_parameter_of_an_earlier_point_or_method_stays(described: Studio) -> None:
    visitor = Visitor(described)
    other = {"methods[]": ["pegs"], "method0": "noisy_pegs", "v0-relation": "replace_one"}
    visitor.do("compare/keep", **other, **{"v0-parents": "1", "epsilons": "1"})
    label = "noisy_pegs, relation = replace_one, parents = 1"

    visitor.do("compare/take", method="noisy_pegs", label=label, epsilon="1")
    first = described.place.request()
    visitor.do("compare/take", method="pegs", label="pegs", epsilon="2")
    second = described.place.request()
    visitor.do("compare/take", method="noisy_pegs", label=label, epsilon="1")
    visitor.do("method/choose", method="pegs")

    assert (first["privacy.relation"], first["mechanism.parents"]) == ("replace_one", 1)
    for left in (second, described.place.request()):
        assert left["mechanism.name"] == "pegs"
        assert not {"privacy.relation", "mechanism.parents"} & set(left)


WRONG = {
    "no column": ({"v1-contexts": "income = age\nsex = agee"}, 'sex = ["agee"]', "'agee'"),
    "no number": ({"v0-parents": "many"}, "parents is not a number", ""),
    "one name": ({"called1": "noisy_pegs"}, "Two methods are called 'noisy_pegs'", ""),
    "no difference": ({"v0-parents": ""}, "Two methods are called 'noisy_pegs'", ""),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_faulty_word_is_named_and_what_was_typed_stays(
    described: Studio, folder: Path, name: str
) -> None:
    fields, *words = WRONG[name]
    visitor = Visitor(described)

    answer = visitor.do("compare/start", **TWICE | fields)
    page = html.unescape(answer.text)

    assert answer.status_code == 422
    said = page.partition('class="problem"')[2].partition("</div>")[0]
    assert all(word in said for word in words)
    assert said.count("Nothing was released") == 1
    for key, text in fields.items():
        assert text in field_of(page, key)
    assert 'value="1e-8"' in field_of(page, "v2-delta")
    assert not (folder / "study.toml").exists()
    assert described.jobs.newest("compare") is None


def test_one_more_method_opens_with_its_usual_values(described: Studio, folder: Path) -> None:
    visitor = Visitor(described)

    answer = visitor.do("compare/add", **TWICE, more="privbayes")
    page = visitor.get(answer.headers["location"][1:].partition("#")[0]).text

    assert load(folder / "study.toml").methods == ARMS
    assert 'name="method3" value="privbayes"' in page
    assert page.count('<details class="column" open') == 1


@pytest.mark.slow
def test_every_method_has_editors_of_its_own_and_no_field_stands_twice(
    described: Studio, folder: Path
) -> None:
    from gibbous.studio.screens.arms import VARIED, offered
    from gibbous.studio.screens.parameters import parameters

    visitor = Visitor(described)
    for about in offered():
        page = visitor.get(f"compare?add={about.name}").text.partition('action="/compare/start"')[2]
        names = re.findall(
            r'<(?:input|textarea|select)[^>]* name="([^"\[]+)"', page.partition("</form>")[0]
        )

        assert len(names) == len({*names}), about.name
        wanted = {f"v0-{p.name}" for p in parameters(about.name, VARIED)}
        assert {name for name in names if name.startswith("v0-")} == wanted
        form = {"method0": about.name, "called0": "again", "epsilons": "1"}
        assert visitor.do("compare/keep", **form).status_code == 303, about.name
        (folder / "study.toml").unlink()


def test_the_method_inside_another_one_is_a_parameter_like_any(
    described: Studio, folder: Path
) -> None:
    visitor = Visitor(described)
    form = {"method0": "parallel", "called0": "", "v0-method": "pegs", "epsilons": "1"}

    kept = visitor.do("compare/keep", **form)

    assert kept.status_code == 303, html.unescape(kept.text.partition('class="problem"')[2][:600])
    assert load(folder / "study.toml").methods == {
        "parallel, method = pegs": Arm("parallel, method = pegs", "parallel", (("method", "pegs"),))
    }


ODD = {
    "no lists": "[study]\nepsilon = 4\nmetrics = 5\n",
    "no section": "study = 3\n",
    "no tables": 'methods = ["pegs", 3]\n[study]\nepsilon = ["a", true]\nrepeats = "b"\n',
    "no TOML": "[[[",
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_file_is_shown_as_far_as_it_can_be(
    described: Studio, folder: Path, name: str
) -> None:
    (folder / "study.toml").write_text(ODD[name])

    assert Visitor(described).get("compare").status_code == 200


def test_a_start_without_a_method_writes_nothing(described: Studio, folder: Path) -> None:
    answer = Visitor(described).do("compare/start", epsilons="1", repeats="1", once="a")

    assert answer.status_code == 422
    assert "No method or no budget" in answer.text
    assert not (folder / "study.toml").exists()


def test_what_a_hand_wrote_stays_and_a_study_of_flows_is_put_aside(
    described: Studio, folder: Path
) -> None:
    visitor = Visitor(described)
    head = 'data = "people.csv"\nschema = "schema.toml"\n'
    own = '[study]\nepsilon = [4]\nseed = 5\n[[methods]]\nname = "pegs"\nlabel = "mine"\n'
    (folder / "study.toml").write_text(head + own)

    page = visitor.get("compare").text
    visitor.do("compare/keep", method0="pegs", called0="mine", epsilons="4")

    assert 'value="4"' in field_of(page, "epsilons")
    study = load(folder / "study.toml")
    assert (study.settings["seed"], [*study.methods]) == (5, ["mine"])
    flows = 'data = "trips.csv"\ngeography = "places.toml"\n' + own
    (folder / "study.toml").write_text(flows)
    assert " checked> adaptive_gibbs<" in visitor.get("compare").text
    visitor.do("compare/keep", **{"methods[]": "pegs", "epsilons": "1"})
    assert (folder / "study.before-1.toml").read_text() == flows


def test_36_labels_have_marks_that_differ() -> None:
    marks = {(compare.SHAPES[i % 6], compare.color(i)) for i in range(36)}

    assert len(marks) == 36
