"""The DeadDeliveries in Postgres."""

from __future__ import annotations

import orjson

from servioticy.domain.model import LastUpdate, StreamRef
from servioticy.ports.dead_deliveries import DeadDelivery, Trouble
from servioticy.storage.database import Database
from servioticy.storage.queries import queries

MAX_KEPT = 10_000
"""Of one subscription."""
MAX_BYTES, ROW_BYTES = 256 * 1024 * 1024, 1_024
"""Of all subscriptions of a tenant; and what each counts for beside its document."""
LOOKED_FOR = 16
"""With each so-many-th that a process buries: all rows of a tenant are summed up for it."""
MAX_AT_ONCE = 100
MAX_REASON = 500


class PostgresDeadDeliveries:
    """What receivers would not take, and why they take nothing at all."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = queries("dead_deliveries")
        self._buried = 0

    def bury(
        self, tenant: int, subscription: str, dead: DeadDelivery, reason: str, now_ms: int
    ) -> None:
        """Keep an update; the oldest ones go where there are too many."""
        whose = {"tenant": tenant, "id": subscription}
        values = whose | {
            "delivery": dead.id,
            "service_object": dead.stream.service_object,
            "stream": dead.stream.stream,
            "timestamp": dead.update.timestamp,
            "document": dead.update.document.decode(),
            "reason": storable(reason),
            "now": now_ms,
        }
        with self._database.transaction():
            self._database.rows(self._sql["bury"], values)
            self._database.rows(self._sql["forget_oldest"], whose | {"most": MAX_KEPT})
            if not self._buried % LOOKED_FOR:
                bounds = {"tenant": tenant, "most": MAX_BYTES, "row": ROW_BYTES}
                self._database.rows(self._sql["forget_oldest_of_all"], bounds)
            self._buried += 1

    def to_redrive(self, tenant: int, subscription: str) -> list[DeadDelivery]:
        """Return some of those that are to be delivered once more, the oldest first."""
        values = {"tenant": tenant, "id": subscription, "most": MAX_AT_ONCE}
        return [
            DeadDelivery(id_, StreamRef(name, stream), LastUpdate(at, document.encode()))
            for id_, name, stream, at, document in self._database.rows(
                self._sql["to_redrive"], values
            )
        ]

    def revived(self, tenant: int, subscription: str, delivery: str) -> None:
        """Note that the receiver has taken it after all."""
        values = {"tenant": tenant, "id": subscription, "delivery": delivery}
        self._database.rows(self._sql["revived"], values)

    def trouble(
        self, tenant: int, subscription: str, trouble: Trouble | None, *, stop: bool = False
    ) -> None:
        """Note why nothing is taken, None: it is again; or `stop` to deliver altogether."""
        text = None
        if trouble is not None:
            told = trouble._replace(reason=storable(trouble.reason))
            text = orjson.dumps(told._asdict()).decode()
        values = {"tenant": tenant, "id": subscription, "trouble": text, "stop": stop}
        self._database.rows(self._sql["trouble"], values)


def storable(text: str) -> str:
    """Return a receiver's words as they can be stored: short, and without what text has not."""
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()[:MAX_REASON]
