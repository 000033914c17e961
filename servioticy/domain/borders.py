"""What crosses from tenant to tenant: numbers of components, inputs from outside, and paths.

A component is what hangs together within one tenant. A stream of another tenant that it reads is
an input from outside: updates of it come through the log (docs/decisions/0044-borders.md).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

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
"""As in `sandbox/trees.py`; numbers below zero in it are borders."""


def entered(path: Path, component: int) -> Path:
    """Return the place in a component's tree of what has this path through its provider's."""
    return (-component, *path)


def borders(path: Path) -> int:
    """Return how many borders there are on a path."""
    return sum(step < 0 for step in path)


def with_inputs(service_objects: Sequence[ServiceObject]) -> Sequence[ServiceObject]:
    """Return Service Objects of one tenant as they read: each with its inputs from outside.

    What they may not read is left out. An input is known by the number of the component that has
    it: the smallest sequence of those that hang together, by what is in force.
    """
    if not any(each.inputs for each in service_objects):
        return service_objects
    numbers = component_numbers(service_objects)
    return [
        _reading_from_outside(each, numbers[each.id]) if each.inputs else each
        for each in service_objects
    ]


def component_numbers(service_objects: Iterable[ServiceObject]) -> Mapping[str, int]:
    """Return the number of the component of each, where these are all that it may have."""
    inorder = sorted(service_objects, key=lambda each: each.sequence)
    parents = {each.id: each.id for each in inorder}
    sequences = {each.id: each.sequence for each in inorder}

    def root(id_: str) -> str:
        while parents[id_] != id_:
            parents[id_] = id_ = parents[parents[id_]]
        return id_

    for each in inorder:
        for group in each.definition.groups:
            for member in group.service_objects:
                if member in parents:
                    first, other = sorted((root(each.id), root(member)), key=sequences.__getitem__)
                    parents[other] = first
    return {id_: sequences[root(id_)] for id_ in parents}


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


def losing(reader: ServiceObject, sources: Collection[StreamRef]) -> Iterator[Stream]:
    """Yield the composites of a reader that read one of these streams."""
    for stream in reader.definition.streams:
        inputs = stream.composite.inputs if stream.composite else ()
        if any(member in sources for each in inputs for member in each.members):
            yield stream


def _composites(definition: Definition) -> Iterator[Composite]:
    return (each.composite for each in definition.streams if each.composite is not None)


def _reading_from_outside(service_object: ServiceObject, component: int) -> ServiceObject:
    known = service_object.inputs

    def named(read: Input) -> Input:
        kept = (_named(each, component, known) for each in read.members)
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
    return replace(
        service_object, definition=replace(service_object.definition, streams=streams)
    )


def _named(
    member: StreamRef, component: int, known: Mapping[StreamRef, InputFromOutside]
) -> StreamRef | None:
    """The member as it is called here; None where it may not be read."""
    found = known.get(member)
    if found is None:
        return member
    return InputRef(member, component) if found.is_open else None
