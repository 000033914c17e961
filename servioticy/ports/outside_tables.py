"""Tables of databases that are not ours, into which rows are written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from servioticy.domain.workflows.tables import Server
from servioticy.errors import ServioticyError


class RowsRefused(ServioticyError):
    """The table does not take these rows; the message says why."""

    def __init__(self, why: str, is_hopeless: bool) -> None:
        super().__init__(why)
        self.is_hopeless = is_hopeless
        """whether it is the rows, whatever becomes of the table"""


class OutsideTables(Protocol):
    """Writes rows. Any thread may ask; blocks for some seconds at most."""

    def put(
        self,
        server: Server,
        schema: str,
        table: str,
        columns: Sequence[str],
        key: Sequence[str],
        rows: Sequence[bytes],
    ) -> None:
        """Write these, JSON objects whose members are the columns, all of them or none.

        Those of which the table has the key already take the place of what is there, and without
        a key each is a row. Raises RowsRefused, Unavailable: perhaps they are written then.
        """
