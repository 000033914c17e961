"""docs/limits.md names each limit once, and files that exist."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROWS = [
    line
    for line in (ROOT / "docs" / "limits.md").read_text("utf-8").splitlines()
    if line.startswith("|") and not line.startswith("| ---")
]


def test_each_limit_stands_there_once() -> None:
    """Two rows of one limit would say two things one day."""
    names = Counter(row.split("|")[1].strip() for row in ROWS)

    assert [name for name, count in names.items() if count > 1] == []


def test_the_files_it_names_exist() -> None:
    files = {name for row in ROWS for name in re.findall(r"[a-z_]+/[a-z_/0-9]+\.(?:py|js)", row)}

    assert len(files) > 10
    assert sorted(name for name in files if not (ROOT / name).is_file()) == []
