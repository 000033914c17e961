"""What crosses borders between tenants in memory: who reads whom, and who is fed where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from memory.state import GONE, InputRow, State, now
from servioticy.domain.access import granted
from servioticy.domain.model import LastUpdate, StreamRef
from servioticy.ports.batches import Batch
from servioticy.ports.borders import Channel, FedReader
from servioticy.ports.effects import Activate, BeginInputs, EndInputs, Read


def name(state: State, effect: Activate, tenant: int, partition: int) -> None:
    """Make what a version's groups name of other tenants its inputs from outside."""
    reader, rows = effect.service_object, state.inputs_from_outside
    named = {}
    for ref in effect.members:
        source = state.service_objects.get(ref.service_object)
        if source is not None and source.tenant != tenant:
            named[reader, ref] = source.tenant
    _forget(state, [key for key in rows if key[0] == reader and key not in named], partition)
    for key, provider in named.items():
        kept = key[1] in effect.kept
        row = rows.get(key)
        if row is None:
            may = _may_be_read(state, key[1], tenant)
            row = InputRow(tenant, provider, kept=False, is_open=may, named_by=effect.change)
            rows[key] = row
        if not kept:
            row.last = None
        elif not row.kept and row.is_open:
            row.last = _stored_now(state, key[1])
        row.kept = kept
    _free_held(state, tenant, partition)


def delete(state: State, service_object: str, tenant: int, partition: int) -> None:
    """Forget what a Service Object reads of others, and what others read of it."""
    own = [key for key in state.inputs_from_outside if key[0] == service_object]
    _forget(state, own, partition)
    readers = state.outside_readers
    for key in [key for key in readers if key[1].service_object == service_object]:
        del readers[key]
    _free_held(state, tenant, partition)


def read(state: State, effect: Read, partition: int) -> None:
    """Note what a Service Object of another tenant reads here from now on."""
    rows, objects = state.outside_readers, state.service_objects
    for each in effect.rows:
        known = rows.get((each.reader, each.source))
        ends = (each.reader, each.source.service_object)
        there = all(id_ in objects and objects[id_].active_change < GONE for id_ in ends)
        if there and (known is None or known.change <= each.change):
            rows[each.reader, each.source] = each
    if not effect.ends:
        return
    for key, row in list(rows.items()):
        source = objects[row.source.service_object]
        here = (source.tenant, source.owner_partition) == (effect.provider, partition)
        if row.reader == effect.reader and row.change < effect.change and here:
            del rows[key]


def begin(state: State, effect: BeginInputs, partition: int) -> None:
    """Let these readers read from now on, those that name the streams, and feed them here."""
    origin, offset = effect.source
    lasts = {ref: (at, text) for ref, at, text in effect.streams}
    changes = dict(zip(effect.readers, effect.changes, strict=bool(effect.changes)))
    for (reader, ref), row in _rows(state, effect.tenant, effect.readers, lasts):
        if row.provider != effect.provider or changes.get(reader, GONE) < row.named_by:
            continue
        at, text = lasts[ref]
        last = LastUpdate(at, text) if row.kept and at is not None and text is not None else None
        if effect.forwarded:
            if _heeded(row, effect.source):
                row.since = row.since if row.is_open else now()
                row.is_open, row.last = True, last
            continue
        if _passed(row.told, effect.source):
            continue
        row.since = row.since if row.is_open and row.fed_in is not None else now()
        row.is_open = True
        if effect.moved_from is None:
            row.last = last
        elif not _passed(row.arrived, effect.source):
            row.awaits, row.left_told = effect.source, row.told
            row.left_in = effect.moved_from if row.fed_in == effect.moved_from else None
        row.told, row.fed_in = effect.source, partition
        _mark(state, (partition, origin, ref), (offset, 0))


def end(state: State, effect: EndInputs, partition: int) -> None:
    """Let these readers read no more; or end what they are fed here, or what they await."""
    for _key, row in _rows(state, effect.tenant, effect.readers, effect.streams):
        if effect.arrived:
            row.arrived = effect.source
            if row.awaits is not None and _passed(effect.source, row.awaits):
                row.awaits = row.left_in = row.left_told = None
        elif effect.moved:
            if row.left_in == partition:
                row.left_in = None
            elif row.fed_in == partition and not _passed(row.told, effect.source):
                row.fed_in = None
        elif _heeded(row, effect.source):
            row.since = now() if row.is_open else row.since
            row.is_open, row.last = False, None
            if row.fed_in == partition and row.awaits is None:
                row.fed_in = None
    for ref in effect.streams:
        _forget_marks(state, ref, partition)
    if effect.arrived:
        _free_held(state, effect.tenant, partition)


def closes(state: State, effect: EndInputs) -> dict[str, list[StreamRef]]:
    """Return of each reader what it may read until this, which ends it."""
    found: dict[str, list[StreamRef]] = {}
    for (reader, ref), row in _rows(state, effect.tenant, effect.readers, effect.streams):
        told = row.told if row.awaits is None else row.left_told
        if row.is_open and not _passed(told, effect.source):
            found.setdefault(reader, []).append(ref)
    return found


def store(state: State, batch: Batch) -> None:
    """Note what a batch has for these tables."""
    for each in batch.inputs:
        row = state.inputs_from_outside.get((each.reader, each.source))
        if row is not None and row.kept:
            row.last = LastUpdate(each.timestamp, each.document)
    for (origin, ref), mark in batch.marks.items():
        _mark(state, (batch.partition, origin, ref), mark)
    for reader in batch.outside:
        known = state.outside_readers.get((reader.reader, reader.source))
        if known is not None:
            opened = known._replace(is_open=reader.is_open)
            state.outside_readers[reader.reader, reader.source] = opened
    for crossing in batch.crossings:
        key = (batch.partition, crossing.key, crossing.number)
        state.crossings[key] = crossing
    for key in list(state.crossings):
        late = key[:2] in state.put_off
        sent = not late and key[1].offset < batch.emitted_offset
        if key[0] == batch.partition and (sent or key[1] in batch.emitted_late):
            del state.crossings[key]


def channels(
    state: State, partition: int, streams: Iterable[StreamRef]
) -> dict[StreamRef, Channel]:
    """Return who is fed here with these streams, and how far."""
    found = {}
    for ref in streams:
        marks = {
            key[1]: mark
            for key, mark in state.marks.items()
            if (key[0], key[2]) == (partition, ref)
        }
        fed = [
            (state.service_objects[reader], row)
            for (reader, source), row in state.inputs_from_outside.items()
            if source == ref and _fed(row, partition)
        ]
        readers = tuple(
            FedReader(each.id, each.tenant, each.owner_partition)
            for each, _ in sorted(fed, key=lambda pair: pair[0].sequence)
        )
        if marks or readers:
            found[ref] = Channel(marks, readers)
    return found


def begun_behind(
    state: State, readers: Iterable[str], streams: Iterable[StreamRef], place: tuple[int, int]
) -> set[tuple[str, StreamRef]]:
    """Return who has begun with these streams behind a place, and awaits nothing from before."""
    refs, rows = list(streams), state.inputs_from_outside
    asked = [(reader, ref) for reader in readers for ref in refs]
    return {
        key
        for key in asked
        if key in rows and rows[key].awaits is None and _passed(rows[key].told, place)
    }


def awaiting(state: State, partition: int) -> dict[int, int]:
    """Return who awaits here what is sent on, and how much is held of each."""
    tenants = {r.tenant for r in state.inputs_from_outside.values() if _awaits(r, partition)}
    held = Counter(
        each.tenant for key, each in state.put_off.items() if key[0] == partition and each.held
    )
    return {each: held[each] for each in tenants}


def _begins(state: State, partition: int) -> bool:
    """Whether a begin has been put off here."""
    return any(
        key[0] == partition
        and key not in state.taken_up
        and each.record.startswith(b'{"kind":"begin"')
        for key, each in state.put_off.items()
    )


def _rows(
    state: State,
    tenant: int,
    readers: Iterable[str],
    streams: Iterable[StreamRef],
) -> Iterator[tuple[tuple[str, StreamRef], InputRow]]:
    """Yield those of the rows that there are."""
    refs = list(streams)
    for key in [(reader, ref) for reader in readers for ref in refs]:
        row = state.inputs_from_outside.get(key)
        if row is not None and row.tenant == tenant:
            yield key, row


def _passed(known: tuple[int, int] | None, place: tuple[int, int]) -> bool:
    """Whether what is known is that place, or a later one of the same partition."""
    return known is not None and known[0] == place[0] and known[1] >= place[1]


def _heeded(row: InputRow, place: tuple[int, int]) -> bool:
    """Whether it is news on the way on which the reader's updates come now; then it is noted.

    While something is sent on, what comes directly is held: so that comes from where it left.
    """
    if _passed(row.told if row.awaits is None else row.left_told, place):
        return False
    if row.awaits is None:
        row.told = place
    else:
        row.left_told = place
    return True


def _fed(row: InputRow, partition: int) -> bool:
    return partition in (row.fed_in, row.left_in)


def _awaits(row: InputRow, partition: int) -> bool:
    return row.fed_in == partition and row.awaits is not None


def _of(state: State, ref: StreamRef) -> list[InputRow]:
    return [row for (_, source), row in state.inputs_from_outside.items() if source == ref]


def _mark(state: State, key: tuple[int, int, StreamRef], mark: tuple[int, int]) -> None:
    state.marks[key] = max(mark, state.marks.get(key, mark))


def forget_unread_marks(state: State, partition: int) -> None:
    """Whoever was fed here may have gone while it was computed elsewhere."""
    for ref in {key[2] for key in state.marks}:
        _forget_marks(state, ref, partition)


def _forget(state: State, keys: Iterable[tuple[str, StreamRef]], partition: int) -> None:
    for key in keys:
        del state.inputs_from_outside[key]
        _forget_marks(state, key[1], partition)


def _forget_marks(state: State, ref: StreamRef, partition: int) -> None:
    """They go where nobody is fed here with the stream any more, nor may be by what waits."""
    if not any(_fed(row, partition) for row in _of(state, ref)) and not _begins(state, partition):
        for key in [key for key in state.marks if (key[0], key[2]) == (partition, ref)]:
            del state.marks[key]


def _free_held(state: State, tenant: int, partition: int) -> None:
    """What a tenant has held waits for its turn from now on, if it awaits nothing here."""
    if any(
        row.tenant == tenant and _awaits(row, partition)
        for row in state.inputs_from_outside.values()
    ):
        return
    for key, each in state.put_off.items():
        if key[0] == partition and each.tenant == tenant and each.held:
            state.put_off[key] = each._replace(held=False, was_held=True)


def _may_be_read(state: State, ref: StreamRef, tenant: int) -> bool:
    """Whether composites of the tenant may read it, as far as the API knows."""
    source = state.service_objects[ref.service_object]
    grants = [
        each.grant
        for each in state.grants.values()
        if each.service_object == source.id and each.revoked_at is None
    ]
    rule = granted(source.tenant, source.public, grants)
    return source.deleted_at is None and rule.may_derive(tenant, ref.stream)


def _stored_now(state: State, ref: StreamRef) -> LastUpdate | None:
    number = state.streams.get((ref.service_object, ref.stream))
    if number is None or state.service_objects[ref.service_object].active_change == GONE:
        return None
    row = state.last_updates.get(state.stored_as(number))
    return None if row is None else LastUpdate(row.timestamp, row.document)
