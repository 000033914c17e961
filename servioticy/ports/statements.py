"""Statements on a resource's own tables, where nothing but the resource asks for its rows.

There is no twin to keep and no rule beside the SQL, so there is no port of its own either: the
statements are named and described in `storage/sql/RESOURCE.sql`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

Row = tuple[Any, ...]


class Statements(Protocol):
    """Runs the statements of one resource."""

    def rows(self, name: str, /, **values: object) -> list[Row]:
        """Run the statement of that name and return its rows.

        A statement that is given text with a NUL in it finds nothing and changes nothing: no
        stored text has one. Raises Unavailable.
        """

    def row(self, name: str, /, **values: object) -> Row | None:
        """Run the statement and return its first row, or None. Raises Unavailable."""

    def together(self) -> AbstractContextManager[None]:
        """What this thread stores inside takes effect together or not at all."""

    def session(self) -> AbstractContextManager[None]:
        """What this thread locks inside stays locked until it lets go, or the end."""
