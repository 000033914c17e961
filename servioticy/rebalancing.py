"""Spreading components anew over the partitions, by what they have had to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from servioticy.changes import MAX_MOVED, Changes
from servioticy.domain import balance
from servioticy.domain.balance import MOVES, Move, Part
from servioticy.domain.model import ServiceObjectKey
from servioticy.errors import Unavailable
from servioticy.ports.loads import Component, Loads, PartitionLoad
from servioticy.ports.log import Log

HOUR = 3_600_000
MOST_LOOKED_AT = 1_000
"""Components that may move, of all those that have done something: who do most."""


class Planned(NamedTuple):
    """A move as people read it."""

    tenant: str
    service_object: str
    service_objects: int
    from_partition: int
    to_partition: int
    busy: float


class Partition(NamedTuple):
    """A partition: how much of a core its components take, before and after the moves."""

    partition: int
    service_objects: int
    busy: float
    busy_after: float


class Largest(NamedTuple):
    """What takes most and cannot be divided, named by one of its Service Objects, if there are not
    too many; `is_bound` where it takes more than a partition would if all had the same to do.
    """

    tenant: str
    service_object: str
    partition: int
    busy: float
    is_bound: bool


class Outlook(NamedTuple):
    """What would be moved now. `since` is in ms; `busy` is of a core in the mean from there on."""

    since: int
    partitions: tuple[Partition, ...]
    moves: tuple[Planned, ...]
    largest: Largest | None


class Done(NamedTuple):
    """What was moved, and what was not: it has changed meanwhile, or is still moving."""

    outlook: Outlook
    moved: tuple[Planned, ...]
    waiting: tuple[Planned, ...]


class Rebalancing:
    """Plans moves by what was metered in this hour and the one before, and has them made."""

    def __init__(self, loads: Loads, changes: Changes, log: Log, now: Callable[[], int]) -> None:
        """`now` is in ms."""
        self._loads = loads
        self._changes = changes
        self._log = log
        self._now = now

    def plan(self, most: int = MOVES) -> Outlook:
        """Return what at most so many moves would bring. Raises Unavailable."""
        return self._planned(most)[0]

    def carry_out(self, most: int = MOVES) -> Done:
        """Make them; those after the first that others' changes keep waiting come another time.

        Each is a change of its own, between those of others. What returns is in the log: it has
        been moved when the partitions have come there. Raises Unavailable where nothing is known.
        """
        outlook, moves = self._planned(most)
        moved, waiting = list[Planned](), list[Planned]()
        for told, move in zip(outlook.moves, moves, strict=True):
            key = ServiceObjectKey(move.part.tenant, move.part.member)
            try:
                is_moved = self._changes.move(key, move.to_partition)
            except Unavailable:
                is_moved = False
            (moved if is_moved else waiting).append(told)
        return Done(outlook, tuple(moved), tuple(waiting))

    def _planned(self, most: int) -> tuple[Outlook, tuple[Move, ...]]:
        now = self._now()
        since = (now // HOUR - 1) * HOUR
        partitions = self._loads.partitions(since)
        names: dict[int, str] = {}
        parts: list[Part] = []
        for each in self._loads.components(since, MOST_LOOKED_AT):
            names[each.tenant] = each.tenant_name
            parts += _parts(each)
        # One could be added since it was asked for.
        count = max(self._log.partitions(), *(each + 1 for each in partitions), 1)
        loads = {number: each.load for number, each in partitions.items()}
        found = balance.plan(loads, [each for each in parts if _may_move(each)], count, most)
        passed = (now - since) * 1000
        nothing = PartitionLoad(0, 0)
        told = tuple(
            Planned(
                names[part.tenant],
                part.member,
                part.members,
                part.partition,
                to_partition,
                part.load / passed,
            )
            for part, to_partition in found.moves
        )
        shown = tuple(
            Partition(
                number,
                partitions.get(number, nothing).service_objects,
                before / passed,
                after / passed,
            )
            for number, (before, after) in enumerate(zip(found.before, found.after, strict=True))
        )
        largest = max(parts, key=lambda each: each.load, default=None)
        return (
            Outlook(since, shown, told, _largest(largest, names, found.before, passed)),
            found.moves,
        )


def _parts(component: Component) -> list[Part]:
    """What of a component moves as one: all of it, unless it has come apart."""
    tenant, partition, members = component.tenant, component.partition, component.members
    pieces = [tuple(members)]
    if component.is_settled:
        pieces = balance.apart(members, component.edges)
    if not members:
        return [Part(tenant, "", component.size, partition, component.load)]
    return [
        Part(tenant, piece[0], len(piece), partition, sum(members[each] for each in piece))
        for piece in pieces
    ]


def _may_move(part: Part) -> bool:
    """Whether one record names all of it: then it goes at one place in the log."""
    return bool(part.member) and part.load > 0 and part.members <= MAX_MOVED


def _largest(
    part: Part | None, names: Mapping[int, str], loads: Sequence[int], passed: int
) -> Largest | None:
    if part is None:
        return None
    is_bound = len(loads) > 1 and part.load * len(loads) > sum(loads)
    return Largest(names[part.tenant], part.member, part.partition, part.load / passed, is_bound)


def told(done: Done) -> dict[str, Any]:
    """Return it as the API and the command tell it."""
    outlook = done.outlook
    return {
        "from": outlook.since,
        "partitions": [
            {
                "partition": each.partition,
                "serviceObjects": each.service_objects,
                "busy": each.busy,
                "busyAfter": each.busy_after,
            }
            for each in outlook.partitions
        ],
        "moves": [*map(_told, outlook.moves)],
        "moved": [*map(_told, done.moved)],
        "waiting": [*map(_told, done.waiting)],
        **({} if outlook.largest is None else {"largest": _told_largest(outlook.largest)}),
    }


def _told(move: Planned) -> dict[str, Any]:
    return {
        "tenant": move.tenant,
        "serviceObject": move.service_object,
        "serviceObjects": move.service_objects,
        "from": move.from_partition,
        "to": move.to_partition,
        "busy": move.busy,
    }


def _told_largest(largest: Largest) -> dict[str, Any]:
    return {
        "tenant": largest.tenant,
        "serviceObject": largest.service_object,
        "partition": largest.partition,
        "busy": largest.busy,
        "isBound": largest.is_bound,
    }
