"""What a provider tells those who read its streams from outside: `begin` and `end`.

Each goes to the reader's partition by the way that data goes, so that all have one order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count

import msgspec

from servioticy.domain.model import LastUpdate, StreamRef
from servioticy.domain.records import BeginRecord, EndRecord, LastOutside, Source, write
from servioticy.ports.borders import Crossing, OutsideReader

MAX_TOLD_READERS = 5_000
"""That one record names: a quarter of a megabyte."""

MAX_TOLD_BYTES = 900_000
"""Of last updates in one record, where it is more than one."""

READERS_OF_LARGE = 100
"""That one record names where its only last update is larger: few enough to fit in any case."""

Lasts = Callable[[Iterable[StreamRef]], Mapping[StreamRef, LastUpdate | None]]
"""Looks up last updates of streams as they stand."""


class Tidings:
    """What one control record tells others, in the order in which it is sent."""

    def __init__(self, partition: int, provider: int, offset: int, tree: int = 0) -> None:
        """`offset` is that of the control record."""
        self._source = Source(partition, offset)
        self._provider = provider
        self._tree = tree
        self._numbers = count()
        self.crossings: list[Crossing] = []

    def begin(
        self, readers: Sequence[OutsideReader], lasts: Lasts, moved_from: int | None = None
    ) -> None:
        """Feed these from here on; with `moved_from` what they know moves along with them."""
        changes = {each.reader: each.change for each in readers}
        for (partition, tenant), streams in _together(readers).items():
            for names, refs in streams:
                known = {} if moved_from is not None else lasts(refs)
                for some, size in _parts(refs, known):
                    most = MAX_TOLD_READERS if size <= MAX_TOLD_BYTES else READERS_OF_LARGE
                    for part in _readers(names, most):
                        record = BeginRecord(
                            self._source,
                            self._provider,
                            tenant,
                            part,
                            tuple(some),
                            moved_from,
                            changes=tuple(changes[each] for each in part),
                        )
                        self._add(partition, write(record))

    def end(self, readers: Sequence[OutsideReader], moved_to: int | None = None) -> None:
        """Feed these no more where they are, as they may not read it or have moved."""
        for (partition, tenant), streams in _together(readers).items():
            for names, refs in streams:
                for part in _readers(names, MAX_TOLD_READERS):
                    record = EndRecord(
                        self._source,
                        self._provider,
                        tenant,
                        part,
                        tuple((each.service_object, each.stream) for each in refs),
                        moved_to,
                    )
                    self._add(partition, write(record))

    def _add(self, partition: int, record: bytes) -> None:
        offset = self._source.offset
        self.crossings.append(
            Crossing(offset, self._tree, next(self._numbers), (partition,), record)
        )


def _together(
    readers: Sequence[OutsideReader],
) -> Mapping[tuple[int, int], list[tuple[list[str], list[StreamRef]]]]:
    """By partition and tenant: readers, and the streams that all of them read."""
    by_reader: defaultdict[tuple[int, int], defaultdict[str, list[StreamRef]]]
    by_reader = defaultdict(lambda: defaultdict(list))
    for each in readers:
        by_reader[each.partition, each.tenant][each.reader].append(each.source)
    found: dict[tuple[int, int], list[tuple[list[str], list[StreamRef]]]] = {}
    for where, theirs in by_reader.items():
        alike: dict[tuple[StreamRef, ...], list[str]] = {}
        for reader, refs in theirs.items():
            alike.setdefault(tuple(refs), []).append(reader)
        found[where] = [(names, list(refs)) for refs, names in alike.items()]
    return found


def _readers(names: Sequence[str], most: int) -> Iterator[tuple[str, ...]]:
    for first in range(0, len(names), most):
        yield tuple(names[first : first + most])


def _parts(
    refs: Sequence[StreamRef], lasts: Mapping[StreamRef, LastUpdate | None]
) -> Iterator[tuple[list[LastOutside], int]]:
    """Yield the streams with their last updates, as many as fit in a record; with their bytes."""
    part: list[LastOutside] = []
    size = 0
    for ref in refs:
        last = lasts.get(ref)
        known = (last.timestamp, msgspec.Raw(last.document)) if last else ()
        told = LastOutside(*ref, *known)
        own = len(msgspec.json.encode(told)) + 1
        if part and size + own > MAX_TOLD_BYTES:
            yield part, size
            part, size = [], 0
        part.append(told)
        size += own
    yield part, size
