"""The glossary explains words that are used, each once."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("api", "ingest", "broker", "delivery", "functions", "pipeline", "sandbox", "servioticy")


def explained() -> list[str]:
    """The words of all tables, without the verdicts, which a test of their own holds."""
    text = (ROOT / "docs" / "glossary.md").read_text("utf-8")
    tables = re.findall(r"^\| word \| meaning \|\n\| --- \| --- \|\n((?:\|.*\n?)+)", text, re.M)
    cells = [
        row.split(" | ")[0].removeprefix("| ") for rows in tables for row in rows.splitlines()
    ]
    return [word.strip("` ") for cell in cells for word in cell.split(", ")]


def plain(text: str) -> str:
    """One spelling for `BatchState`, `batch_state`, `batch-state` and "batch state"."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text)
    return re.sub(r"[\s_\-]+", " ", apart).lower()


@pytest.fixture(scope="module")
def used() -> str:
    files = [each for room in ROOMS for each in (ROOT / room).rglob("*") if each.is_file()]
    return plain("\n".join(each.read_text("utf-8") for each in files if each.suffix in KINDS))


KINDS = {".py", ".sql", ".js"}


@pytest.mark.parametrize("word", sorted(set(explained())))
def test_a_word_of_the_glossary_is_used(word: str, used: str) -> None:
    """A word that the code has given up misleads whoever looks for it."""
    name = plain(re.sub(r" \(.*\)", "", word))

    assert re.search(rf"\b{re.escape(name)}", used)


def test_no_word_is_explained_twice() -> None:
    assert [word for word, count in Counter(map(plain, explained())).items() if count > 1] == []
    assert len(explained()) > 50
