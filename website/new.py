"""`./dev new mechanism|metric|verb NAME`: source, page, test and listings of something new, ready to change.

What it writes is whole: the mechanism (with a proof) passes the contract, the metric is computed, the verb runs.
It overwrites nothing, and prints what is left to do.
"""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Callable
from pathlib import Path

from gibbous.cli.scaffold import mechanism_file

ROOT = Path(__file__).resolve().parent.parent
PROOF = """# {name}: one noisy margin a column

**Statement.** The released tables are epsilon-DP under the chosen relation, for any number of rows and sets drawn from them.

Let p be the number of columns, k the most rows of one unit, and s = 1 under add/remove, s = 2 under replace one.

1. A unit changes each of the p margins by at most s k in L1 norm, so all of them together by s k p.
2. Two-sided geometric noise of scale s k p / epsilon on every cell is epsilon-DP for integers ([noise](noise.md)).
3. Rows are drawn from the noisy tables alone: post-processing. ∎

**Tests.** `tests/mechanisms/test_{name}.py` holds the scale against the formula; the contract audits the running code and its saboteurs.
"""
PAGE = """# {name}: write here what it keeps

```python
import gibbous as gb

schema = gb.Schema((gb.Column("smoker", "binary", levels=("no", "yes")),))
print(gb.plan(schema, gb.{kind}(epsilon=1), rows=1000).headline())
```

What it does, in three sentences. When to use it. When not.

| | |
|---|---|
| published claim | none |
| proven here | epsilon for all tables: [proof](../proofs/{name}.md) |
"""
TEST = '''"""{name}: the scale of its noise against the formula of its proof."""

from __future__ import annotations

import pytest

import gibbous as gb

SCHEMA = gb.Schema(tuple(gb.Column(n, "binary", levels=("a", "b")) for n in "xyz"))


@pytest.mark.parametrize(("relation", "s"), [("add_remove", 1), ("replace_one", 2)])
def test_the_scale_is_that_of_the_proof(relation: str, s: int) -> None:
    plan = gb.plan(SCHEMA, gb.{kind}(epsilon=0.5, relation=relation), rows=10)

    assert f"scale {{s * 3 / 0.5:g}}" in str(plan)
'''
METRIC = '''"""{title}: the largest difference of a level's share, over all columns."""

from __future__ import annotations

import numpy as np

from gibbous.core.finding import Finding
from gibbous.evaluation.measure import Measured, Metric, Options, find
from gibbous.evaluation.tables import Side, Subject

CARD = Metric(
    name="{name}",
    title="{title}",
    group="utility",
    better="lower",
    definition="Largest |real share - synthetic share| of a level, over all columns. From 0 to 1.",
    source="gibbous",
)
METRICS = (CARD,)


def findings(subject: Subject, options: Options) -> list[Finding]:
    """The metric of every synthetic set, and of the references."""
    return [find(CARD, measure, subject)]


def measure(real: Side, synthetic: Side) -> Measured:
    """Largest difference of shares."""
    gaps = []
    for j, size in enumerate(real.schema.sizes):
        shares = [
            np.bincount(side.codes.by_column[j], minlength=size) / side.rows
            for side in (real, synthetic)
        ]
        gaps.append(float(np.abs(shares[0] - shares[1]).max()))
    return Measured(max(gaps))
'''
METRIC_TEST = '''"""{name} against a count by hand."""

from __future__ import annotations

import polars as pl
import pytest

import gibbous as gb

SCHEMA = gb.Schema((gb.Column("x", "binary", levels=("a", "b")),), gb.Unit("row"))


def test_it_is_the_largest_difference_of_shares() -> None:
    real, made = pl.DataFrame({{"x": ["a"] * 3 + ["b"]}}), pl.DataFrame({{"x": ["a", "b", "b", "b"]}})

    found = gb.evaluate(real, made, SCHEMA, only=["{name}"])

    assert found["{name}"].value == pytest.approx(0.5)
'''

VERB = '''"""`gibbous {name}`: how many rows each set of a release has."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument

from gibbous.cli import show
from gibbous.cli.flags import ScreenFlags


def {name}(
    release: Annotated[Path, Argument(help="A release folder.")], screen: ScreenFlags
) -> None:
    """Print the number of rows of each set of a release; it needs the folder alone, and spends nothing."""
    from gibbous.write.load import load

    rows = [frame.height for frame in load(release).sets]
    if screen.json:
        show.as_json({{"release": str(release), "rows": rows}})
        return
    if not screen.quiet:
        show.table(("set", "rows"), list(enumerate(rows, 1)))
    show.line(f"{{show.counted(sum(rows), 'row')}} in {{show.counted(len(rows), 'set')}} of {{release}}.")


VERB = ({name}, "Rows of each set.")
'''
VERB_PAGE = """# Count the rows of a release

```sh
gibbous {name} release
```

Say what the verb is for, in three sentences. What it reads, what it spends. What it does not do.
"""
VERB_TEST = '''"""`gibbous {name}` against the sets as polars reads them."""

from __future__ import annotations

import json

import polars as pl

import gibbous as gb
from tests.cli.conftest import Cli

SCHEMA = gb.Schema((gb.Column("x", "binary", levels=("a", "b")),), gb.Unit("row"))


def test_it_counts_the_rows_of_every_set(cli: Cli) -> None:
    records = pl.DataFrame({{"x": ["a", "b"] * 50}})
    method = gb.NoisyPegs(epsilon=1, delta=1e-6)
    made = gb.synthesize(records, SCHEMA, method, rows=70, sets=2, seed=1, out="release")

    done = cli("{name}", "release", "--json")

    assert done.code == 0
    assert json.loads(done.out)["rows"] == [frame.height for frame in made.sets]


def test_a_folder_that_is_no_release_is_refused(cli: Cli) -> None:
    done = cli("{name}", "nothing")

    assert done.code == 8
    assert "error[GB8-" in done.err
'''


def mechanism(name: str) -> list[str]:
    """One file, an entry point, proof, page, test, and a row in each listing."""
    kind = "".join(part.title() for part in name.split("_"))
    told = {"name": name, "kind": kind}
    _write(f"src/gibbous/mechanisms/{name}.py", _sorted_imports(mechanism_file(name)))
    _write(f"docs/proofs/{name}.md", PROOF.format(**told))
    _write(f"docs/mechanisms/{name}.md", PAGE.format(**told))
    _write(f"tests/mechanisms/test_{name}.py", TEST.format(**told))
    _insert(
        "pyproject.toml", "smoothed_histogram = ", f'{name} = "gibbous.mechanisms.{name}:{kind}"\n'
    )
    init = "src/gibbous/__init__.py"
    line = f"    from gibbous.mechanisms.{name} import {kind} as {kind}\n"
    _insert(init, "    from gibbous.mechanisms.registry import", line)
    _insert(init, '"""\n_OTHERS', f"    {kind}\n")
    row = f"| [`{name}`](docs/mechanisms/{name}.md) | this project | artifact | none | epsilon, both relations |\n"
    _insert("README.md", "| [`contingency`]", row)
    row = f"| [{name}](mechanisms/{name}.md) | [noisy margins](proofs/{name}.md) |\n"
    _insert("docs/README.md", "| [contingency]", row)
    return [
        "./dev fix && ./dev setup    # the second registers it",
        f"./dev test tests/mechanisms/test_{name}.py tests/mechanisms/test_registry.py",
        f"./dev test src/gibbous/contract -k {name}",
        "Then change it into yours: docs/how-to/new-mechanism.md",
    ]


def metric(name: str) -> list[str]:
    """One file, one line of the table of metrics, and a test."""
    told = {"name": name, "title": name.replace("_", " ").capitalize()}
    _write(f"src/gibbous/evaluation/utility/{name}.py", METRIC.format(**told))
    _write(f"tests/evaluate/test_{name}.py", METRIC_TEST.format(**told))
    _insert(
        "src/gibbous/evaluation/metrics.py",
        '    "risk.intruder"',
        f'    "utility.{name}": ("{name}",),\n',
    )
    return [
        f"./dev test tests/evaluate/test_{name}.py",
        "Then describe it in docs/reference/metrics.md: docs/how-to/new-metric.md",
    ]


def verb(name: str) -> list[str]:
    """One file, its registration, page and test, and a row in each listing."""
    if "_" in name:
        raise ValueError("a verb is one word of small letters and digits, such as tallies")
    told = {"name": name}
    _write(f"src/gibbous/cli/{name}_verb.py", VERB.format(**told))
    _write(f"docs/how-to/{name}.md", VERB_PAGE.format(**told))
    _write(f"tests/cli/test_{name}_verb.py", VERB_TEST.format(**told))
    _insert("src/gibbous/cli/app.py", "studio_verb\n", f"{name}_verb, ")
    _insert("src/gibbous/cli/app.py", "studio_verb.VERB)", f"{name}_verb.VERB, ")
    row = f"- [Count the rows of a release](how-to/{name}.md)\n"
    _insert("docs/README.md", "- [Compare methods]", row)
    _insert("tests/cli/test_mistakes.py", '        "evaluate", "report"', f'        "{name}",\n')
    return [
        "./dev fix",
        f"./dev test tests/cli/test_{name}_verb.py tests/cli/test_mistakes.py",
        "./dev test tests/cli/test_pages.py    # its message says how the reference is written anew",
        "Then change it into yours: CONTRIBUTING.md, Add a verb",
    ]


KINDS: dict[str, Callable[[str], list[str]]] = {
    "mechanism": mechanism,
    "metric": metric,
    "verb": verb,
}


def main(words: list[str]) -> int:
    """Write what is asked for; 2 where the words are wrong or a file is there already."""
    kind, name = words if len(words) == 2 else ("", "")
    if (
        kind not in KINDS
        or not re.fullmatch(r"[a-z][a-z0-9_]{2,39}", name)
        or keyword.iskeyword(name)
    ):
        told = f"./dev new {'|'.join(KINDS)} NAME; NAME is 3 to 40 small letters, digits and _, such as my_margins"
        print(f"usage: {told}", file=sys.stderr)
        return 2
    try:
        left = KINDS[kind](name)
    except FileExistsError as error:
        print(f"dev: {error.filename} is there already; choose another name", file=sys.stderr)
        return 2
    except ValueError as error:
        print(f"dev: {error}", file=sys.stderr)
        return 2
    print("What is left to do:", *left, sep="\n  ")
    return 0


def _write(path: str, text: str) -> None:
    place = ROOT / path
    with place.open("x", encoding="utf-8") as file:
        file.write(text)
    print(f"wrote   {path}")


def _insert(path: str, before: str, line: str) -> None:
    place = ROOT / path
    text = place.read_text(encoding="utf-8")
    if text.count(before) != 1:
        raise SystemExit(
            f"dev: {path} no longer has one line that begins with {before!r}; add: {line}"
        )
    place.write_text(text.replace(before, line + before), encoding="utf-8")
    print(f"changed {path}")


def _sorted_imports(text: str) -> str:
    """The scaffold as it stands in this repository: its epsilon takes the rule of built-in methods."""
    text = text.replace("one_of, param, positive", "one_of, param").replace(
        "from gibbous.privacy.noise import",
        "from gibbous.mechanisms.limits import budget\nfrom gibbous.privacy.noise import",
    )
    return re.sub(r"param\(1\.0, positive", "param(1.0, budget", text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
