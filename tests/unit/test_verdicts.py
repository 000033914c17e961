"""The verdicts are one list: whoever writes one of them, in any language, takes it from there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from sandbox.host.grown import CAME, DID_NOT_RUN
from sandbox.program import FAULT_KINDS
from servioticy.domain import verdicts
from servioticy.domain.verdicts import VERDICTS

ROOT = Path(__file__).parents[2]
REALM = sorted((ROOT / "sandbox" / "guest" / "realm").glob("*.js"))
PAGES = sorted((ROOT / "docs").glob("*.md")) + sorted((ROOT / "docs" / "rest").glob("*.md"))
SANDBOX = sorted((ROOT / "sandbox").rglob("*.py"))
SQL = sorted((ROOT / "servioticy" / "storage" / "sql").rglob("*.sql"))
PROGRAMS = [
    *(ROOT / "pipeline").rglob("*.py"),
    *(ROOT / "api").rglob("*.py"),
    *(ROOT / "servioticy" / "domain" / "evaluators").rglob("*.py"),
]
SANDBOX_KINDS = FAULT_KINDS | CAME | DID_NOT_RUN
NAMES = {
    name: word for name, word in vars(verdicts).items() if name.isupper() and isinstance(word, str)
}


def in_javascript(text: str) -> set[str]:
    """The kinds of the faults, problems and endings that a script of the realm makes."""
    return set(
        re.findall(r'\bfault\(\s*"([^"]*)"', text)
        + re.findall(r'\bnew Problem\([^;]*, "([a-z-]+)"\);', text)
        + re.findall(r'\breturn \["([a-z-]+)"', text)
        + re.findall(r'\bkind = "([^"]*)"', text)
        + re.findall(r'\bend\(node, "([^"]*)"', text)
    )


def in_sql(text: str) -> set[str]:
    """The words that a statement compares a verdict with, or stores as one."""
    compared = re.findall(
        r"\bverdict\s*(?:=|<>|!=|in|not\s+in)\s*\(?((?:\s*'[^']*'\s*,?)+)", text, re.IGNORECASE
    )
    return {word for each in compared for word in re.findall(r"'([^']*)'", each)}


def in_python(file: Path) -> set[str]:
    """The verdicts that stand in a program as literals."""
    tree = ast.parse(file.read_text())
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value in VERDICTS
    }


def faults_in_python(file: Path) -> set[str]:
    """The kinds of the faults and failures that a program makes."""
    return {
        node.args[0].value
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("Fault", "Failure")
        and isinstance(node.args[0], ast.Constant)
    }


def test_the_glossary_says_of_each_verdict_what_the_code_says() -> None:
    glossary = (ROOT / "docs" / "glossary.md").read_text()
    _, _, table = glossary.partition("| verdict | meaning |\n| --- | --- |\n")
    rows = re.findall(r"^\| `([^`]*)` \| (.*) \|$", table, re.MULTILINE)

    assert rows == list(VERDICTS.items())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_pages_name_verdicts_that_there_are(page: Path) -> None:
    named = re.findall(r"\bverdicts? ((?:`[a-z-]+`(?:, | or | and )?)+)", page.read_text())
    words = {word for each in named for word in re.findall("`([^`]*)`", each)}

    assert words <= set(VERDICTS)
    assert page.name != "document-format.md" or {"hop-limit", "time-limit", "missing"} <= words


def test_each_verdict_has_a_sentence() -> None:
    for meaning in VERDICTS.values():
        assert re.fullmatch(r"[A-Z].*[a-z]\.", meaning)


def test_what_the_sandbox_answers_is_a_verdict() -> None:
    assert set(VERDICTS) > SANDBOX_KINDS


def test_a_verdict_is_the_sandboxs_or_the_pipelines() -> None:
    """One that nobody gives is not in the list."""
    given = {
        node.id
        for file in PROGRAMS
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Name)
    }
    named = {word for name, word in NAMES.items() if name in given}

    assert named | SANDBOX_KINDS == set(VERDICTS)


def test_the_realm_makes_verdicts() -> None:
    found = {file.name: in_javascript(file.read_text()) for file in REALM}

    assert found["runner.js"] >= {"filtered", "error"}
    assert found["trees.js"] >= {"stale", "superseded", "missing", "hop-limit", "emitted"}
    assert found["policy.js"] == {"policy", "syntax"}
    assert set().union(*found.values()) <= SANDBOX_KINDS


def test_the_sandbox_around_it_makes_verdicts() -> None:
    found = set().union(*(faults_in_python(file) for file in SANDBOX))

    assert {"timeout", "oom", "crash"} <= found <= FAULT_KINDS


@pytest.mark.parametrize("file", SQL, ids=lambda file: file.name)
def test_sql_names_verdicts_that_there_are(file: Path) -> None:
    assert in_sql(file.read_text()) <= set(VERDICTS)


def test_verdicts_in_sql_are_found() -> None:
    sql = "WHERE v.verdict NOT IN ('stale', 'gone') OR verdict = 'other' AND kind = 'x'"

    assert in_sql(sql) == {"stale", "gone", "other"}


def test_no_program_spells_a_verdict_itself() -> None:
    """But for words of the REST API, a `state`, a parameter, a key, a request given up, and of
    jobs and atoms how they ended."""
    found = {file.name: in_python(file) for file in PROGRAMS}

    assert {name: words for name, words in found.items() if words} == {
        "status.py": {"suspended"},
        "actuations.py": {"timeout"},
        "idempotency.py": {"abandoned"},
        "telling.py": {"behind"},
        "platform.py": {"behind"},
        "by_issuer.py": {"error"},
        "drawing.py": {"collected"},
        "jobs.py": {"superseded"},
        "workflow_atoms.py": {"collected"},
    }
