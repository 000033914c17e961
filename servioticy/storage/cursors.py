"""The Cursors in Postgres."""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from servioticy.domain import feed_slots
from servioticy.domain.feed_slots import SLOTS
from servioticy.domain.model import StreamKey, StreamRef
from servioticy.errors import Unavailable
from servioticy.ports.cursors import (
    About,
    Change,
    Claim,
    DurableSubscription,
    Source,
    StoredCursor,
    read_cursor,
    write_cursor,
)
from servioticy.storage.database import Database
from servioticy.storage.queries import queries
from servioticy.storage.sources import PostgresSources

ACTING = "actions-"
"""So begin the ids of those that are of a composite stream, for the actions it asks for."""
PAGE = 1_000
"""Cursors that are read at once."""


REACHED = "delivery "
"""So begins the name of a connection that says where its process is reached."""
MAX_NAME = 63
"""Bytes that Postgres keeps of such a name: whose address is longer is not found by it."""


class Standing(NamedTuple):
    """Where a durable subscription stands, or a composite stream that asks for actions."""

    id: str
    created_ms: int
    cursor: StoredCursor


class Locks(NamedTuple):
    """Classes of advisory locks, any numbers that nothing else uses, and how many slots."""

    processes: int
    slots: int
    slots_in_all: int = SLOTS
    by_tenant: bool = False
    """Whether all subscriptions of a tenant are in one slot."""


class Deliverer(Enum):
    """Programs that deliver to durable subscriptions, each to callbacks of its own.

    Processes of each share them. Of the broker one has all of a tenant, and others ask it: a topic
    is that of many clients, wherever they are, and a message is delivered when one of them has it.
    """

    DELIVERY = Locks(1_701_018, 1_701_019)
    BROKER = Locks(1_701_020, 1_701_021, by_tenant=True)


class PostgresCursors:
    """The durable subscriptions of the platform."""

    def __init__(
        self,
        database: Database,
        deliverer: Deliverer = Deliverer.DELIVERY,
        address: str = "",
    ) -> None:
        """`database` is asked by one thread at a time, which keeps the claim.

        Others are told by it at which `address`, a URL, this process is reached.
        """
        self._locks = deliverer.value
        named = f"{REACHED}{address}"
        self._name = named if address and len(named) <= MAX_NAME else "servioticy"
        self._fence = ""
        self._database = database
        self._sql = queries("cursors")
        self._sources = PostgresSources(database)

    def claim(self) -> Claim:
        """Take as many slots as this process may have, of those that nobody has."""
        locks = self._locks._asdict()
        ((fence,),) = self._database.rows(self._sql["fence"])
        if not fence or fence != self._fence:
            self._fence = secrets.token_hex(8)
            come = {"fence": self._fence, "name": self._name}
            self._database.rows(self._sql["come"], locks | come)
        held, taken, processes = set[int](), set[int](), 0
        elsewhere: dict[int, str] = {}
        for slot, is_own, name in self._database.rows(self._sql["held"], locks):
            if slot >= 0 and not is_own and name.startswith(REACHED):
                elsewhere[slot] = name.removeprefix(REACHED)
            if slot < 0:
                processes += 1
            else:
                (held if is_own else taken).add(slot)
        in_all = self._locks.slots_in_all
        most = feed_slots.share(in_all, processes)
        wanted = feed_slots.missing(held, taken, in_all, most)
        if wanted:
            found = self._database.rows(self._sql["take"], locks | {"wanted": wanted})
            held |= {slot for (slot,) in found}
        surplus = feed_slots.surplus(held, most)
        return Claim(self._fence, frozenset(held), surplus, in_all, elsewhere)

    def release(self, slots: Iterable[int]) -> None:
        """Let others have these."""
        values = {"slots": self._locks.slots, "released": sorted(slots)}
        self._database.rows(self._sql["release"], values)

    def changes(self) -> Mapping[str, Change]:
        """Return the last change of every durable subscription."""
        by_tenant = self._locks.by_tenant
        return {
            id_: Change(own, streams, feed_slots.of_tenant(tenant) if by_tenant else id_)
            for id_, own, streams, tenant in self._database.rows(self._sql["changes"])
        }

    def subscriptions(self, ids: Iterable[str]) -> list[DurableSubscription]:
        """Return these, as they are now; those that are gone are missing."""
        acting, subscribed = apart(ids)
        return [*self._subscribed(subscribed), *self._acting(acting)]

    def _subscribed(self, ids: Sequence[str]) -> list[DurableSubscription]:
        wanted = {"ids": ids}
        found = self._database.rows(self._sql["subscriptions"], wanted)
        streams: defaultdict[str, dict[StreamRef, StreamKey]] = defaultdict(dict)
        about = self._database.rows(self._sql["streams"], wanted)
        for id_, _newest, *stream in about:
            if stream[0] is not None:
                streams[id_][StreamRef(*stream[:2])] = StreamKey(*stream[2:])
        return [_subscription(row, streams[row[0]], about[0][1]) for row in found]

    def _acting(self, streams: Sequence[int]) -> list[DurableSubscription]:
        """Return composite streams that ask for actions, as subscriptions."""
        if not streams:
            return []
        found = self._database.rows(self._sql["acting"], {"streams": streams})
        return [
            _subscription(row, {StreamRef(*row[7:9]): StreamKey(*row[10:])}, 0) for row in found
        ]

    def about(self, tenant: int, source: Source, most: int) -> About:
        """Return what a tenant may read of a Service Object or a group: so many streams."""
        return self._sources.about(tenant, source, most)

    def every(self) -> Iterator[list[Standing]]:
        """Yield where all of them stand, those too that are not delivered to, some at a time."""
        for name, prefix, start in (("every", "", ""), ("every_acting", ACTING, 0)):
            after: object = start
            while page := self._database.rows(self._sql[name], {"after": after, "most": PAGE}):
                yield [
                    Standing(f"{prefix}{id_}", created, read_cursor(text))
                    for id_, created, text in page
                ]
                after = page[-1][0]

    def store(self, cursors: Mapping[str, StoredCursor]) -> None:
        """Note how far each of these has got; those that are gone are ignored."""
        texts = {id_: write_cursor(each) for id_, each in cursors.items()}
        acting, subscribed = apart(cursors)
        if subscribed:
            own = [texts[each] for each in subscribed]
            self._stored("store", {"ids": subscribed, "cursors": own})
        if acting:
            own = [texts[f"{ACTING}{each}"] for each in acting]
            self._stored("store_acting", {"streams": acting, "cursors": own})

    def _stored(self, statement: str, values: Mapping[str, Any]) -> None:
        """Raises Unavailable where the connection that had claimed is gone."""
        fenced = {**values, "fence": self._fence}
        ((is_stored,),) = self._database.rows(self._sql[statement], fenced)
        if not is_stored:
            raise Unavailable("another process may deliver to these subscriptions by now")


def apart(ids: Iterable[str]) -> tuple[list[int], list[str]]:
    """Return the streams of those that are for their actions, and the others."""
    acting, subscribed = list[int](), list[str]()
    for each in ids:
        if each.startswith(ACTING):
            acting.append(int(each.removeprefix(ACTING)))
        else:
            subscribed.append(each)
    return acting, subscribed


def _subscription(
    row: Sequence[Any], streams: Mapping[StreamRef, StreamKey], newest: int
) -> DurableSubscription:
    id_, tenant, callback, document, created, cursor, failing_since, *about = row[:10]
    source = Source(*about)
    return DurableSubscription(
        id_,
        tenant,
        streams,
        callback,
        document.encode(),
        created,
        read_cursor(cursor),
        failing_since,
        source,
        newest if source.stream is None else None,
    )
