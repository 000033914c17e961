"""Who asks the statements of a file: one module of storage, or routes of the API; never both.

What two programs ask has rules in Python, and those have one place (`servioticy/storage/`).
"""

from __future__ import annotations

import re
from collections import defaultdict
from importlib import resources
from pathlib import Path

from servioticy.storage.queries import queries

ROOT = Path(__file__).parents[2]
NO_STATEMENTS = {"schema"}
"""What is run as a whole."""
TOGETHER = {"partition": {"partition_store.py", "batches.py"}}
"""One port in two modules."""


def askers(pattern: str, folder: str) -> dict[str, set[str]]:
    """Who names which file of SQL so, by that file."""
    found = defaultdict(set)
    for module in (ROOT / folder).rglob("*.py"):
        for name in re.findall(pattern, module.read_text()):
            found[name].add(module.name)
    return found


def test_a_file_is_asked_by_storage_or_by_the_api() -> None:
    storage = askers(r'\bqueries\("(\w+)"\)', "servioticy/storage")
    routes = askers(r'\bstatements\("(\w+)"\)', "api")

    assert not storage.keys() & routes.keys()
    assert {file: some for file, some in storage.items() if len(some) > 1} == TOGETHER
    files = {each.name for each in (resources.files("servioticy.storage") / "sql").iterdir()}
    named = {each.removesuffix(".sql") for each in files if each.endswith(".sql")}
    assert named - NO_STATEMENTS == storage.keys() | routes.keys()


def test_every_statement_is_asked() -> None:
    """By its name in quotes, somewhere in the programs."""
    folders = ("servioticy", "ingest", "api")
    text = "\n".join(each.read_text() for some in folders for each in (ROOT / some).rglob("*.py"))
    files = set(re.findall(r'\b(?:queries|statements)\("(\w+)"\)', text))

    assert [
        f"{file}.{name}" for file in files for name in queries(file) if f'"{name}"' not in text
    ] == []
