"""Reads see writes: a read waits until what was accepted before it is stored.

As raw and derived updates are stored in one transaction, such a read sees what was
computed from the caller's last write, too.

A wait holds no thread. Behind the edge a route says what it waits for and is called again
when that is stored; one waiter asks for all reads of the process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from flask import has_request_context, request

from ingest.progress import Awaited, Ended, How, Progress
from servioticy.errors import ServioticyError
from servioticy.ports.addresses import Address
from servioticy.ports.history import History
from servioticy.ports.log import Log

HEADER = "X-Servioticy-Behind"
UNKNOWN = "unknown"
LOG_LOST = "log-lost"
_HEADERS: dict[How, dict[str, str]] = {
    How.STORED: {},
    How.UNKNOWN: {HEADER: UNKNOWN},
    How.LOST: {HEADER: LOG_LOST},
}

WAITS_FOR = "servioticy.waits_for"
"""In the environment of a request: where a route names what it waits for."""
WAITED = "servioticy.waited"
"""In the environment of a request that has waited: headers for the answer."""
CALLER = "servioticy.caller"
"""In the environment of a request: the tenant who asks, as soon as that is known."""


class NotYet(ServioticyError):
    """What the read has to show is not stored yet."""


def headers_of(ended: Ended) -> dict[str, str]:
    """Return what the answer tells of how the wait for it has ended; nothing: it sees all."""
    if ended.how is How.BEHIND:
        return {HEADER: str(ended.behind)}
    return _HEADERS[ended.how]


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

    def _here(self, awaited: Iterable[Awaited]) -> dict[str, str]:
        headers: dict[str, str] = {}
        for each in self._progress.hold(awaited, self._seconds, self._monotonic, self._sleep):
            headers.update(headers_of(each))
        return headers
