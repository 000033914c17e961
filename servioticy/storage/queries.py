"""Loads the named queries of `sql/*.sql`: `-- name --` on a line begins one."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

_NAME = re.compile(r"^-- (\w+) --$", re.MULTILINE)


@cache
def queries(file: str) -> dict[str, str]:
    """Return the queries of one file by name, with their descriptions as SQL comments."""
    text = (resources.files("servioticy.storage") / "sql" / f"{file}.sql").read_text("utf-8")
    parts = _NAME.split(text)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))
