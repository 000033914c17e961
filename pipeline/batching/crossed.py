"""What has come over borders: for whom it is here, once each, and what is sent on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from pipeline.state.components import StillLoading
from pipeline.state.partition import Partition
from pipeline.work import LoggedUpdate, Marked, Root, Row
from servioticy.domain.borders import entered
from servioticy.domain.model import InputRef, ServiceObject
from servioticy.domain.records import BorderRecord, LogRecord
from servioticy.ports.put_off import PutOff

Forward = Callable[[int, BorderRecord], None]
"""Appends a record to another partition; it is there when this returns."""

Readers = dict[str, list[int]]
"""Service Objects, and of each the numbers of updates in the record."""


class _Trees(NamedTuple):
    """Whom a record feeds."""

    here: defaultdict[int, Readers]
    """By tree."""
    elsewhere: defaultdict[int, Readers]
    """Who has moved, by partition."""


class Crossed:
    """Looks at border records of one partition before anything is computed.

    A record grows one tree for each tenant that reads it. Its updates enter once for each Service
    Object that is fed with their stream, at a place of its own. Who is fed is asked where the
    tree has its turn: before that its tenant may have other records waiting by which it reads
    something else.
    """

    def __init__(self, partition: Partition, forward: Forward) -> None:
        self._partition = partition
        self._forward = forward
        self._marked: list[Marked] = []

    def look_up(self, records: Sequence[LogRecord | None]) -> None:
        """Ask who is fed with the streams of these, all at once."""
        found = [each for each in records if isinstance(each, BorderRecord)]
        self._partition.channels.look_up(u.origin for each in found for u in each.updates)

    def readers(self, records: Sequence[LogRecord | None]) -> Iterator[str]:
        """Yield the Service Objects that may have to be loaded for these."""
        for each in records:
            if isinstance(each, BorderRecord):
                yield from (reader.service_object for reader in each.readers)
                for stream in {} if each.readers else {u.origin for u in each.updates}:
                    for reader in self._partition.channels.readers(stream):
                        if reader.owner_partition == self._partition.number:
                            yield reader.reader

    def pop_marked(self, before: int) -> list[Marked]:
        """What has come since this was last asked, in records before this offset.

        It is noted with the work that it is part of, and with the last tree of its record: else
        the others would not grow after a crash.
        """
        marked = [each for each in self._marked if each.offset < before]
        self._marked = [each for each in self._marked if each.offset >= before]
        return marked

    def admit(
        self, record: BorderRecord, row: Row, *, at_once: bool = False
    ) -> list[LoggedUpdate | PutOff]:
        """The trees that grow here of what has not come before, in order of tenant.

        Without those of the record that are stored already. What is for a Service Object that
        has moved is sent on, but for that.
        """
        trees = _Trees(defaultdict(dict), defaultdict(dict))
        if record.readers:  # sent on by another partition, once and in order
            self._sort_named(record, trees)
        else:
            self._sort(record, self._new(record, row), trees)
        for partition, readers in sorted(trees.elsewhere.items()):
            sent = record.only_for(readers)
            place = self._partition.number, row.offset
            self._forward(partition, msgspec.structs.replace(sent, forwarded=place))
        begun = self._partition.progress
        found: list[LoggedUpdate | PutOff] = []
        for tenant, readers in sorted(trees.here.items()):
            if row.offset == begun.offset and tenant < begun.tree:
                continue
            if not record.readers and tenant in self._partition.awaiting:
                found.append(self._later(record, row, tenant, readers)._replace(held=True))
                continue
            grown = self._tree(record, row, tenant, readers, at_once=at_once)
            if grown is not None:
                found.append(grown)
        return found

    def admit_late(
        self, record: BorderRecord, late: PutOff, *, at_once: bool
    ) -> LoggedUpdate | PutOff | None:
        """The tree of a record that had been put off: it names whom it may be for.

        It is held where its tenant has begun to await what another partition sends on.
        """
        named = {each.service_object: list(each.updates) for each in record.readers}
        if record.forwarded is not None:
            named = self._still_for(record, named)
            return self._late_tree(record, late, named, at_once=at_once)
        if late.tenant in self._partition.awaiting:
            return late._replace(held=True)
        channels = self._partition.channels
        channels.look_up(each.origin for each in record.updates)
        fed: Readers = {}
        for number, each in enumerate(record.updates):
            for reader in channels.readers(each.origin):
                if number in named.get(reader.reader, ()):
                    fed.setdefault(reader.reader, []).append(number)
        return self._late_tree(record, late, fed, at_once=at_once)

    def _late_tree(
        self, record: BorderRecord, late: PutOff, readers: Readers, *, at_once: bool
    ) -> LoggedUpdate | PutOff | None:
        row = Row(late.offset, late.record)
        return self._tree(record, row, late.tree, readers, at_once=at_once, late=True)

    def _new(self, record: BorderRecord, row: Row) -> list[int]:
        """Numbers of those of the updates that have not come before; notes that they have now."""
        channels, (source, *place) = self._partition.channels, record.source
        streams = dict.fromkeys(each.origin for each in record.updates)
        channels.look_up(streams)
        at = place[0], place[1]
        new = {each for each in streams if channels.takes(each, source, at)}
        self._marked += [
            Marked(row.offset, source, each, at)
            for each in streams
            if each in new and (channels.readers(each) or self._partition.beginning(each))
        ]
        return [number for number, each in enumerate(record.updates) if each.origin in new]

    def _sort(self, record: BorderRecord, numbers: Sequence[int], trees: _Trees) -> None:
        """Find out whom these updates feed here, or will, and who has moved."""
        here, channels = self._partition.number, self._partition.channels
        for number in numbers:
            for reader, tenant, owner in channels.readers(record.updates[number].origin):
                theirs = trees.here[tenant] if owner == here else trees.elsewhere[owner]
                theirs.setdefault(reader, []).append(number)
            for tenant, reader in self._partition.beginning(record.updates[number].origin):
                numbers_of = trees.here[tenant].setdefault(reader, [])
                if number not in numbers_of:
                    numbers_of.append(number)

    def _sort_named(self, record: BorderRecord, trees: _Trees) -> None:
        """The same of a record that says whom it is for."""
        owners = self._partition.store.owners([each.service_object for each in record.readers])
        named = {each.service_object: list(each.updates) for each in record.readers}
        for reader, numbers in self._still_for(record, named).items():
            tenant, owner = owners.get(reader, (0, None))
            if owner is not None:
                is_here = owner == self._partition.number
                theirs = trees.here[tenant] if is_here else trees.elsewhere[owner]
                theirs[reader] = numbers

    def _still_for(self, record: BorderRecord, named: Readers) -> Readers:
        """Whom it is for of those it names: not who has named its stream anew, and begun since."""
        streams = list(dict.fromkeys(each.origin for each in record.updates))
        begun = self._partition.store.begun_behind(list(named), streams, record.source[:2])
        found: Readers = {}
        for reader, numbers in named.items():
            left = [n for n in numbers if (reader, record.updates[n].origin) not in begun]
            if left:
                found[reader] = left
        return found

    def _tree(
        self,
        record: BorderRecord,
        row: Row,
        tenant: int,
        readers: Readers,
        *,
        at_once: bool,
        late: bool = False,
    ) -> LoggedUpdate | PutOff | None:
        """The tree; None where nobody reads it any more. It may have to wait.

        Who waits may have a record waiting by which it reads something else: whom this is for is
        known where its turn is.
        """
        waits = tenant in self._partition.waiting and not late
        found = {each: self._partition.service_object(each, at_once=at_once) for each in readers}
        if any(isinstance(each, StillLoading) for each in found.values()):
            return self._later(record, row, tenant, readers)
        known = [each for each in found.values() if isinstance(each, ServiceObject)]
        roots = list(self._roots(record, known, readers))
        # Nobody who is gone by now: its component could not be lent.
        theirs = readers if waits else {each.id: readers[each.id] for each in known}
        value = row.value or b""
        grown = LoggedUpdate(
            row.offset, tenant, roots, value, tenant, theirs, at=record.at, trace=record.trace
        )
        if roots:
            return grown
        return grown.as_put_off() if waits else None

    @staticmethod
    def _later(record: BorderRecord, row: Row, tenant: int, readers: Readers) -> PutOff:
        """The tree as a record to compute later."""
        some = [Root(each.origin, each.timestamp, b"") for each in record.updates]
        return LoggedUpdate(
            row.offset, tenant, some, row.value or b"", tenant, readers
        ).as_put_off()

    def _roots(
        self, record: BorderRecord, known: Sequence[ServiceObject], readers: Readers
    ) -> Iterator[Root]:
        """The updates as these Service Objects know them, in the provider's order."""
        graph = self._partition.graph
        inorder = sorted(known, key=lambda each: each.sequence)
        fed = {each.id: frozenset(readers[each.id]) for each in known}
        for number, each in enumerate(record.updates):
            for reader in inorder:
                ref = InputRef(each.origin, reader.sequence)
                if number in fed[reader.id] and graph.knows(ref):
                    path = entered(each.path, reader.sequence)
                    yield Root(ref, each.timestamp, bytes(each.update), path)
