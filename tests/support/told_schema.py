"""The schema as it is told to people: one file, and the migrations that came after it."""

from __future__ import annotations

import re
from importlib import resources

SQL = resources.files("servioticy.storage") / "sql"
MAX_UNTOLD = 5
"""Migrations that may stand by themselves before they move into the file."""


def told_schema() -> list[str]:
    """Return what `schema.sql` holds, and after it each migration later than those it names."""
    text = (SQL / "schema.sql").read_text("utf-8")
    told = re.search(r"migrations up to ([0-9]{4}) together", text)
    assert told is not None
    files = sorted((SQL / "migrations").iterdir(), key=lambda each: each.name)
    later = [each for each in files if each.name[:4] > told[1] and each.name.endswith(".sql")]
    assert len(later) <= MAX_UNTOLD, "time to move them into schema.sql"
    return [text, *(each.read_text("utf-8") for each in later)]
