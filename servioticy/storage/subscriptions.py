"""The Subscriptions in Postgres."""

from __future__ import annotations

from servioticy.domain.model import StreamKey
from servioticy.ports.subscriptions import NewSubscription, Subscription
from servioticy.storage.database import Database, Row
from servioticy.storage.queries import queries


class PostgresSubscriptions:
    """Stores subscriptions."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = queries("subscriptions")

    def subscribe(self, new: NewSubscription) -> bool:
        """Store a subscription; False where the same pubsub one exists already."""
        values = {
            "id": new.id,
            "tenant": new.tenant,
            "stream": new.stream.stream_id,
            "callback": new.callback,
            "destination": new.destination,
            "document": new.document.decode(),
            "now": new.created_at,
        }
        return self._database.row(self._sql["subscribe"], values) is not None

    def of_stream(self, stream: StreamKey) -> list[Subscription]:
        """The subscriptions to a stream, everybody's, oldest first."""
        rows = self._database.rows(self._sql["of_stream"], stream._asdict())
        return [_read(row) for row in rows]

    def subscription(self, id_: str) -> Subscription | None:
        """A subscription, whosever it is, or None."""
        if "\0" in id_:
            return None  # text in Postgres has none
        row = self._database.row(self._sql["subscription"], {"id": id_})
        return None if row is None else _read(row)

    def unsubscribe(self, tenant: int, id_: str) -> None:
        """Drop a subscription of that tenant."""
        self._database.rows(self._sql["unsubscribe"], {"tenant": tenant, "id": id_})


def _read(row: Row) -> Subscription:
    tenant, stream_owner, document = row
    return Subscription(tenant, stream_owner, document.encode())
