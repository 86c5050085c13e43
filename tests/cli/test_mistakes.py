"""A wrong command line gets exit code 2 and an answer with the right word."""

from __future__ import annotations

import re

import pytest

from tests.cli.conftest import Cli

TYPED = [
    (["schme"], "UNKNOWNVERB", "Did you mean 'gibbous schema'?"),
    (["synthesise"], "UNKNOWNVERB", "Did you mean 'gibbous synthesize'?"),
    (["generate"], "UNKNOWNVERB", "Use `gibbous synthesize`."),
    (["frobnicate"], "UNKNOWNVERB", "Verbs are "),
    (["schema", "infr"], "UNKNOWNVERB", "Did you mean 'gibbous schema infer'?"),
    (["ledger", "shwo"], "UNKNOWNVERB", "Did you mean 'gibbous ledger show'?"),
    (["schema"], "NOVERB", "Verbs are infer, discover, import, check, declare, suggest."),
    (["synthesize", "--epsilom", "1"], "UNKNOWNOPTION", "Did you mean --epsilon?"),
    (["synthesize", "--random_state", "1"], "UNKNOWNOPTION", "Use --seed; it seeds sampling only"),
    (["synthesize", "--random-state=1"], "UNKNOWNOPTION", "Use --seed; it seeds sampling only"),
    (["synthesize", "--num-rows", "1"], "UNKNOWNOPTION", "Use --rows"),
    (["synthesize", "--parents", "3"], "UNKNOWNOPTION", "--set parents=VALUE"),
    (["verify", "--nonsense", "x"], "UNKNOWNOPTION", "'gibbous verify --help' describes"),
    (["plan", "in.csv"], "EXTRA", "reads no data"),
    (["verify"], "USAGE", "Missing argument"),
    (["verify", "a", "b"], "EXTRA", "unexpected extra argument"),
    (["synthesize", "--rows", "many"], "USAGE", "--rows"),
    (["synthesize", "--rows"], "USAGE", "requires an argument"),
    (["synthesize", "--threads", "0"], "USAGE", "--threads"),
    (
        ["synthesize", "in.csv", "--schema", "s.toml", "-o", "Release.ZIP"],
        "FOLDER",
        "For example --out Release.",
    ),
    (
        ["synthesize", "in.csv", "--schema", "s.toml", "-o", "bo/x.csv.gz"],
        "FOLDER",
        "For example --out bo/x. Nothing",
    ),
    (["plan"], "NOSCHEMA", "Pass --schema FILE"),
    (["plan", "--config", "absent.toml"], "CONFIG", "cannot be read"),
    (["methods", "sbgh"], "UNKNOWNMETHOD", "Did you mean 'sbhg'?"),
    (["methods", "--scaffold", "My Mech"], "NAME", "lower_snake_case"),
    (["methods", "--scaffold", "class"], "NAME", "lower_snake_case"),
]


@pytest.mark.parametrize(("typed", "name", "words"), TYPED, ids=lambda v: str(v)[:40])
def test_a_mistyped_command_is_answered(cli: Cli, typed: list[str], name: str, words: str) -> None:
    done = cli(*typed)

    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith(f"error[GB2-{name}]: ")
    assert words in done.err
    assert done.err.endswith("Nothing was released; no budget was spent.\n")
    assert done.err.count("\n") == 1


def test_no_arguments_prints_the_help(cli: Cli) -> None:
    done = cli()

    assert done.code == 0
    assert re.search(r"^Usage: gibbous", done.out)


def test_every_verb_has_help_and_an_out_option_has_its_short_form(cli: Cli) -> None:
    verbs = re.findall(r"^  ([a-z]+) ", cli("--help").out.split("Commands:")[1], re.M)
    inner = {
        "schema": ["infer", "discover", "import", "check"],
        "ledger": ["show", "cap", "head"],
        "keys": ["new"],
    }

    assert set(verbs) == {
        "schema", "methods", "plan", "synthesize", "verify", "ledger", "demo", "warmup",
        "evaluate", "report", "infer", "audit", "compare", "study", "map", "keys", "studio",
    }  # fmt: skip
    for verb in verbs:
        for path in [[verb, name] for name in inner.get(verb, [])] or [[verb]]:
            text = cli(*path, "--help").out
            assert "Usage: gibbous " + " ".join(path) in text
            assert ("--out" in text) == ("-o, --out" in text)
            if verb not in ("methods",):
                assert "--json" in text
