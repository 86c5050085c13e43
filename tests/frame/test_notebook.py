"""What a notebook shows, clones, pickles and writes: names are text, a pickle holds public results."""

from __future__ import annotations

import inspect
import pickle
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import gibbous as gb
from gibbous.core.errors import UsageError, speaking_flags, spoken

HOSTILE = '<script>alert("x")</script>\u202e&'
SECRET = "Zaphod-SECRET-7"
SCHEMA = gb.Schema(
    (
        gb.Column(HOSTILE, "nominal", levels=("a", "b")),
        gb.Column.numeric("age", lower=0, upper=110),
    ),
    gb.Unit("row"),
)
FRAME = pl.DataFrame({HOSTILE: ["a", "b", "a"] * 40, "age": [1, 50, 77] * 40})
METHOD = gb.Laplace(epsilon=1)


class Elements(HTMLParser):
    """Names of all elements, and all text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.names.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_what_a_notebook_shows_is_a_small_table_of_text() -> None:
    release = gb.synthesize(FRAME, SCHEMA, METHOD, rows=30, ledger=gb.Ledger.ephemeral())
    findings = gb.evaluate(FRAME, release, SCHEMA, only=["tv1"])
    shown = [SCHEMA, release.plan, release, findings]

    pages = [Elements(thing._repr_html_()) for thing in shown]

    for page in pages:
        assert page.names <= {"div", "p", "table", "thead", "tbody", "tr", "th", "td", "bdi"}
        assert "\u202e" not in page.text
    assert '<script>alert("x")</script>' in pages[0].text
    assert "epsilon = 1" in pages[1].text
    assert "epsilon = 1" in pages[2].text
    assert "publishing them is a release of its own" in pages[3].text


def test_a_draft_shows_no_level_that_was_read_off_the_data() -> None:
    draft = gb.Schema.infer(pl.DataFrame({"name": ["a", "b", SECRET] * 40}))

    assert SECRET not in draft._repr_html_()
    assert "inferred" in draft._repr_html_()


def fitted(ledger: Any) -> gb.Synthesizer:
    return gb.Synthesizer("laplace", epsilon=1, schema=SCHEMA, ledger=ledger).fit(FRAME, rows=30)


@pytest.mark.parametrize("kind", ["polars", "pandas", "pyarrow"])
def test_a_pickle_holds_public_results_and_no_ledger(kind: str, tmp_path: Path) -> None:
    ledger = gb.Ledger.open(tmp_path / "ledger.sqlite")
    frames: dict[str, Any] = {
        "polars": FRAME, "pandas": FRAME.to_pandas(), "pyarrow": FRAME.to_arrow(),
    }  # fmt: skip
    made = gb.Synthesizer("laplace", epsilon=1, schema=SCHEMA, ledger=ledger)
    made.fit(frames[kind], rows=30)

    held = pickle.dumps(made)
    back = pickle.loads(held)

    assert ledger.key not in held
    assert ledger.key.hex().encode() not in held
    assert ledger.entries()[0].dataset not in held
    assert b"Ledger" not in held
    assert back.sample(9, seed=3).equals(made.sample(9, seed=3))
    assert type(back.release_.sets[0]) is type(frames[kind])
    assert (
        back.ledger == ledger.path
    )  # a second fit charges the same account, and takes what is there
    assert back.fit(frames[kind], rows=30).release_.bought_before


def test_an_unpickled_synthesizer_of_a_ledger_in_memory_never_charges_the_one_that_lasts() -> None:
    back = pickle.loads(pickle.dumps(fitted(gb.Ledger.ephemeral())))

    assert back.ledger.path is None
    with pytest.raises(UsageError, match="unpickled"):
        back.release_.save("nowhere")


def test_a_release_never_leaves_its_pickle_to_a_method_that_dataclasses_overwrite() -> None:
    # Python 3.11.0 to 3.11.3 put a __getstate__ of their own in place of a written one.
    assert "__reduce__" in vars(gb.Release)
    assert "def __getstate__" not in inspect.getsource(gb.Release)


def test_parameters_are_nested_and_set_as_in_scikit_learn() -> None:
    made = gb.Synthesizer(gb.NoisyPegs(epsilon=1, delta=1e-6), seed=3)

    assert made.get_params()["method__epsilon"] == 1
    assert "method__epsilon" not in made.get_params(deep=False)
    made.set_params(method__epsilon=2.0, seed=4)
    assert made.method == gb.NoisyPegs(epsilon=2, delta=1e-6)
    assert made.seed == 4
    for wrong in ({"method__parent": 1}, {"zzz": 1}, {"method": "laplace", "method__parents": 1}):
        with pytest.raises(UsageError, match="has no parameter"):
            made.set_params(**wrong)
    assert made.method == gb.NoisyPegs(epsilon=2, delta=1e-6)


def test_parameters_of_a_method_that_is_named_are_nested_too() -> None:
    made = gb.Synthesizer("noisy_pegs", epsilon=9, delta=1e-6, ledger=gb.Ledger.ephemeral())
    usual = made.get_params()["method__parents"]

    made.set_params(method__parents=1)
    assert (usual, made.get_params()["method__parents"]) == (None, 1)
    assert made.parameters == {"parents": 1}
    made.set_params(method__epsilon=8, method__delta=1e-7)
    assert (made.epsilon, made.delta, made.parameters) == (8, 1e-7, {"parents": 1})
    made.set_params(epsilon=9, delta=1e-6)
    base = pytest.importorskip("sklearn.base", reason="an optional companion")
    assert base.clone(made).get_params() == made.get_params()
    made.fit(FRAME, SCHEMA)
    assert gb.plan(SCHEMA, "noisy_pegs", epsilon=9, delta=1e-6, parents=1).params in (
        made.release_.plan.params,
    )
    with pytest.raises(UsageError, match="has no parameter 'method__parent'"):
        made.set_params(method__parent=1)
    made.set_params(method="laplace", epsilon=1)
    assert made.parameters is None
    with pytest.raises(UsageError, match="already made"):
        gb.Synthesizer(gb.Laplace(epsilon=1), parameters={"parents": 1}).fit(FRAME, SCHEMA)


def test_fit_without_a_schema_tells_the_two_roads() -> None:
    with pytest.raises(UsageError, match=r"infer_schema.*Discovery"):
        gb.Synthesizer(METHOD, ledger=gb.Ledger.ephemeral()).fit(FRAME)


def test_a_schema_is_saved_and_read_back(tmp_path: Path) -> None:
    path = SCHEMA.save(tmp_path / "schema.toml")

    assert gb.Schema.load(path) == SCHEMA
    with pytest.raises(UsageError, match="overwrite=True"):
        SCHEMA.save(path)
    assert SCHEMA.save(path, overwrite=True) == path


@pytest.mark.parametrize(
    ("given", "edges", "integer"),
    [
        ({"lower": 0, "upper": 110, "cuts": (18, 65)}, (0, 18, 65, 110), True),
        ({"lower": 0.0, "upper": 1.0, "bins": 4}, (0.0, 0.25, 0.5, 0.75, 1.0), False),
        ({"lower": 0, "upper": 3, "bins": 20}, (0, 1, 2, 3), True),
        ({"lower": 0, "upper": 3, "decimals": None}, (0, 3), True),
        ({"lower": 1, "upper": 2, "bins": 1}, (1, 2), True),
    ],
)
def test_a_numeric_column_by_its_bounds(
    given: dict[str, Any], edges: tuple[float, ...], integer: bool
) -> None:
    assert gb.Column.numeric("x", **given) == gb.Column(
        "x", "numeric", edges=edges, integer=integer
    )


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("Set --ledger.", "Set ledger=."),
        ("Pass --out FOLDER.", "Pass out=FOLDER."),
        ("pass --accept-inferred: it", "pass accept_inferred=True: it"),
        ("only with --i-understand (understand=True)", "only with understand=True"),
        ("why: --new-data, so", "why: new_data=, so"),
        ("column '--ledger' of `gibbous plan --schema X`", "column '--ledger' of `gibbous plan --schema X`"),
    ],
)  # fmt: skip
def test_errors_speak_to_whoever_called(flags: str, words: str) -> None:
    assert spoken(flags) == words
    with speaking_flags():
        assert spoken(flags) == flags


CHECKS = (  # of scikit-learn; those that fit arrays without a schema or a ledger do not apply
    "check_estimator_cloneable",
    "check_no_attributes_set_in_init",
    "check_get_params_invariance",
    "check_set_params",
    "check_estimator_repr",
    "check_parameters_default_constructible",
    "check_mixin_order",
    "check_estimator_tags_renamed",
    "check_valid_tag_types",
    "check_estimators_unfitted",
)


@pytest.mark.parametrize("name", CHECKS)
def test_the_checks_of_scikit_learn_that_need_no_arrays_pass(name: str) -> None:
    checks = pytest.importorskip("sklearn.utils.estimator_checks", reason="an optional companion")

    getattr(checks, name)("Synthesizer", gb.Synthesizer(gb.NoisyPegs(epsilon=1, delta=1e-6)))


@pytest.mark.filterwarnings("ignore:Can't test estimator")
def test_scikit_learn_asks_for_no_array_and_shows_it_in_a_pipeline() -> None:
    checks = pytest.importorskip("sklearn.utils.estimator_checks", reason="an optional companion")
    pipeline = pytest.importorskip("sklearn.pipeline", reason="an optional companion")
    made = gb.Synthesizer(gb.NoisyPegs(epsilon=1, delta=1e-6))

    found = checks.check_estimator(made, on_fail=None, on_skip=None)

    assert {one["status"] for one in found} <= {"passed", "skipped"}
    assert "Synthesizer" in pipeline.Pipeline([("rows", made)])._repr_html_()
    made.__sklearn_tags__().input_tags.two_d_array = True  # of that call alone
    assert not made.__sklearn_tags__().input_tags.two_d_array


def test_scikit_learn_clones_it_without_its_fit() -> None:
    base = pytest.importorskip("sklearn.base", reason="an optional companion")
    made = fitted(gb.Ledger.ephemeral())

    clone = base.clone(made)

    assert clone.get_params() == made.get_params()
    assert not hasattr(clone, "release_")
