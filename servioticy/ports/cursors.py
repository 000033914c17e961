"""Durable subscriptions and how far each has been acknowledged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

import orjson

from servioticy.domain.feed_slots import slot_of
from servioticy.domain.model import StreamKey, StreamRef, Timestamp


class StoredCursor(NamedTuple):
    """How far a subscription has got, as it is stored."""

    offsets: Mapping[int, int] = {}
    """By partition of the topic `emitted`, the offset of the next record; empty: not begun."""
    history: Mapping[StreamRef, Timestamp] = {}
    """Of each of these streams, the history from after this timestamp on is to come first."""
    since: Mapping[int, int] = {}
    """By partition of the log, where it ended when the subscription was made: what follows from
    earlier records is not asked for."""
    before: Mapping[int, int] = {}
    """By partition of the topic, from where on everything comes after all histories."""
    newest: int | None = None
    """Streams with larger numbers came to be later; None: it is about one stream."""
    begun: frozenset[int] = frozenset()
    """Of these, whose history has been begun."""


class Source(NamedTuple):
    """What a subscription is about: a stream, a Service Object, or what a group of it reads."""

    service_object: str
    stream: str | None = None
    group: str | None = None


class About(NamedTuple):
    """Which streams a source has at one moment."""

    streams: Mapping[StreamRef, StreamKey]
    """Those that whoever asks may read."""
    newest: int
    """The number of the newest stream of all."""
    holds_for: float | None = None
    """Seconds until the first of the grants ends by which they are read; None: none does."""


class Change(NamedTuple):
    """Numbers that are others after each change."""

    own: int
    """Of the subscription itself."""
    streams: int
    """Of what it is about: streams may have come or gone."""
    key: str
    """By what its slot is found: its id, or its tenant."""


class DurableSubscription(NamedTuple):
    """A subscription whose updates wait for it."""

    id: str
    tenant: int
    """Who subscribed."""
    streams: Mapping[StreamRef, StreamKey]
    """The streams it is about, as far as its tenant may read them; of a Service Object or a group
    they come and go."""
    callback: str
    document: bytes
    """Its JSON document."""
    created_ms: int
    cursor: StoredCursor
    failing_since_ms: int | None = None
    """Since when its receiver has taken nothing; None: it does."""
    source: Source = Source("")
    newest: int | None = None
    """The number of the newest stream of all when these were found; None: it is about one."""


class Claim(NamedTuple):
    """Which slots of subscriptions a process delivers to."""

    fence: str
    """Another one where what was held before was lost in between."""
    slots: frozenset[int]
    """All that are held."""
    surplus: frozenset[int]
    """Of these, which others are to have: to be released as soon as nothing is delivered there."""
    slots_in_all: int
    elsewhere: Mapping[int, str] = {}
    """Where other processes are reached, by the slots that they have; some may not say it."""

    def holder(self, key: str) -> str | None:
        """Return where the other process is reached that delivers; None: nobody knows.

        `key` is that of a subscription: its id, or its tenant.
        """
        return self.elsewhere.get(slot_of(key, self.slots_in_all))

    def has(self, key: str) -> bool:
        """Return whether this process delivers to what has this key, and goes on to."""
        slot = slot_of(key, self.slots_in_all)
        return slot in self.slots and slot not in self.surplus


class Sources(Protocol):
    """What subscriptions can be about. Every call may raise Unavailable."""

    def newest_stream(self) -> int:
        """Return a number: streams that come to be later have larger ones."""

    def about(self, tenant: int, source: Source, most: int) -> About:
        """Return what a tenant may read of a Service Object or a group: so many streams."""


class Cursors(Protocol):
    """The durable subscriptions of the platform. Every call may raise Unavailable."""

    def claim(self) -> Claim:
        """Take as many slots as this process may have, of those that nobody has.

        Each is one process's at a time, and those that claim have about as many. What a process
        has it keeps until it releases it, or its connection is gone.
        """

    def release(self, slots: Iterable[int]) -> None:
        """Let others have these."""

    def changes(self) -> Mapping[str, Change]:
        """Return the last change of every durable subscription."""

    def subscriptions(self, ids: Iterable[str]) -> list[DurableSubscription]:
        """Return these, as they are now; those that are gone are missing."""

    def about(self, tenant: int, source: Source, most: int) -> About:
        """Return what a tenant may read of a Service Object or a group: so many streams."""

    def store(self, cursors: Mapping[str, StoredCursor]) -> None:
        """Note how far each of these has got; those that are gone are ignored.

        Raises Unavailable, too, where this process has claimed, and has lost what it had.
        """


def write_cursor(cursor: StoredCursor) -> str:
    """Return a cursor as it is stored."""
    history = [[*stream, after] for stream, after in cursor.history.items()]
    stored: dict[str, object] = {
        "offsets": cursor.offsets,
        "history": history,
        "since": cursor.since,
    }
    if cursor.newest is not None:
        begun = sorted(cursor.begun)
        stored |= {"before": cursor.before, "newest": cursor.newest, "begun": begun}
    return orjson.dumps(stored, option=orjson.OPT_NON_STR_KEYS).decode()


def read_cursor(text: str) -> StoredCursor:
    """Return a stored cursor."""
    stored = orjson.loads(text)
    return StoredCursor(
        _offsets(stored["offsets"]),
        {StreamRef(name, stream): after for name, stream, after in stored["history"]},
        _offsets(stored["since"]),
        _offsets(stored.get("before", {})),
        stored.get("newest"),
        frozenset(stored.get("begun", ())),
    )


def _offsets(stored: Mapping[str, int]) -> dict[int, int]:
    return {int(partition): offset for partition, offset in stored.items()}
