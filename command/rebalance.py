"""`servioticy rebalance`: how busy partitions are, and what moves so that they are alike."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from command import running, shown
from servioticy.bootstrap import Ports, ports
from servioticy.rebalancing import Done, Outlook, Planned, Rebalancing, told
from servioticy.settings import Settings


def run(settings: Settings, most: int, *, plan_only: bool, as_json: bool) -> int:
    """Print the plan, and carry it out unless it is asked for alone."""
    with running.stores(settings) as found:
        made = rebalancing(ports(found))
        done = Done(made.plan(most), (), ()) if plan_only else made.carry_out(most)
    if as_json:
        shown.say_json(told(done))
    else:
        shown.say([*lines(done.outlook), *([] if plan_only else outcome(done))])
    return 0


def rebalancing(ports: Ports) -> Rebalancing:
    """Return who plans and moves on this platform."""
    return Rebalancing(ports.loads, ports.changes, ports.log, lambda: int(time.time() * 1000))


def lines(outlook: Outlook) -> list[str]:
    """Return the plan as people read it: `busy` is of a core."""
    head = ("partition", "Service Objects", "busy", "then")
    rows = [
        (
            str(each.partition),
            f"{each.service_objects:,}",
            _busy(each.busy),
            _busy(each.busy_after),
        )
        for each in outlook.partitions
    ]
    return [
        f"busy, of a core, since {shown.moment(outlook.since)}",
        *shown.columns([head, *rows], (0, 1, 2, 3)),
        *_alone(outlook),
        *(_moves(outlook.moves) if outlook.moves else ["nothing to move"]),
    ]


def outcome(done: Done) -> Iterator[str]:
    """Yield what came of it."""
    if done.outlook.moves:
        yield f"moved: {len(done.moved)} of {len(done.outlook.moves)}"
    if done.waiting:
        yield "still moving or changing, try again later:"
        yield from (f"  {shown.plain(each.service_object)}" for each in done.waiting)


def _alone(outlook: Outlook) -> list[str]:
    """Return a warning where no move can help what is busiest."""
    largest = outlook.largest
    if largest is None or not largest.is_bound:
        return []
    return [
        f"partition {largest.partition}: what hangs together with {largest.service_object} of "
        f"{shown.plain(largest.tenant)} takes {_busy(largest.busy)} alone, more than a "
        "partition's part; it cannot be divided"
    ]


def _moves(moves: tuple[Planned, ...]) -> list[str]:
    head: tuple[Any, ...] = ("from", "to", "busy", "Service Objects", "with", "tenant")
    rows = [
        (
            str(each.from_partition),
            str(each.to_partition),
            _busy(each.busy),
            f"{each.service_objects:,}",
            each.service_object,
            shown.plain(each.tenant),
        )
        for each in moves
    ]
    return shown.columns([head, *rows], (0, 1, 2, 3))


def _busy(cores: float) -> str:
    return f"{cores:.4f}"
