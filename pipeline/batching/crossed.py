"""What has come over borders: for whom it is here, once each, and what is sent on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from pipeline.state.components import StillLoading
from pipeline.state.partition import Partition
from pipeline.work import LoggedUpdate, Marked, Root, Row
from servioticy.domain.borders import entered
from servioticy.domain.model import InputRef, ServiceObject, StreamRef
from servioticy.domain.records import BorderRecord, BorderUpdate, LogRecord
from servioticy.ports.partition_store import PutOff

Forward = Callable[[int, LogRecord], None]
"""Appends a record to another partition; it is there when this returns."""


@dataclass(slots=True)
class _Fed:
    """Whom of a tenant a record feeds."""

    readers: dict[str, set[StreamRef]] = field(default_factory=lambda: defaultdict(set))
    """The streams of each."""
    awaits: bool = False


class Crossed:
    """Looks at border records of one partition before anything is computed.

    A record grows one tree for each tenant that reads it. Its updates enter once for each
    Service Object that is fed with their stream, at a place of its own.
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
                yield from each.readers
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
        updates = self._new(record, row)
        fed, moved = self._fed(record, updates)
        for partition, readers in sorted(moved.items()):
            self._send_on(record, updates, partition, readers, row)
        begun = self._partition.progress
        trees = []
        for tenant, theirs in sorted(fed.items()):
            if row.offset == begun.offset and tenant < begun.tree:
                continue
            tree = self._tree(row, tenant, theirs, updates, at_once=at_once)
            if tree is not None:
                trees.append(tree)
        return trees

    def admit_late(
        self, record: BorderRecord, late: PutOff, *, at_once: bool
    ) -> LoggedUpdate | PutOff | None:
        """The tree of a record that had been put off: it names whom it is for."""
        fed = _Fed()
        for reader in record.readers:
            fed.readers[reader] = {each.origin for each in record.updates}
        row = Row(late.offset, late.record)
        return self._tree(row, late.tenant, fed, record.updates, at_once=at_once)

    def _new(self, record: BorderRecord, row: Row) -> list[BorderUpdate]:
        """Those of the updates that have not come before; notes that they have now."""
        if record.readers:  # sent on by another partition, once and in order
            return list(record.updates)
        channels, (source, *place) = self._partition.channels, record.source
        streams = dict.fromkeys(each.origin for each in record.updates)
        channels.look_up(streams)
        new = {each for each in streams if channels.takes(each, source, (place[0], place[1]))}
        self._marked += [
            Marked(row.offset, source, each, (place[0], place[1]))
            for each in streams
            if each in new
        ]
        return [each for each in record.updates if each.origin in new]

    def _fed(
        self, record: BorderRecord, updates: Sequence[BorderUpdate]
    ) -> tuple[Mapping[int, _Fed], Mapping[int, dict[str, None]]]:
        """Whom the updates feed here, by tenant; and who has moved, by partition."""
        fed: defaultdict[int, _Fed] = defaultdict(_Fed)
        moved: defaultdict[int, dict[str, None]] = defaultdict(dict)
        here = self._partition.number
        if record.readers:
            streams = {each.origin for each in updates}
            for reader in record.readers:
                owner = self._partition.store.owner(reader)
                if owner is not None and owner[1] != here:
                    moved[owner[1]][reader] = None
                elif owner is not None:
                    fed[owner[0]].readers[reader] |= streams
            return fed, moved
        for stream in dict.fromkeys(each.origin for each in updates):
            for reader, tenant, owner_partition, awaits in self._partition.channels.readers(
                stream
            ):
                if owner_partition != here:
                    moved[owner_partition][reader] = None
                else:
                    theirs = fed[tenant]
                    theirs.readers[reader].add(stream)
                    theirs.awaits |= awaits
        return fed, moved

    def _tree(
        self,
        row: Row,
        tenant: int,
        fed: _Fed,
        updates: Sequence[BorderUpdate],
        *,
        at_once: bool,
    ) -> LoggedUpdate | PutOff | None:
        """The tenant's tree; None where nobody reads it any more. It may have to wait."""
        known: list[ServiceObject] = []
        waits = fed.awaits
        for reader in fed.readers:
            found = self._partition.service_object(reader, at_once=at_once)
            if isinstance(found, ServiceObject):
                known.append(found)
            waits |= isinstance(found, StillLoading)
        roots = [] if waits else list(self._roots(known, fed, updates))
        if not waits and not roots:
            return None
        tree = LoggedUpdate(
            row.offset,
            tenant,
            roots or [Root(each.origin, each.timestamp, b"") for each in updates],
            row.value or b"",
            tree=tenant,
            # Nobody who is gone by now: its component could not be lent.
            readers=tuple(each.id for each in known) if roots else tuple(fed.readers),
        )
        return tree.as_put_off()._replace(held=fed.awaits) if waits else tree

    def _roots(
        self, readers: Sequence[ServiceObject], fed: _Fed, updates: Sequence[BorderUpdate]
    ) -> Iterator[Root]:
        """The updates as these Service Objects know them, in the provider's order."""
        graph = self._partition.graph
        inorder = sorted(readers, key=lambda each: each.sequence)
        for each in updates:
            for reader in inorder:
                ref = InputRef(each.origin, reader.sequence)
                if each.origin in fed.readers[reader.id] and graph.knows(ref):
                    path = entered(each.path, reader.sequence)
                    yield Root(ref, each.timestamp, bytes(each.update), path)

    def _send_on(
        self,
        record: BorderRecord,
        updates: Sequence[BorderUpdate],
        partition: int,
        readers: Mapping[str, None],
        row: Row,
    ) -> None:
        if updates:
            sent = msgspec.structs.replace(
                record,
                updates=tuple(updates),
                readers=tuple(readers),
                forwarded=(self._partition.number, row.offset),
            )
            self._forward(partition, sent)
