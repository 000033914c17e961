"""What feeds stand on, in memory: a topic, a history, and stored cursors."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping

import msgspec
from emitted_records import Known

from servioticy.domain.model import LastUpdate, StreamKey, StreamRef, Timestamp
from servioticy.domain.quotas import DELIVERIES, Exceeded, quotas
from servioticy.domain.records import ConsumedRecord, EmittedRecord, Position
from servioticy.ports.cursors import (
    About,
    Change,
    Claim,
    DurableSubscription,
    Source,
    StoredCursor,
)
from servioticy.ports.emitted import EmittedPage
from servioticy.settings import Settings

USED_UP = Exceeded(quotas(Settings())[DELIVERIES], 60)
"""The quota of a tenant that may be given nothing."""
PARTITIONS = 2
PAGE = 7


class MemoryTopic:
    """Partitions of emitted records; a page is short, so that reading takes many."""

    def __init__(self) -> None:
        self.records: list[list[ConsumedRecord]] = [[] for _ in range(PARTITIONS)]
        self.pages_read = 0
        self.times_asked = 0

    def append(self, partition: int, stream: StreamRef, at: int, size: int = 0) -> ConsumedRecord:
        """Emit an update of at least that size; its place in the log is its place in the topic."""
        place = (len(self.records[partition]), 0)
        document = msgspec.Raw(b'{"lastUpdate":%d%s}' % (at, b" " * size))
        record = EmittedRecord(*stream, 1, 1, at, document, place)
        found = Known(record, Position(partition, place[0]))
        self.records[partition].append(found)
        return found

    def ends(self) -> dict[int, int]:
        return {number: len(each) for number, each in enumerate(self.records)}

    def begins_at(self, partition: int) -> int:
        return 0

    def read(self, partition: int, offset: int, end: int) -> EmittedPage:
        self.pages_read += 1
        records = self.records[partition][offset : min(end, offset + PAGE)]
        return EmittedPage(records, offset + len(records))

    def offsets_at(self, time_ms: int) -> dict[int, int]:
        self.times_asked += 1
        return {number: 0 for number, each in enumerate(self.records) if each}


class MemoryCursors:
    """Subscriptions that a test adds, and what was stored of them."""

    def __init__(self) -> None:
        self.rows: dict[str, DurableSubscription] = {}
        self.numbers: dict[str, Change] = {}
        self.sources: dict[Source, tuple[StreamRef, ...]] = {}
        self.known: dict[StreamRef, int] = {}
        self.readable_until: dict[StreamRef, float] = {}
        """Until when these may be read, by the clock of `time.monotonic`; others always."""
        self.is_claimed_by_others = False
        self.others = ""
        """where they are reached"""

    def add(self, id_: str, *streams: StreamRef, cursor: StoredCursor | None = None) -> None:
        keys = {each: StreamKey(1, number) for number, each in enumerate(streams)}
        source = Source(*streams[0])
        self.numbers[id_] = Change(len(self.rows), 0, id_)
        self.rows[id_] = DurableSubscription(
            id_, 1, keys, "test", b"{}", 0, cursor or StoredCursor(), source=source
        )

    def bring(self, id_: str, keys: Mapping[StreamRef, StreamKey], newest: int) -> None:
        """Let a subscription be about these streams from now on."""
        self.rows[id_] = self.rows[id_]._replace(streams=keys, newest=newest)
        self.numbers[id_] = self.numbers[id_]._replace(streams=self.numbers[id_].streams + 1)

    def claim(self) -> Claim:
        slots = frozenset() if self.is_claimed_by_others else frozenset({0})
        elsewhere = {0: self.others} if self.is_claimed_by_others and self.others else {}
        return Claim("own", slots, frozenset(), 1, elsewhere)

    def release(self, slots: Iterable[int]) -> None:
        """There is nobody else."""

    def changes(self) -> Mapping[str, Change]:
        return {id_: self.numbers[id_] for id_ in self.rows}

    def subscriptions(self, ids: Iterable[str]) -> list[DurableSubscription]:
        return [self.rows[each] for each in ids if each in self.rows]

    def about(self, tenant: int, source: Source, most: int) -> About:
        found = self.sources.get(source, ())
        keys = {each: StreamKey(1, number) for each, number in self.known.items() if each in found}
        now, until = time.monotonic(), self.readable_until
        kept = {each: key for each, key in keys.items() if until.get(each, math.inf) > now}
        ends = min((until[each] for each in kept if each in until), default=None)
        return About(kept, len(self.known), None if ends is None else ends - now)

    def make(self, source: Source, *streams: StreamRef) -> None:
        """Let a source have these streams; those that are new are the newest of all."""
        for each in streams:
            self.known.setdefault(each, len(self.known) + 1)
        self.sources[source] = streams

    def store(self, cursors: Mapping[str, StoredCursor]) -> None:
        for id_, cursor in cursors.items():
            if id_ in self.rows:
                self.rows[id_] = self.rows[id_]._replace(cursor=cursor)


class MemoryHistories:
    """Everything that a topic had, of streams by their numbers."""

    def __init__(self, topic: MemoryTopic) -> None:
        self.streams: dict[int, StreamRef] = {}
        self._topic = topic

    def updates_after(
        self, stream: StreamKey, after: Timestamp, limit: int, max_bytes: int
    ) -> list[LastUpdate]:
        of_one = MemoryHistory(self._topic, self.streams[stream.stream_id])
        return of_one.updates_after(stream, after, limit, max_bytes)


class MemoryHistory:
    """Everything that a topic had, stream by stream."""

    def __init__(self, topic: MemoryTopic, stream: StreamRef) -> None:
        self._topic = topic
        self._stream = stream

    def updates_after(
        self, stream: StreamKey, after: Timestamp, limit: int, max_bytes: int
    ) -> list[LastUpdate]:
        stored = [
            LastUpdate(each.timestamp, bytes(each.update))
            for partition in self._topic.records
            for each, _ in partition
            if StreamRef(each.service_object, each.stream) == self._stream
        ]
        later = sorted(each for each in stored if each.timestamp > after)
        return later[: min(limit, PAGE)]
