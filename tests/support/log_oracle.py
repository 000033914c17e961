"""The oracle that takes the log as it stands, partition by partition, one record at a time.

Of what crosses a border it believes what the log has; whether that is what its provider made,
`crossing_oracle.py` says.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from changing_oracle import ChangingOracle, Given, Input, Shown, outside
from oracle import Limits, Path, Ref, Root, Update

from servioticy.domain.records import (
    AcquireRecord,
    BeginRecord,
    BorderRecord,
    DefinitionRecord,
    DeletionRecord,
    EndRecord,
    ErasureRecord,
    GrantRecord,
    LastOutside,
    LogRecord,
    ReadingRecord,
    ReleaseRecord,
    RevocationRecord,
    Source,
    UpdateRecord,
)

Place = tuple[int, int]
"""Partition and offset."""

BORDER = 2**40
"""A step of a path that is a border: this and the sequence of the reader."""


HELD = 2**30
"""In a place: what was held at it. What comes of that is in an order of its own."""


def value_of(document: bytes) -> int:
    """The value that an update of these tests has."""
    return int(json.loads(document)["channels"]["v"]["current-value"])


def last_of(told: LastOutside) -> Update | None:
    return None if told.timestamp is None else (told.timestamp, value_of(bytes(told.update)))


class Beyond(NamedTuple):
    """What the log does not say."""

    versions: Mapping[str, Sequence[Shown]]
    tenants: Sequence[int]
    """the number of each tenant"""
    given: Mapping[str, Given]
    sequences: Mapping[str, int]
    snapshots: Mapping[tuple[str, int], Mapping[Ref, Input]]
    """what was found where a change came into force"""


class Held(NamedTuple):
    """What came to where a reader has moved, before all that is sent on to there has come."""

    record: BorderRecord
    offset: int
    readers: Sequence[tuple[str, Ref]]


class Owed(NamedTuple):
    """What a provider's tree made on a stream that somebody else reads."""

    reader: str
    ref: Ref
    place: Place
    partition: int
    """where the reader is, as the provider knows it"""
    change: int
    """by which it reads that"""


class LogOracle(ChangingOracle):
    """Everything that follows from the log."""

    def __init__(
        self, log: Sequence[Sequence[LogRecord]], world: Beyond, limits: Limits | None = None
    ) -> None:
        super().__init__(limits)
        self.log, self.world, self.sequences = log, world, dict(world.sequences)
        self.at = [0] * len(log)
        self.owner: dict[str, int] = {}
        self.changes: dict[object, int] = {}
        self.ended: set[str] = set()
        self.marks: dict[tuple[int, int, Ref], tuple[int, int]] = {}
        self.sent_on: set[object] = set()
        self.moved: set[tuple[str, Ref, int, int]] = set()
        self.held: dict[tuple[int, int], list[Held]] = defaultdict(list)
        self.was_held = False
        self.dead = 0
        self.taken: Counter[tuple[Ref, int, int]] = Counter()
        self.trees: dict[tuple[Place, int], list[tuple[Ref, int, int]]] = {}
        self.readers: dict[Ref, dict[str, tuple[int, int, bool]]] = defaultdict(dict)
        """who reads, as the provider knows it: partition, change, and whether it may"""
        self.owed: list[Owed] = []
        self.had: dict[tuple[str, Ref], list[tuple[int, int, int]]] = defaultdict(list)
        """of which records of its provider each reader has taken in what"""
        self.came: dict[tuple[int, Ref], list[tuple[int, int, int]]] = defaultdict(list)
        """to each partition, in order, each once"""
        self.named: dict[tuple[int, Ref, int, int], dict[str, int]] = {}
        """who named the stream when a record came to a partition: by which change"""
        self.excused: set[tuple[str, Ref, int, int]] = set()
        """who did not any more when a record was sent on, or had been held"""
        self.closed: dict[tuple[str, Ref], list[Place]] = defaultdict(list)
        """by which places of its provider a reader was told that it may not read a stream"""
        self.lasts: dict[Place, dict[Ref, Update]] = {}
        self.begun: list[BeginRecord] = []

    def run(self) -> LogOracle:
        """Take all of it."""
        went_on = True
        while went_on:
            went_on = False
            for partition, records in enumerate(self.log):
                while self.at[partition] < len(records):
                    record = records[self.at[partition]]
                    if isinstance(record, AcquireRecord) and not self._has_released(record):
                        break
                    self._take(record, partition, self.at[partition])
                    self.at[partition] += 1
                    went_on = True
        assert self.at == [len(each) for each in self.log], "partitions wait for each other"
        return self

    def _has_released(self, record: AcquireRecord) -> bool:
        return self.at[record.from_partition] > record.release_offset

    def owner_of(self, ref: Ref) -> int | None:
        found = self.world.versions.get(ref[0])
        return found[0].tenant if found else None

    def _take(self, record: LogRecord, partition: int, offset: int) -> None:
        forwarded = getattr(record, "forwarded", None)
        if forwarded is not None:
            key = (partition, type(record), *forwarded, getattr(record, "readers", ()))
            if key in self.sent_on:
                return
            self.sent_on.add(key)
        match record:
            case UpdateRecord():
                self._update(record, partition, offset)
            case BorderRecord():
                self._border(record, partition, offset)
            case BeginRecord() | EndRecord():
                self._begin_or_end(record, partition)
            case AcquireRecord():
                pass
            case _:
                self._control(record, partition)
                self.lasts[partition, offset] = {r: u for r, u in self.last.items() if len(r) == 2}

    # Trees.

    def _update(self, record: UpdateRecord, partition: int, offset: int) -> None:
        id_, name = record.service_object, record.stream
        if self.owner.get(id_, partition) != partition:
            return  # it is sent on
        value = value_of(bytes(record.update))
        self.taken[(id_, name), record.timestamp, value] += 1
        if id_ in self.declared and name in self._names(self.declared[id_]):
            self._grow([Root((id_, name), (record.timestamp, value))], partition, offset)
        else:
            self.dead += 1

    def _border(self, record: BorderRecord, partition: int, offset: int) -> None:
        source = record.source
        new = {each.origin: True for each in record.updates}
        if record.forwarded is None:
            for ref in new:
                before = self.marks.get((partition, source.partition, ref), (-1, 0))
                new[ref] = (source.offset, source.part) > before
                if new[ref]:
                    self.marks[partition, source.partition, ref] = source[1:]
                    self.came[partition, ref].append(tuple(source))
                    self.named[partition, ref, *source[:2]] = {
                        reader: known.since
                        for (reader, of), known in self.inputs.items()
                        if of == ref
                    }
        named = {
            (each.service_object, record.updates[number].origin)
            for each in record.readers
            for number in each.updates
        }
        for each in list(named):
            known = self.inputs.get(each)
            if known is None or self._has_begun_behind(known, source):
                self.excused.add((*each, *source[:2]))
                named.discard(each)
        readers = [
            (reader, ref)
            for (reader, ref), known in self.inputs.items()
            if new.get(ref)
            and self.owner[reader] == partition
            and ((reader, ref) in named if record.forwarded else partition in known.fed_in)
        ]
        by_tenant: dict[int, list[tuple[str, Ref]]] = defaultdict(list)
        for each in readers:
            by_tenant[self.declared[each[0]].tenant].append(each)
        for tenant, theirs in sorted(by_tenant.items()):
            if record.forwarded or not self._awaits(tenant, partition):
                self._enter(record, theirs, partition, offset)
            else:
                self.held[tenant, partition].append(Held(record, offset, theirs))
                self.was_held = True

    @staticmethod
    def _has_begun_behind(known: Input, source: Source) -> bool:
        """Whether it was named anew, and begun, behind what is sent on."""
        return not known.awaited and known.told.get(source.partition, -1) >= source.offset

    def _awaits(self, tenant: int, partition: int) -> bool:
        """Whether something is still sent on to here that the tenant reads."""
        return any(
            each.awaited
            for (id_, _), each in self.inputs.items()
            if self.declared[id_].tenant == tenant and self.owner[id_] == partition
        )

    def _enter(
        self,
        record: BorderRecord,
        readers: Sequence[tuple[str, Ref]],
        partition: int,
        offset: int,
    ) -> None:
        """One tree of one tenant."""
        inorder = sorted(readers, key=lambda each: self.sequences[each[0]])
        for each in inorder:
            self.had[each].append(tuple(record.source))
        roots = [
            Root(
                outside(ref, reader),
                (each.timestamp, value_of(bytes(each.update))),
                self._entering(each.path, reader),
            )
            for reader, ref in inorder
            if self.inputs[reader, ref].is_open
            for each in record.updates
            if each.origin == ref
        ]
        if roots:
            self._grow(roots, partition, offset)

    def _entering(self, path: Path, reader: str) -> Path:
        return (*path, BORDER + self.sequences[reader])

    def _is_too_far(self, path: Path) -> bool:
        return len(path) > self.limits.hops or sum(step >= BORDER for step in path) > 8

    def _grow(self, roots: list[Root], partition: int, offset: int) -> None:
        first = len(self.order)
        self.grow(roots)
        made = self.order[first:]
        if not made:
            return
        tenant = self.declared[made[0][0][0]].tenant
        self.trees.setdefault(((partition, offset), tenant), []).extend(made)
        for ref in dict.fromkeys(ref for ref, *_ in made):
            for reader, (to, change, may) in self.readers[ref].items():
                if may:
                    self.owed.append(Owed(reader, ref, (partition, offset), to, change))

    # Inputs.

    def _begin_or_end(self, record: BeginRecord | EndRecord, partition: int) -> None:
        refs = [
            (each.service_object, each.stream) if isinstance(record, BeginRecord) else tuple(each)
            for each in record.streams
        ]
        there = [each for each in record.readers if each in self.declared]
        for reader in sorted(there, key=lambda each: self.sequences[each]):
            known = [ref for ref in refs if (reader, ref) in self.inputs]
            if isinstance(record, BeginRecord):
                if record.forwarded is None:
                    self.begun.append(record)
                for ref in known:
                    self._begin(record, reader, ref, partition)
                self.rewire()
            elif record.moved_to is None:
                self._end_of(record, reader, known, partition)
            else:
                for ref in known:
                    self._moved(record, reader, ref, partition)

    def _is_news(self, record: BeginRecord | EndRecord, reader: str, ref: Ref) -> bool:
        source, known = record.source, self.inputs[reader, ref]
        is_direct = isinstance(record, BeginRecord) and record.forwarded is None
        told = known.left_told if known.awaited and not is_direct else known.told
        if source.offset <= told.get(source.partition, -1):
            return False
        told[source.partition] = source.offset
        return True

    def _begin(self, record: BeginRecord, reader: str, ref: Ref, partition: int) -> None:
        known = self.inputs[reader, ref]
        if dict(zip(record.readers, record.changes, strict=True))[reader] < known.since:
            return  # it has been named anew since
        if record.forwarded is None:
            known.fed_in.add(partition)
        told = dict(known.told)
        if self.owner[reader] != partition or not self._is_news(record, reader, ref):
            return
        known.is_open = True
        if record.moved_from is None:
            (last,) = [each for each in record.streams if each.ref == ref]
            known.last = last_of(last)
        elif (reader, ref, *record.source[:2]) not in self.moved:
            known.awaited.add(record.moved_from)
            known.left_told = told

    def _end_of(self, record: EndRecord, reader: str, refs: Sequence[Ref], partition: int) -> None:
        """They may not be read any more."""
        if record.forwarded is None:
            for ref in refs:
                self.inputs[reader, ref].fed_in.discard(partition)
        if self.owner[reader] == partition:
            ended = [ref for ref in refs if self._is_news(record, reader, ref)]
            for ref in ended:
                self.closed[reader, ref].append(record.source[:2])
            self.close(reader, ended)

    def _moved(self, record: EndRecord, reader: str, ref: Ref, partition: int) -> None:
        """Nothing comes to where it was any more; there what has come directly is taken now."""
        known = self.inputs[reader, ref]
        if record.forwarded is None:
            known.fed_in.discard(partition)
        if self.owner[reader] != partition or record.forwarded is None:
            return
        self.moved.add((reader, ref, *record.source[:2]))
        known.awaited.discard(record.forwarded[0])
        self._free_held(self.declared[reader].tenant, partition)

    def _free_held(self, tenant: int, partition: int) -> None:
        """Take what the tenant has held, if it awaits nothing here any more."""
        if self._awaits(tenant, partition):
            return
        held, self.held[tenant, partition] = self.held[tenant, partition], []
        for each in held:
            there = [key for key in each.readers if key in self.inputs]
            self._enter(each.record, there, HELD + partition, each.offset)
            gone = set(each.readers) - set(there)
            self.excused |= {(*key, *each.record.source[:2]) for key in gone}

    # Changes.

    def _control(self, record: Any, partition: int) -> None:
        match record:
            case DefinitionRecord(id_, version, change):
                if id_ not in self.ended and self._is_later((id_, "definition"), change):
                    self.owner.setdefault(id_, partition)
                    thing = self.world.versions[id_][version - 1]
                    self.define(
                        thing, version, self.world.snapshots.get((id_, change), {}), change
                    )
                    self._free_held(thing.tenant, partition)
            case DeletionRecord(id_):
                if id_ in self.declared:
                    self.ended.add(id_)
                    tenant = self.declared[id_].tenant
                    self.delete(id_)
                    self._free_held(tenant, partition)
                    for readers in self.readers.values():
                        readers.pop(id_, None)
                    for ref in [ref for ref in self.readers if ref[0] == id_]:
                        del self.readers[ref]
            case ErasureRecord(id_, stream, change):
                if id_ in self.declared and self._is_later((id_, stream), change):
                    self.erase((id_, stream))
            case GrantRecord(id_, grant):
                if id_ in self.declared and grant not in self.ended:
                    self.given[grant] = self.world.given[grant]
            case RevocationRecord(_, grant):
                self.ended.add(grant)
                self.given.pop(grant, None)
            case ReleaseRecord(ids, to_partition):
                for each in ids:
                    if self.owner.get(each) == partition:
                        self.owner[each] = to_partition
            case ReadingRecord():
                self._reading(record, partition)
        self._permit()

    def _is_later(self, key: object, change: int) -> bool:
        if self.changes.get(key, 0) >= change:
            return False
        self.changes[key] = change
        return True

    def _reading(self, record: ReadingRecord, partition: int) -> None:
        """As the provider knows it, of what is computed here."""
        provider = self.world.tenants.index(record.provider)
        here = {
            ref
            for ref in (*self.readers, *record.sources)
            if self.owner_of(ref) == provider and self.owner.get(ref[0]) == partition
        }
        known = [
            self.readers[ref][record.reader] for ref in here if record.reader in self.readers[ref]
        ]
        if any(change > record.change for _, change, _ in known):
            return
        for ref in here:
            if ref in record.sources and ref[0] in self.declared:
                self.readers[ref][record.reader] = record.to_partition, record.change, False
            elif record.ends:
                self.readers[ref].pop(record.reader, None)

    def _permit(self) -> None:
        """Who may read what, as the provider knows it just now."""
        for ref, readers in self.readers.items():
            for reader, (partition, change, _) in readers.items():
                tenant = self.world.versions[reader][0].tenant
                readers[reader] = partition, change, self.may(tenant, ref)
