"""Who works next: tenants in turn, as many instances as have something to do and a place.

Values in, values out: nothing is asked here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from functions.limits import MAX_QUEUE, Limits
from servioticy.domain.workflows.model import CALLBACK, CUT, LOOK, PARQUET, TABLE, Workflow
from servioticy.ports.atoms import Queue, Waiting

AT_ONCE = 10
"""Atoms that wait for each further instance of a quick step."""


class Plan(NamedTuple):
    """What to change now."""

    begin: Sequence[Queue]
    """One instance for each, in this order."""
    end: Mapping[int, int]
    """By tenant of how many instances it is others' turn."""
    closed: Collection[Queue]
    """Queues from which nothing is taken now."""
    end_waiting: Mapping[int, int] = {}
    """As `end`, of instances that wait for others."""


class Situation(NamedTuple):
    """What is known when it is planned."""

    waiting: Sequence[Waiting]
    running: Mapping[Queue, int]
    """How many instances each queue has."""
    sizes: Mapping[Queue, int]
    """How many atoms an instance of it takes at once, as far as there are instances."""
    workflows: Mapping[tuple[str, int], Workflow]
    """By id and version."""
    resting: Collection[int]
    """Tenants whose code may not run now."""
    full: Collection[int]
    """Tenants whose atoms are more bytes than they may be."""
    brimming: Collection[int]
    """Tenants of whom as many atoms wait as may: no file is cut for them."""
    silent: Collection[int]
    """Tenants to whom nothing is delivered now: no sink of theirs calls anybody."""
    served: Mapping[int, int]
    """By tenant a number that is larger the later an instance was begun for it last."""
    elsewhere: Mapping[Queue, int] = {}
    """How many instances each queue has on other machines: a tenant's places are counted over
    all of them."""


def plan(now: Situation, limits: Limits) -> Plan:
    """Return what to begin, and what to end so that others have a turn.

    What waits for stores and receivers has as many places of its own: however slow these are, they
    hold up nothing that computes.
    """
    closed = _closed(now)
    served = dict(now.served)
    begin: list[Queue] = []
    computing, waiting = (_handed_out(now, limits, closed, served, begin, each) for each in ROOMS)
    return Plan(begin, computing, closed, waiting)


ROOMS = (False, True)
"""Of what computes, and of what waits for others."""


def waits(queue: Queue, workflow: Workflow | None) -> bool:
    """Whether an instance there waits for others, most of the time."""
    if queue.step < 0:
        return True
    if workflow is not None and queue.step > workflow.sink_step:
        return True  # objects are written to a store
    if workflow is None or queue.step != workflow.sink_step:
        return False
    return workflow.sink in (CALLBACK, TABLE)


def has_place(
    queue: Queue,
    places: Mapping[Queue, int],
    workflows: Mapping[tuple[str, int], Workflow],
    most: int,
) -> bool:
    """Whether a tenant that has so many instances by queue, on all machines, may have one more."""

    def room(of: Queue) -> bool:
        return waits(of, workflows.get((of.workflow, of.version)))

    return sum(count for each, count in places.items() if room(each) == room(queue)) < most


def _handed_out(
    now: Situation,
    limits: Limits,
    closed: Collection[Queue],
    served: dict[int, int],
    begin: list[Queue],
    is_waiting: bool,
) -> dict[int, int]:
    """Hand out the places of a room; return whose instances are to end."""

    def is_here(queue: Queue) -> bool:
        return waits(queue, now.workflows.get((queue.workflow, queue.version))) == is_waiting

    running = Counter({queue: n for queue, n in now.running.items() if is_here(queue)})
    of_tenant = _by_tenant(running)
    free = limits.instances - of_tenant.total()
    running += Counter({queue: n for queue, n in now.elsewhere.items() if is_here(queue)})
    held = _by_tenant(running)
    wanted = {
        each.queue: _wanted(each, running[each.queue], now.sizes.get(each.queue, AT_ONCE))
        for each in now.waiting
        if each.queue not in closed and each.ready and is_here(each.queue)
    }
    may = _reserving(now, limits, running, held, is_here)
    while True:
        left = [
            queue
            for queue, count in wanted.items()
            if count > 0 and held[queue.tenant] < limits.of_a_tenant and may(queue)
        ]
        if not left or free <= 0:
            break
        # The tenant that has the fewest, of equals who waits longest; of its queues the one with
        # the fewest, of equals that nearest to the sink, so that what was begun comes to its end.
        tenant = min(
            {each.tenant for each in left},
            key=lambda each: (held[each], served.get(each, 0), each),
        )
        chosen = min(
            (each for each in left if each.tenant == tenant),
            key=lambda each: (running[each], -each.step, each),
        )
        begin.append(chosen)
        wanted[chosen] -= 1
        running[chosen] += 1
        of_tenant[tenant] += 1
        held[tenant] += 1
        served[tenant] = max(served.values(), default=0) + 1
        free -= 1
    return _others_turn(left, of_tenant)


def _by_tenant(counts: Mapping[Queue, int]) -> Counter[int]:
    found: Counter[int] = Counter()
    for queue, count in counts.items():
        found[queue.tenant] += count
    return found


def _closed(now: Situation) -> set[Queue]:
    """Return the queues whose atoms would come into one that is full, and those at rest.

    Of a tenant whose atoms are too many bytes one queue is open beside its sinks', the farthest
    on: what steps make of an atom may be more than it was, and nowhere else it becomes less.
    """
    farthest: dict[int, Queue] = {}
    for each in now.waiting:
        workflow = now.workflows.get((each.queue.workflow, each.queue.version))
        if each.queue.tenant in now.full and (
            workflow is None or each.queue.step < workflow.sink_step
        ):
            best = farthest.setdefault(each.queue.tenant, each.queue)
            farthest[each.queue.tenant] = max(best, each.queue, key=lambda one: (one.step, one))
    atoms = {each.queue: each.atoms for each in now.waiting}
    found = set()
    for queue in {*atoms, *now.running}:
        workflow = now.workflows.get((queue.workflow, queue.version))
        if workflow is None:
            found.add(queue)
        elif queue.step < workflow.sink_step:
            links = workflow.links_of(queue.step)
            behind = [atoms.get(queue._replace(step=to), 0) for to in links]
            if (
                max(behind, default=0) >= MAX_QUEUE
                or queue.tenant in now.resting
                or (queue.step < 0 and queue.tenant in now.brimming)
                or farthest.get(queue.tenant, queue) != queue
            ):
                found.add(queue)
        elif workflow.sink == CALLBACK and queue.tenant in now.silent:
            found.add(queue)
        elif (
            workflow.sink == PARQUET
            and queue.step == workflow.sink_step
            and queue.tenant in now.full
        ):
            found.add(queue)  # to gather makes them no fewer
    return found


def _wanted(waiting: Waiting, running: int, size: int) -> int:
    """Return how many more instances have something to do."""
    each = max(1, min(AT_ONCE, size))
    if running == 0:
        return -(-waiting.ready // each)
    return -(-waiting.ready // each) - (running if each > 1 else 0)


def _reserving(
    now: Situation,
    limits: Limits,
    running: Mapping[Queue, int],
    of_tenant: Mapping[int, int],
    is_here: Callable[[Queue], bool],
) -> Callable[[Queue], bool]:
    """Return what tells whether a queue may have one more, without places reserved for others.

    Places are reserved for procedures of workflows in which something waits.
    """
    reserved: dict[int, dict[Queue, int]] = {}
    for each in now.waiting:
        workflow = now.workflows.get((each.queue.workflow, each.queue.version))
        if workflow is None:
            continue
        for step, count in workflow.reserved_of().items():
            queue = each.queue._replace(step=step)
            if is_here(queue):
                reserved.setdefault(each.queue.tenant, {})[queue] = count

    def may(queue: Queue) -> bool:
        if queue.step == LOOK and may(queue._replace(step=CUT)):
            return True  # who looks for files has the places of who cuts them
        kept = sum(
            max(0, count - running.get(other, 0))
            for other, count in reserved.get(queue.tenant, {}).items()
            if other != queue
        )
        own = reserved.get(queue.tenant, {}).get(queue, 0)
        if running.get(queue, 0) < own:
            return True
        # One place at least is anybody's, whatever a tenant reserves.
        kept = min(kept, limits.of_a_tenant - 1)
        return of_tenant.get(queue.tenant, 0) + kept < limits.of_a_tenant

    return may


def _others_turn(left: Sequence[Queue], of_tenant: Mapping[int, int]) -> dict[int, int]:
    """Return whose instances are to end for those that have none, or two fewer."""
    counts = dict(of_tenant)
    found: Counter[int] = Counter()
    for tenant in dict.fromkeys(each.tenant for each in left):
        richest = max(counts, key=lambda each: (counts[each], each), default=None)
        if richest is not None and counts[richest] >= counts.get(tenant, 0) + 2:
            counts[richest] -= 1
            counts[tenant] = counts.get(tenant, 0) + 1
            found[richest] += 1
        elif richest is not None and counts.get(tenant, 0) == 0:
            # As many tenants as places: they take turns of a batch.
            found[richest] += 1
            counts[richest] -= 1
            counts[tenant] = 1
    return dict(found)
