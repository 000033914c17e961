"""Atoms that are gathered for an object of a store, in Postgres until it is written.

Every method may raise Unavailable. All but what is between tenants names the tenant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from servioticy.domain.workflows.objects import HOUR_MS, LATE_MS, MAX_OBJECT_BYTES, Object
from servioticy.ports.atoms import Queue
from servioticy.storage.arrays import numbers
from servioticy.storage.database import Database, Row
from servioticy.storage.queries import queries

KEPT_MS = 48 * HOUR_MS
"""So long it is known which numbers an hour has had."""
MOST_FORGOTTEN = 10
"""Objects that are let go at once."""


class PostgresGathered:
    """Keeps what is gathered."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = queries("gathered")

    def gather(
        self, queue: Queue, instance: int, ids: Sequence[int], step: int, now_ms: int
    ) -> int:
        """Keep atoms for the object of this hour; returns how many were still its own.

        In one transaction with their end. Who writes objects is at this step: he is told when the
        hour is over, or when the object is large.
        """
        own = {**_of(queue), "hour": now_ms // HOUR_MS * HOUR_MS, "now": now_ms, "step": step}
        with self._database.transaction():
            number = self._open(own)
            values = {**own, "number": number, "instance": instance, "ids": numbers(ids)}
            ((count, size),) = self._rows("gather", values)
            if number is None or not size:
                return int(count)
            ((is_sealed,),) = self._rows(
                "grow", {**values, "size": size, "most": MAX_OBJECT_BYTES}
            )
            if is_sealed:
                self._rows("hurry", {**values, "ticket": _ticket(values)})
        return int(count)

    def _open(self, own: Mapping[str, object]) -> int | None:
        """Return the number of the object that is open; None: the workflow is gone, or not now."""
        for _ in range(3):  # another one makes it first, and seals it: not twice in a moment
            if rows := self._rows("open", own):
                return int(rows[0][0])
            for (number,) in self._rows("make", own):
                made = {**own, "number": number}
                at = int(str(own["hour"])) + HOUR_MS + LATE_MS
                self._rows("ticket", {**made, "at": at, "ticket": _ticket(made)})
                self._rows("forget", {**own, "before": int(str(own["hour"])) - KEPT_MS})
        return None

    def sealed(self, queue: Queue, object_: Object) -> list[bytes]:
        """Let nothing more come into an object, and return all that it has, in order."""
        values = {**_of(queue), "hour": object_.hour_ms, "number": object_.number}
        self._rows("seal", values)
        return [body.encode() for (body,) in self._rows("rows", values)]

    def written(self, queue: Queue, instance: int, id_: int, object_: Object) -> int:
        """Let go what is in the store now, with its ticket; 0: another one has that."""
        values = {**_of(queue), "hour": object_.hour_ms, "number": object_.number}
        ((count,),) = self._rows("written", {**values, "id": id_, "instance": instance})
        return int(count)

    def held(self) -> dict[int, int]:
        """Return how many bytes are gathered, by tenant."""
        return {int(tenant): int(size) for tenant, size in self._rows("held", {})}

    def forget(self, now_ms: int) -> None:
        """Let go what is gathered for objects that are dead letters no more."""
        names = ("tenant", "workflow", "version", "hour", "number")
        for row in self._rows("lost", {"before": now_ms - KEPT_MS, "most": MOST_FORGOTTEN}):
            self._rows("forget_lost", dict(zip(names, row, strict=True)))

    def _rows(self, name: str, values: Mapping[str, object]) -> list[Row]:
        return self._database.rows(self._sql[name], values)


def _of(queue: Queue) -> dict[str, object]:
    return queue._asdict()


def _ticket(values: Mapping[str, object]) -> str:
    return Object(int(str(values["hour"])), int(str(values["number"]))).body().decode()
