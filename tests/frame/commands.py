"""The commands that pages show, and those of them that no test of pages runs, each with its reason."""

from __future__ import annotations

import re
from pathlib import Path

from tests.frame.tree import ROOT, pages

SHELL = "sh"
FENCE = re.compile(r"^( *)```([^\n]*)\n(.*?)^ *```[ \t]*$", re.DOTALL | re.MULTILINE)

NOT_RUN: tuple[tuple[str, str, str], ...] = (
    (
        r"pip install ",
        "downloads packages",
        "tests/frame/test_dev.py::test_constraints_pin_all_that_setup_installs",
    ),
    (
        r"(pipx install|docker build) ",
        "needs a program that the system has or lacks; what the container must be is a test",
        "tests/frame/test_releasing.py::test_the_container_is_what_a_linter_asks_for",
    ),
    (
        r"\./dev (demo|test|setup && \./dev test)$",
        "takes minutes; .ci/run runs it in a bare clone",
        "tests/frame/test_dev.py::test_A_a_bare_clone_runs_the_commands_of_the_readme",
    ),
    (
        r"gibbous studio",
        "serves until Ctrl-C",
        "tests/studio/test_browser.py::test_the_whole_way_from_a_csv_to_a_verified_signed_zip",
    ),
    (
        r"\./dev test \S",
        "runs tests; they are collected",
        "tests/frame/test_commands.py::test_A_a_command_that_runs_tests_collects_some",
    ),
    (
        r"\./dev docs$",
        "installs the builder of the site",
        "tests/frame/test_site.py::test_the_site_builds_strictly_and_asks_nothing_of_the_network",
    ),
    (
        r"\./dev supply$",
        "asks services for known faults; .ci/run runs it",
        "tests/frame/test_dev.py::test_an_audit_that_was_not_made_does_not_pass_for_one",
    ),
    (
        r"\./dev fuzz",
        "takes hours; planted bugs show that it finds what it is for",
        "tests/fuzz/test_harness.py::test_a_planted_bug_of_each_kind_is_found_within_two_minutes",
    ),
    (
        r"pytest --pyargs gibbous\.contract ",
        "takes minutes, on a package of its own",
        "tests/contract/test_third_party.py::test_a_scaffolded_mechanism_in_its_own_package_passes",
    ),
    (
        r"(for bench in |python bench/)",
        "takes up to hours",
        "tests/frame/test_commands.py::test_A_benches_that_pages_name_exist",
    ),
    (
        r"gibbous compare --config bench/studies/",
        "reads a data set beside the repository and takes hours",
        "tests/cli/test_compare_verb.py::test_A_the_configuration_of_the_risk_utility_page_is_read",
    ),
    (
        r"gibbous study bowen2016-1 --out study/$",
        "takes hours; the README shows it with --quick, which is run",
        "tests/frame/test_commands.py::test_A_slow_commands_of_the_page_run",
    ),
    (
        r"gibbous evaluate .* --metrics mean_gap",
        "needs the package of the page",
        "tests/evaluate/test_third_party.py::test_the_metric_of_the_page_in_its_own_package_is_evaluated",
    ),
    (
        r"(ssh-keygen -Y verify|sha256sum -c) ",
        "other programs",
        "tests/write/test_signature.py::test_openssh_takes_our_signature_and_our_keys",
    ),
    (
        r"gibbous demo$",
        "has tests of its own",
        "tests/cli/test_demo.py::test_the_demo_makes_shows_and_verifies_a_release_and_its_noisy_margin",
    ),
    (
        r"(export PGPASSFILE|gibbous synthesize postgres://)",
        "needs a PostgreSQL server",
        "tests/read/databases/test_postgresql.py::test_a_table_of_a_server_counts_and_is_named",
    ),
    (
        r"gibbous schema (import|declare schema\.toml --all-of) patients\.sav",
        "needs the extra formats",
        "tests/read/test_codebooks.py::test_labels_of_spss_and_stata_are_declared",
    ),
    (
        r"gibbous synthesize .*--format (sav|dta|xlsx)\b",
        "needs the extra formats",
        "tests/write/test_labelled_files.py::test_spss_reads_every_value_and_every_label",
    ),
    (
        r"gibbous synthesize \S+ .*--engine spark",
        "needs a Spark cluster",
        "tests/spark/test_commands.py::",
    ),
)
"""(pattern from the start of a command, why it is not run, the test that covers it or the start of it)."""

SLOW = r"gibbous (audit|compare|study|evaluate|infer|warmup|report \S+ --audience internal)\b"
"""Commands of more than a second or two; a slow test runs them."""


def fences(page: Path) -> list[tuple[str, str]]:
    """(info string, text) of every fenced block of a page, also of those inside lists."""
    found = []
    for indent, info, text in FENCE.findall(page.read_text(encoding="utf-8")):
        lines = [line.removeprefix(indent) for line in text.splitlines()]
        found.append((info.strip(), "\n".join(lines)))
    return found


def commands(page: Path) -> list[str]:
    """Every command that a page shows, in order, without comments."""
    text = "\n".join(text for info, text in fences(page) if info == SHELL)
    lines = text.replace("\\\n", " ").splitlines()
    plain = (re.sub(r"(^|\s)#.*$", "", line).strip() for line in lines)
    return [" ".join(line.split()) for line in plain if line]


def why_not(command: str) -> tuple[str, str] | None:
    """Why a command is not run, and the test that covers it; None for one that is run."""
    for pattern, reason, test in NOT_RUN:
        if re.match(pattern, command):
            return reason, test
    return None


def named(page: Path) -> str:
    """`docs/how-to/x.md`."""
    return page.relative_to(ROOT).as_posix()


def with_commands() -> list[Path]:
    """Pages that show a command."""
    return sorted(page for page in pages() if commands(page))
