"""The Cursors in Postgres."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from servioticy.domain.model import StreamKey, StreamRef
from servioticy.ports.cursors import (
    DurableSubscription,
    StoredCursor,
    read_cursor,
    write_cursor,
)
from servioticy.storage.database import Database
from servioticy.storage.queries import queries

ACTING = "actions-"
"""So begin the ids of those that are of a composite stream, for the actions it asks for."""
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

    def changes(self) -> Mapping[str, int]:
        """Return the number of the last change of every durable subscription."""
        return dict(self._database.rows(self._sql["changes"]))

    def subscriptions(self, ids: Iterable[str]) -> list[DurableSubscription]:
        """Return these, as they are now; those that are gone are missing."""
        acting, subscribed = _apart(ids)
        found = self._database.rows(self._sql["subscriptions"], {"ids": subscribed})
        if acting:
            found += self._database.rows(self._sql["acting"], {"streams": acting})
        return [
            DurableSubscription(
                id_,
                tenant,
                {StreamRef(service_object, name): StreamKey(owner, stream_id)},
                callback,
                document.encode(),
                created,
                change,
                read_cursor(cursor),
                failing_since,
            )
            for (
                id_,
                tenant,
                callback,
                document,
                created,
                change,
                cursor,
                service_object,
                name,
                owner,
                stream_id,
                failing_since,
            ) in found
        ]

    def store(self, cursors: Mapping[str, StoredCursor]) -> None:
        """Note how far each of these has got; those that are gone are ignored."""
        texts = {id_: write_cursor(each) for id_, each in cursors.items()}
        acting, subscribed = _apart(cursors)
        if subscribed:
            own = [texts[each] for each in subscribed]
            self._database.rows(self._sql["store"], {"ids": subscribed, "cursors": own})
        if acting:
            own = [texts[f"{ACTING}{each}"] for each in acting]
            self._database.rows(self._sql["store_acting"], {"streams": acting, "cursors": own})


def _apart(ids: Iterable[str]) -> tuple[list[int], list[str]]:
    """Return the streams of those that are for their actions, and the others."""
    acting, subscribed = list[int](), list[str]()
    for each in ids:
        if each.startswith(ACTING):
            acting.append(int(each.removeprefix(ACTING)))
        else:
            subscribed.append(each)
    return acting, subscribed
