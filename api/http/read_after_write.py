"""Reads see writes: a read waits until what was accepted before it is stored.

As raw and derived updates are stored in one transaction, such a read sees what was
computed from the caller's last write, too.

A wait holds no thread. Behind the edge a route says what it waits for and is called again
when that is stored; one waiter asks for all reads of the process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from flask import has_request_context, request

from servioticy.errors import ServioticyError, Unavailable
from servioticy.ports.addresses import Address
from servioticy.ports.history import History
from servioticy.ports.log import Log

HEADER = "X-Servioticy-Behind"
UNKNOWN = "unknown"
LOG_LOST = "log-lost"
FIRST_PAUSE_SECONDS = 0.003
MAX_PAUSE_SECONDS = 0.025
GROWTH = 1.25

WAITS_FOR = "servioticy.waits_for"
"""In the environment of a request: where a route names what it waits for."""
WAITED = "servioticy.waited"
"""In the environment of a request that has waited: headers for the answer."""
CALLER = "servioticy.caller"
"""In the environment of a request: the tenant who asks, as soon as that is known."""


class Awaited(NamedTuple):
    """What a read waits for: all that is in the partition now, of this tenant's streams too
    where that is put off."""

    partition: int
    tenant: int


class NotYet(ServioticyError):
    """What the read has to show is not stored yet."""


class WaitingRead:
    """One read that waits; told the headers for its answer."""

    __slots__ = ("deadline", "done", "end", "partition", "tenant")

    def __init__(
        self, awaited: Awaited, deadline: float, done: Callable[[dict[str, str]], None]
    ) -> None:
        self.partition, self.tenant = awaited
        self.deadline = deadline
        self.done = done
        self.end: int | None = None
        """where the log ended after the read had come; None: not asked yet"""


class Progress:
    """Asks once for all reads of a partition: where its log ends, what is stored."""

    def __init__(self, history: History, log: Log) -> None:
        self._history = history
        self._log = log

    def look(self, reads: list[WaitingRead], now: float) -> list[WaitingRead]:
        """Tell those that need not or must not wait any more; the others are returned."""
        left: list[WaitingRead] = []
        for partition in dict.fromkeys(each.partition for each in reads):
            left += self._look(
                partition, [each for each in reads if each.partition == partition], now
            )
        return left

    def _look(self, partition: int, reads: list[WaitingRead], now: float) -> list[WaitingRead]:
        try:
            new = [each for each in reads if each.end is None]
            if new:
                end = self._log.end_offset(partition)
                for each in new:
                    each.end = end
            tenants = {each.tenant for each in reads}
            stored, waiting = self._history.stored(partition, tenants)
            # Ahead of the log as it was asked for: it has grown since, or has been lost.
            ahead = any(stored > (each.end or 0) for each in reads)
            lost = ahead and stored > self._log.end_offset(partition)
        except Unavailable:
            for each in reads:
                each.done({HEADER: UNKNOWN})
            return []
        left = []
        for each in reads:
            behind = (each.end or 0) - min(stored, waiting.get(each.tenant, stored))
            if lost:
                each.done({HEADER: LOG_LOST})
            elif behind <= 0:
                each.done({})
            elif each.deadline <= now:
                each.done({HEADER: str(behind)})
            else:
                left.append(each)
        return left


class ReadAfterWrite:
    """Waits for the pipeline, but never longer than a reader would."""

    def __init__(
        self,
        history: History,
        log: Log,
        seconds: float,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._progress = Progress(history, log)
        self._seconds = seconds
        self._monotonic = monotonic
        self._sleep = sleep

    def wait(self, address: Address) -> dict[str, str]:
        """Wait until all that is in its partition now is stored; headers for the answer.

        No header: the read sees everything. Otherwise the header tells how many records
        of the log are not stored yet, that the broker does not say where the log ends, or
        that the log ends before what is stored of it: some of what was accepted is lost.
        Behind the edge it raises NotYet instead of waiting.
        """
        return self.wait_for_all([address])

    def wait_for_all(self, addresses: Iterable[Address]) -> dict[str, str]:
        """Wait as `wait` does, for each of several addresses.

        The header then is that of one of them.
        """
        awaited = dict.fromkeys(Awaited(each.partition, each.tenant) for each in addresses)
        if has_request_context():
            waited: dict[str, str] | None = request.environ.get(WAITED)
            if waited is not None:
                return waited
            if awaited and WAITS_FOR in request.environ:
                request.environ[WAITS_FOR].extend(awaited)
                raise NotYet
        return self._here(awaited)

    def hold(self, addresses: Iterable[Address]) -> dict[str, str]:
        """Wait as `wait_for_all` does, in the thread that calls, behind the edge too."""
        return self._here(
            dict.fromkeys(Awaited(each.partition, each.tenant) for each in addresses)
        )

    def _here(self, awaited: Iterable[Awaited]) -> dict[str, str]:
        headers: dict[str, str] = {}
        deadline = self._monotonic() + self._seconds
        reads = [WaitingRead(each, deadline, headers.update) for each in awaited]
        pause = FIRST_PAUSE_SECONDS
        while reads := self._progress.look(reads, self._monotonic()):
            self._sleep(max(0.0, min(pause, deadline - self._monotonic())))
            pause = min(pause * GROWTH, MAX_PAUSE_SECONDS)
        return headers
