"""What a graph knows of its Service Objects one by one: their streams, and whom these wake."""

from __future__ import annotations

from itertools import chain

from sandbox.trees import CLOCK, FOLLOWS
from servioticy.domain.cutting import cutting
from servioticy.domain.known_streams import KnownStream, Wake
from servioticy.domain.model import ClockRef, InputRef, ServiceObject, Stream, StreamRef, WindowRef
from servioticy.domain.pauses import Paces, Paused
from servioticy.domain.regions import Shared, has_clock
from servioticy.domain.windowed import parts


class Part:
    """Service Objects that are known together: they are cut into regions when it is needed."""

    def __init__(self) -> None:
        self.streams: dict[StreamRef, KnownStream] = {}
        self.wakes: dict[StreamRef, list[Wake]] = {}
        self._is_cut = False

    def cutting(self, shared: Shared) -> Paused[None]:
        """Cut it, unless it is."""
        if not self._is_cut:
            streams, wakes = self.streams, self.wakes
            composites = [each for each in streams.values() if each.composite is not None]
            yield from cutting(composites, streams, lambda ref: wakes.get(ref, ()), shared)
            self._is_cut = True
            self.streams, self.wakes = {}, {}


class Known:
    """What is known of one Service Object, or of what it reads of others: it goes as a whole."""

    __slots__ = ("part", "streams", "wakes")

    def __init__(self, part: Part) -> None:
        self.part = part
        self.streams: dict[StreamRef, KnownStream] = {}
        self.wakes: dict[StreamRef, list[Wake]] = {}
        """By whatever stream: those that are not known, too."""

    def take(self, ref: StreamRef, stream: KnownStream | None, wakes: list[Wake] | None) -> None:
        """Note a stream, if it is known, and whom it wakes, if anybody."""
        if stream is not None:
            self.streams[ref] = stream
        if wakes is not None:
            self.wakes[ref] = wakes

    def with_(self, other: Known) -> Known:
        """Both, where streams of what is not known here are read in several components."""
        found = Known(other.part if other.streams else self.part)
        found.streams = self.streams | other.streams
        found.wakes = self.wakes | other.wakes
        return found


def owner_of(ref: StreamRef) -> str | int:
    """Under what a stream is known: its Service Object, or the sequence of who reads it."""
    return ref.reader if isinstance(ref, InputRef) else ref.service_object


def take_in_stream(
    stream: Stream, service_object: ServiceObject, streams: dict[StreamRef, KnownStream]
) -> None:
    """As what it is computed: its windows, if it has some, and itself."""
    tenant, version = service_object.tenant, service_object.version
    known = {each.ref: _known(each, service_object) for each in parts(stream)}
    for ref, each in known.items():
        streams[ref] = each
        if ref != stream.ref:
            each.feeds = known[stream.ref]
        if has_clock(each):
            clock = ClockRef(*ref)
            streams[clock] = KnownStream(clock, tenant, version, 0, None)


def _known(stream: Stream, service_object: ServiceObject) -> KnownStream:
    number = service_object.stream_ids.get(stream.ref.stream, 0)
    owner = service_object.tenant, service_object.version
    name = "" if isinstance(stream.ref, WindowRef) else stream.ref.stream
    partitions = service_object.read_in.get(name, ())
    return KnownStream(stream.ref, *owner, number, stream.composite, read_in=partitions)


def edges_of(service_object: ServiceObject) -> Paused[list[tuple[StreamRef, Wake]]]:
    """What this object subscribes to: by source in document order, then by stream.

    The same stream through two groups is two edges.
    """
    definition = service_object.definition
    found: list[tuple[StreamRef, Wake]] = []
    by_name: dict[str, list[tuple[StreamRef, Wake]]] = {}
    paces = Paces()
    for stream in chain.from_iterable(map(parts, definition.streams)):
        if paces.pauses(1):
            yield
        if stream.composite is None:
            continue
        if stream.composite.operator is not None:
            found.append((ClockRef(*stream.ref), Wake(stream.ref, CLOCK)))
        if stream.composite.follows:
            found.append((WindowRef(*stream.ref), Wake(stream.ref, FOLLOWS)))
        if stream.composite.windowed:  # through all of its inputs at once
            found.append((WindowRef(*stream.ref), Wake(stream.ref, 0)))
            continue
        for place, each in enumerate(stream.composite.inputs):
            if paces.pauses(len(each.members)):
                yield
            edges = by_name.setdefault(each.name, [])
            wake = Wake(stream.ref, place)
            edges += [(member, wake) for member in each.members if member != stream.ref]
    names = [stream.ref.stream for stream in definition.streams]
    for source in dict.fromkeys([*names, *(group.name for group in definition.groups)]):
        found += by_name.get(source, ())
    return found
