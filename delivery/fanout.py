"""What the pipeline emitted goes to every subscriber of it, record by record, in order.

The loop is left to others in between: a batch of many updates, or one with many subscribers, is
offered a slice at a time. Subscribers get them by tenants in turn: one whose updates go to very
many holds up none but its own. A record that cannot be sent is dropped and logged, a subscriber
that fails is closed; the others get everything.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from delivery.admission.resting import Resting
from delivery.byte_semaphore import ByteSemaphore
from delivery.cursors import Cursor
from delivery.endings import Ending
from delivery.lanes import Lanes, Offering
from servioticy.domain.letters import clipped
from servioticy.domain.model import LastUpdate, StreamRef
from servioticy.domain.records import EmittedRecord, Position, UnreadableRecord
from servioticy.ports.emitted import Emitted

MAX_WAITING_BYTES = 32 * 1024 * 1024
MAX_WAITING_BATCHES = 100
SLICE_SECONDS = 0.005
GROUPED_AT_ONCE = 256
"""Subscribers of one stream that are told apart by tenant before others go on."""

log = logging.getLogger("servioticy.delivery")


class LiveUpdate(NamedTuple):
    """An update that was emitted just now, or was read from the topic later."""

    stream: StreamRef
    update: LastUpdate
    version: int
    """The version of the document that made it."""
    position: Position
    """Where it stands in the topic: a subscriber that remembers it can go on from there."""
    origin: int | None
    """The offset in the log of what it follows from; None where it was emitted again."""
    trace: str = ""
    """The trace context of that; empty: none."""


class Subscriber(Protocol):
    """Somebody who wants the updates of a stream. All methods belong to the loop's thread."""

    @property
    def tenant(self) -> int:
        """Return whose it is."""

    @property
    def takes_later(self) -> bool:
        """Whether it keeps what is offered until somebody takes it: it counts as given then."""

    def offer(self, live: LiveUpdate) -> None:
        """Send it this update, or keep it, or close it. Does not wait."""

    def close(self, ending: Ending) -> None:
        """End the subscription, and let the subscriber know why. Does not wait."""


class Note(Protocol):
    """Counts what was given."""

    def __call__(self, tenant: int, provider: int, stream: StreamRef, times: int = 1) -> None:
        """Note that so many updates of a provider's stream went to a subscriber of a tenant."""


def unheard(tenant: int, provider: int, stream: StreamRef, times: int = 1) -> None:
    """Nobody asks what was given."""


class _Begun:
    """A record that is being offered."""

    __slots__ = ("left", "position", "size")

    def __init__(self, position: Position, size: int | None) -> None:
        """`size` is that of its batch, where it is the last one of it."""
        self.position = position
        self.size = size
        self.left = 0
        """Tenants whose subscribers have not all been offered it."""

    def finish(self) -> None:
        """Note that those of one tenant have."""
        self.left -= 1


class FanOut:
    """Takes batches from any thread but the loop's, and offers them to subscribers in the loop."""

    def __init__(
        self,
        subscribers_of: Callable[[StreamRef], Sequence[Subscriber]],
        semaphore: ByteSemaphore | None = None,
        resting: Resting | None = None,
        note: Note = unheard,
    ) -> None:
        """`resting` are the tenants to which nothing is given; None: there are none. `note` is
        told of all that is given, also by others than the fan-out.
        """
        self.resting = resting or Resting()
        self.note = note
        self._subscribers_of = subscribers_of
        self._semaphore = semaphore or ByteSemaphore(MAX_WAITING_BYTES, MAX_WAITING_BATCHES)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._batches: deque[tuple[Sequence[Emitted], int]] = deque()
        self._work: Iterator[None] | None = None
        self._lanes: Lanes[LiveUpdate, Subscriber] = Lanes()
        self._begun: deque[_Begun] = deque()
        """What has been begun to offer, and is not offered to all yet, or follows such."""
        self.log = ""
        """What the ids of events name the topic by."""
        self.records_read = 0
        """Records that were published so far."""
        self.updates_offered = 0
        """Updates that were offered so far, once for each subscriber."""
        self.cursor = Cursor()
        """Stands behind the last record that was offered to all its subscribers."""
        self.begun = Cursor()
        """Stands behind the last record that it has begun to offer: who subscribes now may not
        be offered that one any more."""

    def begin_at(self, offsets: Mapping[int, int]) -> None:
        """Note by partition the offset of the first record that is published.

        Where one has come already, that counts.
        """
        for partition, offset in offsets.items():
            self.cursor.begin_at(partition, offset)
            self.begun.begin_at(partition, offset)

    def start(self) -> None:
        """Offer from now on, in the running loop."""
        self._loop = asyncio.get_running_loop()

    def stop(self) -> None:
        """Take no more batches; a thread that waits in `publish` goes on."""
        self._semaphore.close()

    def publish(self, records: Sequence[Emitted]) -> None:
        """Offer a batch; waits while too much is on its way.

        The reader then leaves the rest in the topic, which has room for it; we have not.
        """
        if self._loop is None:
            return
        self.records_read += len(records)
        size = sum(each.size for each in records)
        if not self._semaphore.acquire(size):
            return
        try:
            self._loop.call_soon_threadsafe(self._take, records, size)
        except RuntimeError:  # the loop ended in this moment, and with it every client
            self._semaphore.release(size)

    def _take(self, records: Sequence[Emitted], size: int) -> None:
        self._batches.append((records, size))
        if self._work is None:
            self._work = self._offers()
            self._go_on()

    def _go_on(self) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + SLICE_SECONDS
        for _ in self._work or ():
            if loop.time() >= until:
                loop.call_soon(self._go_on)
                return
        self._work = None

    def _offers(self) -> Iterator[None]:
        """Offer all that waits; pauses after each subscriber, and can be left there."""
        while self._batches or self._lanes:
            if self._batches:
                records, size = self._batches.popleft()
                last = len(records) - 1
                for number, record in enumerate(records):
                    self.begun.advance(record.position)
                    begun = _Begun(record.position, size if number == last else None)
                    self._begun.append(begun)
                    yield from self._begin(record, begun)
                    yield from self._turn()
                if not records:
                    self._semaphore.release(size)
            yield from self._turn()

    def _begin(self, emitted: Emitted, begun: _Begun) -> Iterator[None]:
        """Put a record into the lanes of all who subscribe to it now."""
        yield
        live = None
        try:
            subscribers = self._subscribers_of(emitted.stream)
            if subscribers:  # else nobody needs to read it
                record = emitted.read()
                live = live_update(record, begun.position)
        except UnreadableRecord as error:
            place = {"partition": begun.position.partition, "offset": begun.position.offset}
            log.warning("emitted_unreadable", extra={**place, "why": clipped(str(error))})
        except Exception:  # whatever it was, what follows is for others
            log.exception("record_not_delivered")
        if live is not None:
            groups: dict[int, deque[Subscriber]] = {}
            for number, each in enumerate(subscribers):
                groups.setdefault(each.tenant, deque()).append(each)
                if number % GROUPED_AT_ONCE == GROUPED_AT_ONCE - 1:
                    yield
            begun.left = len(groups)
            for tenant, members in groups.items():
                self._lanes.add(tenant, Offering(live, record.tenant, members, begun.finish))
        self._finish()

    def _turn(self) -> Iterator[None]:
        """Let each tenant have a few offers."""
        for offering, subscriber in self._lanes.turn():
            try:
                if offering.is_too_much:
                    subscriber.close(Ending.READS_TOO_SLOWLY)
                else:
                    self._give(subscriber, offering.live, offering.provider)
            except Exception:
                log.exception("offer_failed")
                subscriber.close(Ending.FAILED)
            yield
        self._finish()

    def _finish(self) -> None:
        """Stand behind all that was offered to all, as far as nothing is left out."""
        while self._begun and not self._begun[0].left:
            begun = self._begun.popleft()
            self.cursor.advance(begun.position)
            if begun.size is not None:
                self._semaphore.release(begun.size)

    def _give(self, subscriber: Subscriber, live: LiveUpdate, provider: int) -> None:
        """Offer it, unless its tenant may have nothing now: whoever is connected is told so."""
        if not subscriber.takes_later:
            if self.resting.has(subscriber.tenant):
                subscriber.close(Ending.QUOTA_USED_UP)
                return
            self.note(subscriber.tenant, provider, live.stream)
        subscriber.offer(live)
        self.updates_offered += 1


def live_update(record: EmittedRecord, position: Position) -> LiveUpdate | None:
    """Return what clients get, or None for what is no update: they could do nothing with it."""
    document = bytes(record.update)
    try:
        document.decode()  # a text frame that is not UTF-8 ends the client's connection
    except UnicodeDecodeError:
        readable = False
    else:
        readable = document.startswith(b"{")
    stream = StreamRef(record.service_object, record.stream)
    if readable:
        update = LastUpdate(record.timestamp, document)
        origin = record.place[0] if record.place else None
        return LiveUpdate(stream, update, record.version, position, origin, record.trace)
    # Names may hold what the log cannot write.
    log.warning("record_dropped", extra={"stream": ascii(str(stream)), "bytes": len(document)})
    return None
