"""Whom streams of other tenants will feed: begins that have been put off.

What comes behind them is theirs already: it waits in its turn, behind the begin.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from servioticy.domain.model import StreamRef
from servioticy.domain.records import BeginRecord, UnreadableRecord, read_record


class Beginning:
    """The begins that wait in one partition."""

    def __init__(self, records: Iterable[bytes] = ()) -> None:
        """`records` are those that wait, as they stand in the log."""
        self._readers: dict[StreamRef, dict[tuple[int, str], None]] = {}
        for each in records:
            self.add(each)

    def add(self, value: bytes) -> None:
        """Note one; what is no begin is passed over."""
        try:
            record = read_record(value)
        except UnreadableRecord:
            return
        if isinstance(record, BeginRecord):
            for stream in record.streams:
                readers = self._readers.setdefault(stream.ref, {})
                readers.update(dict.fromkeys((record.tenant, each) for each in record.readers))

    def of(self, stream: StreamRef) -> Iterable[tuple[int, str]]:
        """Return tenant and Service Object of each that the stream will feed."""
        return tuple(self._readers.get(stream, ()))

    def keep(self, waiting: Container[int]) -> None:
        """Forget those of tenants that have nothing waiting any more."""
        if not self._readers:
            return
        for stream, readers in list(self._readers.items()):
            for each in [each for each in readers if each[0] not in waiting]:
                del readers[each]
            if not readers:
                del self._readers[stream]
