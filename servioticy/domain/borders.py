"""What crosses from tenant to tenant: inputs from outside, and paths over borders.

A component is what hangs together within one tenant. A stream of another tenant that it reads is
an input from outside: updates of it come through the log (docs/decisions/0046-borders.md).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from sandbox.revisions import Revision, revision_of
from servioticy.domain.model import (
    Composite,
    Definition,
    Input,
    InputFromOutside,
    InputRef,
    ServiceObject,
    Stream,
    StreamRef,
)

MAX_BORDERS = 8
"""On the way of an update: whoever is behind more of them is not woken any more."""

Path = tuple[int, ...]
"""As in `sandbox/trees.py`: steps of BORDER or more are borders."""

BORDER = 2**40
"""More than any number of a wake; with a sequence behind it JavaScript still has it exactly."""


HELD_CHANNEL = 2**30
"""Behind the number of a partition: more than there are of them."""


def channel(partition: int, *, was_held: bool) -> int:
    """Return what tells, with their offsets, the order in which updates cross: a partition.

    What had been held is computed later than its place, and what its tenant has made meanwhile
    has crossed before it: so that is an order of its own.
    """
    return partition + HELD_CHANNEL if was_held else partition


def partition_of(channel: int) -> int:
    """Return the partition that it is a channel of."""
    return channel % HELD_CHANNEL


def entered(path: Path, reader: int) -> Path:
    """Return the place in a reader's tree of what has this path through its provider's."""
    return (*path, BORDER + reader)


def revision_over(document: bytes, path: Path) -> Revision | None:
    """Return which revision an update is that has come over a border by this path; None: it is
    none. What its provider has got from outside is none, whatever it says of itself."""
    return revision_of(document) if len(path) > 1 else None


def borders(path: Path) -> int:
    """Return how many borders there are on a path."""
    return sum(step >= BORDER for step in path)


def with_inputs(service_object: ServiceObject) -> ServiceObject:
    """Return a Service Object as it reads: with its inputs from outside, but for what it may not.

    Each is known by the reader's sequence.
    """
    return _reading_from_outside(service_object) if service_object.inputs else service_object


def members(definition: Definition) -> tuple[StreamRef, ...]:
    """Return all streams that the groups of a document name."""
    found = (
        StreamRef(member, group.stream)
        for group in definition.groups
        for member in group.service_objects
    )
    return tuple(dict.fromkeys(found))


def kept(definition: Definition) -> tuple[StreamRef, ...]:
    """Return those that some composite reads while something else has triggered it.

    The only input of a composite is always the trigger; so are all members of its only group.
    """
    found: dict[StreamRef, None] = {}
    for composite in _composites(definition):
        read = [each for n, each in enumerate(composite.inputs) if n != composite.own]
        if len(read) > 1:
            found.update(dict.fromkeys([member for each in read for member in each.members]))
    return tuple(found)


def outside_inputs(service_object: ServiceObject) -> Iterator[tuple[InputRef, int]]:
    """Yield what it reads of other tenants, and whose each is; it is one of `with_inputs`."""
    for composite in _composites(service_object.definition):
        for each in composite.inputs:
            for member in each.members:
                if isinstance(member, InputRef):
                    yield member, service_object.inputs[member.source].provider


def reading(reader: ServiceObject, sources: Collection[StreamRef]) -> Iterator[Stream]:
    """Yield the composites of a reader that read one of these streams."""
    for stream in reader.definition.streams:
        inputs = stream.composite.inputs if stream.composite else ()
        if any(member in sources for each in inputs for member in each.members):
            yield stream


def _composites(definition: Definition) -> Iterator[Composite]:
    return (each.composite for each in definition.streams if each.composite is not None)


def _reading_from_outside(service_object: ServiceObject) -> ServiceObject:
    known, sequence = service_object.inputs, service_object.sequence

    def named(read: Input) -> Input:
        kept = (_named(each, sequence, known) for each in read.members)
        return replace(read, members=tuple(each for each in kept if each is not None))

    streams = tuple(
        replace(
            each,
            composite=replace(
                each.composite, inputs=tuple(named(read) for read in each.composite.inputs)
            ),
        )
        if each.composite
        else each
        for each in service_object.definition.streams
    )
    return replace(service_object, definition=replace(service_object.definition, streams=streams))


def _named(
    member: StreamRef, reader: int, known: Mapping[StreamRef, InputFromOutside]
) -> StreamRef | None:
    """The member as it is called here; None where it may not be read."""
    found = known.get(member)
    if found is None:
        return member
    return InputRef(member, reader) if found.is_open else None
