"""Who is fed here with streams of other tenants, and how far each has been taken in."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence

from servioticy.domain.model import StreamRef
from servioticy.ports.borders import Borders, FedReader

MAX_CHANNELS = 20_000
MAX_READERS = 200_000
"""Of all channels that are remembered: some 300 bytes each."""


class _Channel:
    """One stream's."""

    __slots__ = ("marks", "readers")

    def __init__(self, marks: dict[int, tuple[int, int]], readers: Sequence[FedReader]) -> None:
        self.marks = marks
        self.readers = readers


class Channels:
    """The channels of one partition, looked up when something comes."""

    def __init__(self, partition: int, store: Borders) -> None:
        self._partition = partition
        self._store = store
        self._known: OrderedDict[StreamRef, _Channel] = OrderedDict()
        self._readers = 0

    def readers(self, stream: StreamRef) -> Sequence[FedReader]:
        """Who is fed with the stream, in order of creation; `look_up` has been asked for it."""
        return self._known[stream].readers

    def takes(self, stream: StreamRef, source: int, place: tuple[int, int]) -> bool:
        """Whether what comes from there has not come yet; notes that it has now."""
        marks = self._known[stream].marks
        # A place may be below zero: one in a log that is gone.
        if source in marks and place <= marks[source]:
            return False
        marks[source] = place
        return True

    def look_up(self, streams: Iterable[StreamRef]) -> None:
        """Ask for those that are not known, all at once."""
        asked = dict.fromkeys(streams)
        unknown = [each for each in asked if each not in self._known]
        for each in asked:
            if each in self._known:
                self._known.move_to_end(each)
        if not unknown:
            return
        found = self._store.channels(self._partition, unknown)
        for each in unknown:
            channel = found.get(each)
            marks = dict(channel.marks) if channel else {}
            readers = channel.readers if channel else ()
            self._known[each] = _Channel(marks, readers)
            self._readers += len(readers)

    def trim(self) -> None:
        """Between two batches: forget what there is no room for, the least recently used first.

        What was noted before is stored.
        """
        while len(self._known) > MAX_CHANNELS or (
            self._readers > MAX_READERS and len(self._known) > 1
        ):
            _stream, gone = self._known.popitem(last=False)
            self._readers -= len(gone.readers)

    def forget(self, streams: Iterable[StreamRef]) -> None:
        """Look these up again: who is fed has changed. What was noted before is stored."""
        for each in streams:
            gone = self._known.pop(each, None)
            if gone is not None:
                self._readers -= len(gone.readers)

    def forget_all(self) -> None:
        """Look up all again."""
        self._known.clear()
        self._readers = 0
