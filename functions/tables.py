"""The sink that is a table of a database: each atom is a row, whose columns are its members.

At least once, as all sinks: where the sink names a key an atom that comes twice overwrites itself.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import orjson

from functions.steps import Failure, Result, Task
from servioticy.domain.workflows.model import SinkTable
from servioticy.domain.workflows.tables import Schema, is_column
from servioticy.errors import Unavailable
from servioticy.ports.atoms import Atom
from servioticy.ports.outside_tables import OutsideTables, RowsRefused

AWAY_MS = 5_000
REFUSED_MS = 60_000
WRITING_SECONDS = 5.0
"""After so long no more of the atoms that were taken are written: others may have the place."""
MAX_TENANTS = 1_000
NO_COLUMN = "a member has a name that no column can have: 1 to 63 bytes"

log = logging.getLogger("functions")


class Tables:
    """Writes atoms as rows."""

    def __init__(
        self,
        databases: Mapping[str, Schema],
        public_id: Callable[[int], str],
        tables: OutsideTables,
    ) -> None:
        """`public_id` tells by what others know a tenant."""
        self._databases = databases
        self._public_id = lru_cache(MAX_TENANTS)(public_id)
        self._tables = tables

    def work(self, task: Task, atoms: Sequence[Atom]) -> Result:
        """Return what came of these."""
        sink = task.workflow.sink_table
        if sink is None:
            raise AssertionError("the dispatcher brings nothing else here")
        tenant = task.queue.tenant
        database = self._databases.get(sink.database)
        schema = None if database is None else database.of(self._public_id(tenant))
        if database is None or schema is None:
            log.warning("no_database", extra={"tenant": tenant, "database": sink.database})
            return Result(later=dict.fromkeys([each.id for each in atoms], REFUSED_MS))
        failed, groups = _grouped(sink, atoms)
        writing = _Writing(self._tables, database, schema, sink)
        until = time.monotonic() + WRITING_SECONDS
        for place, (columns, group) in enumerate(groups):
            try:
                writing.put(columns, group, until)
            except Unavailable as error:
                log.warning("table_away", extra={"tenant": tenant, "why": str(error)[:200]})
                left = [each.id for _, some in groups[place:] for each in some]
                left = [id_ for id_ in left if id_ not in writing.done | writing.failed.keys()]
                return Result(
                    dict.fromkeys(writing.done, ()),
                    failed | writing.failed,
                    dict.fromkeys(left, AWAY_MS) | writing.later,
                )
        return Result(dict.fromkeys(writing.done, ()), failed | writing.failed, writing.later)


class _Writing:
    """What has come of some atoms so far."""

    def __init__(
        self, tables: OutsideTables, database: Schema, schema: str, sink: SinkTable
    ) -> None:
        self.done: set[int] = set()
        self.failed: dict[int, Failure] = {}
        self.later: dict[int, int] = {}
        self._tables = tables
        self._database = database
        self._schema = schema
        self._sink = sink

    def put(self, columns: Sequence[str], atoms: Sequence[Atom], until: float) -> None:
        """Write them, together, and each alone where they are refused. Raises Unavailable."""
        if time.monotonic() >= until:
            self.later |= dict.fromkeys([each.id for each in atoms], 0)
            return
        sink = self._sink
        try:
            self._tables.put(
                self._database.server,
                self._schema,
                sink.table,
                columns,
                sink.key,
                [each.body for each in atoms],
            )
        except RowsRefused as error:
            if len(atoms) > 1:
                for each in atoms:
                    self.put(columns, [each], until)
                return
            self.failed[atoms[0].id] = Failure(f"the table: {error}", error.is_hopeless)
        else:
            self.done |= {each.id for each in atoms}


_Groups = Sequence[tuple[Sequence[str], Sequence[Atom]]]
"""Atoms of the same members, and these."""


def _grouped(sink: SinkTable, atoms: Sequence[Atom]) -> tuple[dict[int, Failure], _Groups]:
    """Return what cannot be a row, and the others by their members.

    So a column that an atom does not name is not touched, or has what the table says.
    """
    failed: dict[int, Failure] = {}
    groups: dict[tuple[str, ...], list[Atom]] = {}
    for atom in atoms:
        names = tuple(sorted(orjson.loads(atom.body)))
        missing = [each for each in sink.key if each not in names]
        if missing:
            failed[atom.id] = Failure(f"it has no {missing[0]!r}, which is of the key", True)
        elif not names or not all(map(is_column, names)):
            failed[atom.id] = Failure(NO_COLUMN if names else "it has no members", True)
        else:
            groups.setdefault(names, []).append(atom)
    return failed, list(groups.items())
