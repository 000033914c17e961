"""Where the components of the graph of Service Objects are computed, and how they join."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

Moves: TypeAlias = tuple[tuple[int, tuple[str, ...]], ...]
"""(partition, the Service Objects that leave it), by partition."""

LEAVING_SECONDS = 0.1
"""So long after a Service Object has begun to leave its partition updates of it may come into the
log there that were routed before. Then it is released."""
ROUTED_SECONDS = LEAVING_SECONDS / 2
"""So old may be what is known of a route when something is given to the log; what is left of the
above is the log's, to take it."""


class Member(NamedTuple):
    """A Service Object, its component, and the partition where its updates are routed."""

    id: str
    component: str
    partition: int


class Joined(NamedTuple):
    """Components as one: its name, its partition, and who moves there."""

    component: str
    partition: int
    moves: Moves


def join(members: Sequence[Member]) -> Joined | None:
    """Join the components of these members, which are all that the components have.

    The largest component keeps its name and its place, the others move; of equally large ones
    the one that comes first stays. None where there are no members.
    """
    if not members:
        return None
    component, _size = Counter(each.component for each in members).most_common(1)[0]
    partition = next(each.partition for each in members if each.component == component)
    moved = moves_to(partition, [(each.id, each.partition) for each in members])
    return Joined(component, partition, moved)


def moves_to(partition: int, routed: Sequence[tuple[str, int]]) -> Moves:
    """Return who of these Service Objects, each with its partition, has to move to this one."""
    moves: dict[int, list[str]] = {}
    for id_, at in routed:
        if at != partition:
            moves.setdefault(at, []).append(id_)
    return tuple((at, tuple(ids)) for at, ids in sorted(moves.items()))


class Route(NamedTuple):
    """Where updates of a Service Object come into the log; `leaves`: what comes now waits until
    it is routed to another partition.
    """

    partition: int
    leaves: bool


def read_route(stored: int) -> Route:
    """Return what is stored as a number: of what leaves, its partition with all bits flipped."""
    return Route(max(stored, ~stored), stored < 0)


def least_loaded(service_objects: Mapping[int, int], partitions: int) -> int:
    """Return the partition with the fewest Service Objects, the first of several such ones.

    `service_objects` counts them by partition, where there are any.
    """
    return min(range(partitions), key=lambda each: (service_objects.get(each, 0), each))
