"""The Cursors in Postgres."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from servioticy.domain.model import StreamKey, StreamRef
from servioticy.ports.cursors import (
    About,
    Change,
    DurableSubscription,
    Source,
    StoredCursor,
    read_cursor,
    write_cursor,
)
from servioticy.storage.database import Database
from servioticy.storage.queries import queries

_LOCK = 7_305_808_869_233  # any number that only delivery uses


class PostgresCursors:
    """The durable subscriptions of the platform."""

    def __init__(self, database: Database) -> None:
        """`database` is asked by one thread at a time, which keeps the claim."""
        self._database = database
        self._sql = queries("cursors")

    def claim(self) -> bool:
        """Whether this process may deliver to durable subscriptions; one at a time may."""
        return bool(self._database.rows(self._sql["claim"], {"key": _LOCK})[0][0])

    def changes(self) -> Mapping[str, Change]:
        """Return the last change of every durable subscription."""
        return {id_: Change(*rest) for id_, *rest in self._database.rows(self._sql["changes"])}

    def subscriptions(self, ids: Iterable[str]) -> list[DurableSubscription]:
        """Return these, as they are now; those that are gone are missing."""
        wanted = {"ids": list(ids)}
        found = self._database.rows(self._sql["subscriptions"], wanted)
        streams: defaultdict[str, dict[StreamRef, StreamKey]] = defaultdict(dict)
        about = self._database.rows(self._sql["streams"], wanted)
        for id_, _newest, *stream in about:
            if stream[0] is not None:
                streams[id_][StreamRef(*stream[:2])] = StreamKey(*stream[2:])
        return [_subscription(row, streams[row[0]], about[0][1]) for row in found]

    def about(self, tenant: int, source: Source, most: int) -> About:
        """Return what a tenant may read of a Service Object or a group: so many streams."""
        values = {
            "tenant": tenant,
            "service_object": source.service_object,
            "group": source.group,
            "most": most,
        }
        ((newest,),) = self._database.rows(self._sql["newest_stream"])
        rows = self._database.rows(self._sql["streams_of"], values)
        return About({StreamRef(*row[:2]): StreamKey(*row[2:]) for row in rows}, newest)

    def store(self, cursors: Mapping[str, StoredCursor]) -> None:
        """Note how far each of these has got; those that are gone are ignored."""
        texts = [write_cursor(each) for each in cursors.values()]
        self._database.rows(self._sql["store"], {"ids": list(cursors), "cursors": texts})


def _subscription(
    row: Sequence[Any], streams: Mapping[StreamRef, StreamKey], newest: int
) -> DurableSubscription:
    id_, tenant, callback, document, created, cursor, failing_since, *source = row
    about = Source(*source)
    return DurableSubscription(
        id_,
        tenant,
        streams,
        callback,
        document.encode(),
        created,
        read_cursor(cursor),
        failing_since,
        about,
        newest if about.stream is None else None,
    )
