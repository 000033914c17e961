"""Who may have a process: places are few, and go to tenants in turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from servioticy.ports.programs import Program

SLICE_SECONDS = 1.0
"""Who has had a place for so long gives it up between two questions, if others wait."""


class Holder(NamedTuple):
    """A program that has a place."""

    program: Program
    since: float
    idle: bool
    """nothing is asked of it"""
    leaving: bool
    """it gives its place up once it has answered"""


class Waiting(NamedTuple):
    """A program that is asked and has none."""

    program: Program
    since: float


def next_one(holders: Sequence[Holder], waiting: Sequence[Waiting], most: int) -> Program | None:
    """Who is next to have a place, if one is free: of the tenant that has fewest, who came first.

    As with room (`operators/room.py`) a tenant may have as many as are left to all others.
    """
    has = Counter(each.program.tenant for each in holders)
    able = [each for each in waiting if has[each.program.tenant] < most - len(holders)]
    if not able:
        return None
    return min(able, key=lambda each: (has[each.program.tenant], each.since)).program


def giving_way(
    holders: Sequence[Holder], waiting: Sequence[Waiting], most: int, now: float
) -> Program | None:
    """Who is next to give up a place for one that waits; None where nobody has to.

    Idle ones before those that work, and those only after their time; of the tenants the one that
    has most places, of its programs who has had it longest. Who has less than others may have one
    of theirs; who has all that it may have waits for its own.
    """
    if not waiting or any(each.leaving for each in holders):
        return None
    has = Counter(each.program.tenant for each in holders)
    free = most - len(holders)
    tenants = {each.program.tenant for each in waiting}
    if any(has[each] < free for each in tenants):
        return None  # there is room

    def gives(each: Holder, tenant: int) -> bool:
        its = has[each.program.tenant]
        if each.program.tenant == tenant:
            return True
        return has[tenant] <= free and (each.idle or its > has[tenant] + (has[tenant] > 0))

    able = [
        each
        for each in holders
        if (each.idle or now - each.since >= SLICE_SECONDS)
        and any(gives(each, tenant) for tenant in tenants)
    ]
    if not able:
        return None
    return min(
        able, key=lambda each: (not each.idle, -has[each.program.tenant], each.since)
    ).program
