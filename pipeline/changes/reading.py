"""Control records by which tenants read each other's streams.

`Readers` is the provider's side: who reads, may it, and what it is told. `Inputs` is the
reader's: what feeds a Service Object from which place on, and what it knows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import partial

import msgspec

from pipeline.changes import revoking
from pipeline.changes.change import Change
from pipeline.changes.outside import Tidings
from pipeline.state.partition import Partition
from servioticy.domain.access import Granted, granted_of
from servioticy.domain.model import LastUpdate, ServiceObject, StreamRef
from servioticy.domain.records import BeginRecord, EndRecord, LogRecord, ReadingRecord
from servioticy.ports.borders import OutsideReader
from servioticy.ports.effects import BeginInputs, EndInputs, Read
from servioticy.ports.output import Output


class Readers:
    """Who of other tenants reads streams of one partition."""

    def __init__(self, partition: Partition, output: Output) -> None:
        self._partition = partition
        self._output = output

    def read(self, record: ReadingRecord, offset: int) -> Change:
        """A Service Object of another tenant reads these streams from here on.

        Of those that are computed elsewhere by now that partition is told.
        """
        number, store = self._partition.number, self._partition.store
        here, elsewhere = self._by_owner(record)
        for partition, sources in elsewhere.items():
            self._output.send_to_log(partition, msgspec.structs.replace(record, sources=sources))
        if elsewhere:
            self._output.flush()
        before = {
            each.source: each for each in store.reading(record.reader, record.provider, number)
        }
        if any(each.change > record.change for each in before.values()):
            return Change(None, _nothing)
        rows = [self._reader(record, StreamRef(*each)) for each in here]
        tidings = Tidings(number, record.provider, offset)
        begin = []
        moved: defaultdict[int, list[OutsideReader]] = defaultdict(list)
        for each in rows:
            had = before.get(each.source)
            if each.is_open and had and had.is_open and had.partition != each.partition:
                moved[had.partition].append(each)
            elif each.is_open:
                begin.append(each)
        tidings.end([each for each in rows if not each.is_open])
        tidings.begin(begin, self._lasts)
        for old, some in moved.items():
            tidings.begin(some, self._lasts, moved_from=old)
            tidings.end([each._replace(partition=old) for each in some], record.to_partition)
        effect = Read(record.reader, record.provider, record.change, tuple(rows), record.ends)
        gone = set(before) - {each.source for each in rows} if record.ends else set()
        left = {ref for some in moved.values() for ref in (each.source for each in some)} | gone
        opened = [each for each in rows if each.is_open]
        forget = partial(self._note, opened, {ref.service_object for ref in left})
        return Change(effect, forget, (), tidings.crossings)

    def changed(
        self, change: Change, before: ServiceObject, after: Granted, offset: int
    ) -> Change:
        """The same change, with what it means to readers of a Service Object."""
        opened: list[OutsideReader] = []
        closed: list[OutsideReader] = []
        for each in self._partition.store.outside_readers(before.id):
            is_open = each.source.stream in before.stream_ids and after.may_derive(
                each.tenant, each.source.stream
            )
            if is_open != each.is_open:
                (opened if is_open else closed).append(each._replace(is_open=is_open))
        if not opened and not closed:
            return change
        tidings = Tidings(self._partition.number, before.tenant, offset)
        tidings.end(closed)
        tidings.begin(opened, self._lasts)
        return change._replace(crossings=tidings.crossings, outside=(*opened, *closed))

    def erased(self, change: Change, before: ServiceObject, stream: str, offset: int) -> Change:
        """The same change, with what the erasure of a stream means to its readers."""
        readers = [
            each
            for each in self._partition.store.outside_readers(before.id)
            if each.is_open and each.source.stream == stream
        ]
        tidings = Tidings(self._partition.number, before.tenant, offset)
        tidings.begin(readers, lambda _refs: {})
        return change._replace(crossings=tidings.crossings)

    def _by_owner(
        self, record: ReadingRecord
    ) -> tuple[list[tuple[str, str]], Mapping[int, tuple[tuple[str, str], ...]]]:
        """The streams that are computed here or nowhere, and the others by partition."""
        owners = {
            each: self._partition.owner_of(each)
            for each in dict.fromkeys(id_ for id_, _ in record.sources)
        }
        here, elsewhere = [], defaultdict(list)
        for each in record.sources:
            owner = owners[each[0]]
            if owner in (None, self._partition.number):
                here.append(each)
            else:
                elsewhere[owner].append(each)
        return here, {partition: tuple(some) for partition, some in elsewhere.items()}

    def _reader(self, record: ReadingRecord, source: StreamRef) -> OutsideReader:
        found = self._partition.in_force(source.service_object)
        is_open = (
            found is not None
            and source.stream in found.stream_ids
            and granted_of(found).may_derive(record.tenant, source.stream)
        )
        return OutsideReader(
            record.reader, record.tenant, source, record.to_partition, record.change, is_open
        )

    def _lasts(self, streams: Iterable[StreamRef]) -> Mapping[StreamRef, LastUpdate | None]:
        """The last updates of these streams as they stand at the stored progress."""
        numbers = {}
        known: dict[str, ServiceObject | None] = {}
        for ref in streams:
            id_ = ref.service_object
            found = known[id_] = known[id_] if id_ in known else self._partition.in_force(id_)
            if found is not None and ref.stream in found.stream_ids:
                numbers[ref] = found.stream_ids[ref.stream]
        lasts = self._partition.store.last_updates(numbers.values())
        return {ref: lasts.get(number) for ref, number in numbers.items()}

    def _note(self, opened: Iterable[OutsideReader], left: Iterable[str]) -> None:
        """Send updates to these from now on; who has left may have been the last one there."""
        for each in opened:
            self._partition.read_in(each.source, each.partition)
        for service_object in left:
            self._partition.reload(service_object)


class Inputs:
    """What Service Objects of one partition read of other tenants."""

    def __init__(self, partition: Partition, output: Output) -> None:
        self._partition = partition
        self._output = output

    def begin(self, record: BeginRecord, offset: int) -> Change:
        """What these streams get feeds these readers from here on."""
        elsewhere = self._elsewhere(record.readers)
        if record.moved_from is None:
            self._send_on(record, elsewhere, offset)
        here = _without(record.readers, elsewhere)
        if not here:
            return Change(None, _nothing)
        changes = dict(zip(record.readers, record.changes, strict=bool(record.changes)))
        streams = tuple(
            (each.ref, each.timestamp, None if each.timestamp is None else bytes(each.update))
            for each in record.streams
        )
        effect = BeginInputs(
            record.tenant,
            here,
            record.provider,
            streams,
            (record.source.partition, record.source.offset),
            record.moved_from,
            record.forwarded is not None,
            tuple(changes[each] for each in here if each in changes),
        )
        refs = [each.ref for each in record.streams]
        forget = partial(self._forget, here, refs, is_open=True)
        return Change(effect, forget if record.moved_from is None else self._awaiting(forget))

    def end(self, record: EndRecord, offset: int) -> Change:
        """Nothing of these streams feeds these readers from here on."""
        source = record.source.partition, record.source.offset
        refs = tuple(StreamRef(*each) for each in record.streams)
        elsewhere = self._elsewhere(record.readers)
        self._send_on(record, elsewhere, offset)
        here = _without(record.readers, elsewhere)
        moves = record.moved_to is not None
        look_up = partial(self._partition.channels.forget, refs)
        if moves and record.moved_to != self._partition.number:
            effect = EndInputs(record.tenant, record.readers, refs, source, moved=True)
            return Change(effect, look_up)
        if not here:
            return Change(None, _nothing)
        effect = EndInputs(record.tenant, here, refs, source, arrived=moves)
        if moves:
            return Change(effect, self._awaiting(look_up))
        told = revoking.verdicts(self._partition, self._partition.store.closes(effect))
        return Change(effect, partial(self._forget, here, refs, is_open=False), told)

    def _awaiting(self, look_up: Callable[[], None]) -> Callable[[], None]:
        """What comes is held from now on, or what was held may wait for its turn."""

        def forget() -> None:
            look_up()
            self._partition.count_waiting()

        return forget

    def _elsewhere(self, readers: Iterable[str]) -> Mapping[str, int]:
        """Where those of the readers are computed that are not computed here."""
        owners = self._partition.store.owners(list(readers))
        here = self._partition.number
        return {each: at for each, (_tenant, at) in owners.items() if at != here}

    def _send_on(
        self, record: BeginRecord | EndRecord, elsewhere: Mapping[str, int], offset: int
    ) -> None:
        """Let those who have moved know, where they are now."""
        by_owner: defaultdict[int, list[str]] = defaultdict(list)
        for reader, owner in elsewhere.items():
            by_owner[owner].append(reader)
        place = self._partition.number, offset
        for owner, readers in by_owner.items():
            told: LogRecord = msgspec.structs.replace(
                record, readers=tuple(readers), forwarded=place
            )
            if isinstance(told, BeginRecord) and told.changes:
                named = dict(zip(record.readers, told.changes, strict=True))
                told = msgspec.structs.replace(told, changes=tuple(named[e] for e in readers))
            self._output.send_to_log(owner, told)
        if by_owner:
            self._output.flush()

    def _forget(
        self, readers: Iterable[str], streams: Iterable[StreamRef], *, is_open: bool
    ) -> None:
        """Look up again what they read, and who is fed with these."""
        self._partition.channels.forget(streams)
        self._partition.forget_inputs(readers, streams, is_open=is_open)


def _without(readers: Iterable[str], others: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(each for each in readers if each not in others)


def _nothing() -> None:
    """Nothing is forgotten."""
