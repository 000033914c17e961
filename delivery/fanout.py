"""From what the pipeline emitted to every watcher of it, record by record, in order.

The loop is left to others in between: a batch of many updates, or one with many watchers, is
sent a slice at a time. A record that cannot be sent is dropped and logged, a watcher that
fails is closed; the others get everything.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from delivery.room import Room
from servioticy.domain.model import LastUpdate, StreamRef
from servioticy.domain.records import EmittedRecord

MAX_WAITING_BYTES = 32 * 1024 * 1024
MAX_WAITING_BATCHES = 100
SLICE_SECONDS = 0.005

log = logging.getLogger("servioticy.delivery")


class Listener(Protocol):
    """A watcher of a stream."""

    def offer(self, update: LastUpdate, version: int) -> None:
        """Send it this update, or keep it, or close it. Does not wait."""

    def fail(self) -> None:
        """Close it: what it was offered, it could not be sent."""


class FanOut:
    """Takes batches from any thread but the loop's, and offers them to listeners in the loop."""

    def __init__(
        self, listeners: Callable[[StreamRef], Sequence[Listener]], room: Room | None = None
    ) -> None:
        self._listeners = listeners
        self._room = room or Room(MAX_WAITING_BYTES, MAX_WAITING_BATCHES)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._batches: deque[tuple[list[EmittedRecord], int]] = deque()
        self._work: Iterator[None] | None = None
        self.read = 0
        """updates taken so far"""
        self.pushed = 0
        """updates offered to listeners so far"""

    def start(self) -> None:
        """Send from now on, in the running loop."""
        self._loop = asyncio.get_running_loop()

    def stop(self) -> None:
        """Take nothing any more; who waits for room goes on."""
        self._room.close()

    def publish(self, records: list[EmittedRecord]) -> None:
        """Send a batch; waits while too much is on its way.

        The reader then leaves the rest in the topic, which has room for it; we have not.
        """
        if self._loop is None:
            return
        self.read += len(records)
        size = sum(memoryview(record.update).nbytes for record in records)
        if not self._room.enter(size):
            return
        try:
            self._loop.call_soon_threadsafe(self._take, records, size)
        except RuntimeError:  # the loop ended in this moment, and with it every client
            self._room.leave(size)

    def _take(self, records: list[EmittedRecord], size: int) -> None:
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
        """Offer all that waits; stops after each listener, and can be left there."""
        while self._batches:
            records, size = self._batches.popleft()
            try:
                for record in records:
                    yield from self._offer(record)
            except Exception:  # whatever it was, what follows is for others
                log.exception("records_not_delivered", extra={"records": len(records)})
            finally:
                self._room.leave(size)

    def _offer(self, record: EmittedRecord) -> Iterator[None]:
        yield
        listeners = self._listeners(StreamRef(record.service_object, record.stream))
        update = _update(record) if listeners else None
        if update is None:
            return
        for listener in listeners:
            try:
                listener.offer(update, record.version)
                self.pushed += 1
            except Exception:
                log.exception("offer_failed")
                listener.fail()
            yield


def _update(record: EmittedRecord) -> LastUpdate | None:
    """What clients get, or None for what is no update: they could do nothing with it."""
    document = bytes(record.update)
    try:
        document.decode()  # a text frame that is not UTF-8 ends the client's connection
    except UnicodeDecodeError:
        readable = False
    else:
        readable = document.startswith(b"{")
    if readable:
        return LastUpdate(record.timestamp, document)
    # Names may hold what the log cannot write.
    stream = ascii(f"{record.service_object}/{record.stream}")
    log.warning("record_dropped", extra={"stream": stream, "bytes": len(document)})
    return None
