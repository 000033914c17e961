"""What the log gives, and what one transaction takes of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

from sandbox.trees import ROOT, Path
from servioticy.domain.model import StreamRef, Timestamp
from servioticy.domain.records import narrowed
from servioticy.ports.put_off import PutOff, TreeKey


class Row(NamedTuple):
    """A record of the log as Kafka gave it."""

    offset: int
    value: bytes | None


class Root(NamedTuple):
    """An update that comes into a tree from outside."""

    origin: StreamRef
    timestamp: Timestamp
    document: bytes
    path: Path = ROOT
    """That of an update that crossed a border goes on from its provider's tree."""


class LoggedUpdate(NamedTuple):
    """What the log gave of one tenant to be computed now: the roots of one tree.

    An update of one of its streams; or those of a provider's tree that came over a border.
    """

    offset: int
    tenant: int
    roots: Sequence[Root]
    record: bytes
    """As it stands in the log."""
    tree: int = 0
    """As of a TreeKey."""
    readers: Mapping[str, Sequence[int]] = MappingProxyType({})
    """Of what came over a border: the Service Objects that it is for, and of each the numbers of
    its updates in the record."""

    is_tick: bool = False
    """Whether its roots come from a composite's clock and are stored nowhere: times that it has
    set itself, or an answer of who computes it."""
    at: int = 0
    """The log's time, in ms since 1970: when it was accepted, or of a tick its own."""
    trace: str = ""
    """The trace context that it came with; empty: none."""

    @property
    def is_stored(self) -> bool:
        """Whether its roots are updates of the tenant's own."""
        return not (self.is_input or self.is_tick)

    @property
    def key(self) -> TreeKey:
        """Which tree it is."""
        return TreeKey(self.offset, self.tree)

    @property
    def is_input(self) -> bool:
        """Whether it came over a border: then its roots are stored and emitted elsewhere."""
        return self.tree != 0 and not self.is_tick

    @property
    def size(self) -> int:
        """The bytes of its documents."""
        return sum([len(each.document) for each in self.roots])

    @property
    def service_objects(self) -> tuple[str, ...]:
        """One of its component, or of each of its components."""
        return tuple(self.readers) or (self.roots[0].origin.service_object,)

    def as_put_off(self) -> PutOff:
        """The same as a record to compute later."""
        record = narrowed(self.record, self.readers) if self.is_input else self.record
        return PutOff(self.offset, self.tenant, self.service_objects[0], record, self.tree)


class Forwarded(NamedTuple):
    """Notes that a record which another partition forwarded has come: once is enough."""

    offset: int
    """The offset of the record here."""
    source: int
    """The partition that it came from."""
    next_offset: int
    """Everything that partition forwarded from before this offset of its own has come."""


class Marked(NamedTuple):
    """Notes that what a provider's tree made on a stream has come: once is enough."""

    offset: int
    """The offset of the record here."""
    source: int
    """The partition that it came from."""
    stream: StreamRef
    place: tuple[int, int]
    """The offset there, and the part."""


class Work(NamedTuple):
    """A stretch of the log; or records that had been put off, which move no progress."""

    updates: Sequence[LoggedUpdate]
    """The updates to compute, in order of the log."""
    end: TreeKey
    """The batch ends before this place: trees there with smaller numbers are in it."""
    put_off: Sequence[PutOff] = ()
    """The records of this stretch that are computed later."""
    late: Sequence[PutOff] = ()
    """The records that had been put off, if this work consists of such."""
    forwarded: Sequence[Forwarded] = ()
    """The forwarded records of this stretch, whatever became of them."""
    marked: Sequence[Marked] = ()
    """What came over borders in this stretch, whatever became of it."""
    behind: Sequence[LoggedUpdate] = ()
    """What is not computed at all, as its tenant is too far behind what others send."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to store but progress."""
        return not (self.updates or self.put_off or self.late or self.behind)

    @property
    def held(self) -> frozenset[TreeKey]:
        """Those of its trees that have been held."""
        return frozenset([each.key for each in self.late if each.was_held])

    @property
    def times(self) -> dict[TreeKey, int]:
        """The log's time of each update."""
        return {each.key: each.at for each in self.updates}

    @property
    def traces(self) -> dict[TreeKey, str]:
        """The trace context of each update that has one."""
        return {each.key: each.trace for each in self.updates if each.trace}

    @property
    def owners(self) -> dict[TreeKey, int]:
        """The tenant of each update."""
        return {each.key: each.tenant for each in self.updates}

    @property
    def marks(self) -> Mapping[tuple[int, StreamRef], tuple[int, int]]:
        """Of each stream and partition that it came from, the last that came."""
        return {(each.source, each.stream): each.place for each in self.marked}

    def by_tenant(self) -> list[Work]:
        """Of each tenant the updates, and nothing else."""
        theirs: dict[int, list[LoggedUpdate]] = {}
        for each in self.updates:
            theirs.setdefault(each.tenant, []).append(each)
        if len(theirs) == 1:
            return [self]
        return [Work(some, self.end) for some in theirs.values()]

    def cut(self, *places: int) -> list[Work]:
        """The same work in pieces, cut before the updates with these numbers.

        Each piece ends where the next one begins.
        """
        edges = sorted({0, *places, len(self.updates)})
        pieces: list[Work] = []
        for first, last in pairwise(edges):
            if self.late:
                pieces.append(self._late_piece(first, last))
                continue
            begun = pieces[-1].end if pieces else TreeKey(0)
            whole = last >= len(self.updates)
            end = self.end if whole else self.updates[last].key
            pieces.append(self._piece(self.updates[first:last], begun, end))
        return pieces

    def _piece(self, some: Sequence[LoggedUpdate], begun: TreeKey, end: TreeKey) -> Work:
        """What belongs to these updates: of a record what concerns all of it goes with its end."""
        return Work(
            some,
            end,
            [each for each in self.put_off if begun <= each.key < end],
            (),
            [each for each in self.forwarded if begun.offset <= each.offset < end.offset],
            [each for each in self.marked if begun.offset <= each.offset < end.offset],
            [each for each in self.behind if begun <= each.key < end],
        )

    def _late_piece(self, first: int, last: int) -> Work:
        """A piece of late work, with the records up to its last update that need no computing."""
        some = self.updates[first:last]
        before = self.updates[first - 1].key if first else None
        whole = last >= len(self.updates)
        until = self.late[-1].key if whole else some[-1].key
        late = [
            each
            for each in self.late
            if (before is None or before < each.key) and each.key <= until
        ]
        return Work(some, self.end, (), late)

    def without(self, tenants: Iterable[int]) -> Work:
        """The same work with the updates of these tenants put off."""
        gone = frozenset(tenants)
        kept = [each for each in self.updates if each.tenant not in gone]
        later = [each.as_put_off() for each in self.updates if each.tenant in gone]
        put_off = sorted((*self.put_off, *later), key=lambda each: each.key)
        return self._replace(updates=kept, put_off=put_off)
