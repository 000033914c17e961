"""Who works next: everybody who waits has a turn, and nobody has all places."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from workflow_builders import CODE, LIMITS, a_queue, a_workflow

from functions.limits import MAX_QUEUE
from functions.planning import Plan, Situation, plan, waits
from servioticy.domain.workflows.model import CUT, LOOK, Workflow
from servioticy.ports.atoms import Queue, Waiting

CHAIN = a_workflow("clean", "sort")


def planned(
    ready: Mapping[Queue, int],
    running: Mapping[Queue, int] | None = None,
    workflow: Workflow = CHAIN,
    **more: Any,
) -> Plan:
    sizes = dict.fromkeys(running or {}, 100)
    situation = Situation(
        waiting=[Waiting(queue, count, count, count, 0) for queue, count in ready.items()],
        running=running or {},
        sizes=more.get("sizes", sizes),
        workflows={("w", 1): workflow},
        resting=more.get("resting", ()),
        full=more.get("full", ()),
        brimming=more.get("brimming", ()),
        silent=more.get("silent", ()),
        served=more.get("served", {}),
        elsewhere=more.get("elsewhere", {}),
    )
    return plan(situation, more.get("limits", LIMITS))


def test_nothing_is_begun_where_nothing_waits() -> None:
    assert planned({}) == Plan([], {}, set())
    assert planned({a_queue(): 0}).begin == []


@pytest.mark.parametrize(("ready", "instances"), [(1, 1), (10, 1), (11, 2), (500, 3)])
def test_as_many_are_begun_as_have_something_to_do(ready: int, instances: int) -> None:
    """And no more than the tenant's share, which is 3."""
    assert planned({a_queue(): ready}).begin == [a_queue()] * instances


def test_instances_on_other_machines_have_places_of_the_tenant_and_none_of_this_machine() -> None:
    """And no turn is theirs to end."""
    mine, others = a_queue(1), a_queue(2)

    found = planned({mine: 500, others: 500}, elsewhere={mine: 2})

    assert sorted(found.begin) == [mine, others, others, others]
    assert found.end == {}


def test_what_waits_for_others_elsewhere_has_no_place_of_what_computes() -> None:
    calls = a_workflow("clean", sink={"callback": {"url": "https://example.org/"}})
    sink = a_queue(step=1)

    assert planned({a_queue(): 500}, workflow=calls, elsewhere={sink: 3}).begin == [a_queue()] * 3
    assert planned({sink: 500}, workflow=calls, elsewhere={sink: 2}).begin == [sink]


def test_places_that_are_reserved_may_be_held_elsewhere() -> None:
    document = {"clean": {"code": CODE}, "sort": {"code": CODE, "reserved": 2}}
    reserving = a_workflow("clean", "sort", procedures=document)
    first, second = a_queue(), a_queue(step=1)

    assert planned({first: 500}, workflow=reserving).begin == [first]
    assert planned({first: 500}, workflow=reserving, elsewhere={second: 2}).begin == [first]
    assert planned({second: 500}, workflow=reserving, elsewhere={second: 2}).begin == [second]


def test_whoever_is_quick_is_helped_only_where_more_waits() -> None:
    assert planned({a_queue(): 10}, {a_queue(): 1}).begin == []
    assert planned({a_queue(): 20}, {a_queue(): 1}).begin == [a_queue()]


def test_whoever_is_slow_is_helped_at_each_atom() -> None:
    found = planned({a_queue(): 2}, {a_queue(): 1}, sizes={a_queue(): 1})

    assert found.begin == [a_queue()] * 2


def test_tenants_have_places_in_turn() -> None:
    ready = {a_queue(1): 1_000, a_queue(2): 1_000}

    assert [each.tenant for each in planned(ready).begin] == [1, 2, 1, 2]


def test_whoever_was_served_longest_ago_comes_first() -> None:
    ready = {a_queue(1): 1_000, a_queue(2): 1_000}

    assert planned(ready, served={1: 5, 2: 3}).begin[0] == a_queue(2)


def test_a_tenant_without_a_place_gets_one_of_whoever_has_most() -> None:
    running = {a_queue(1): 3, a_queue(2): 1}

    found = planned({a_queue(1): 1_000, a_queue(2): 0, a_queue(3): 1}, running)

    assert found.begin == []
    assert found.end == {1: 1}


def test_where_there_are_more_tenants_than_places_they_take_turns() -> None:
    limits = LIMITS._replace(instances=1, of_a_tenant=1)

    found = planned({a_queue(1): 9, a_queue(2): 9}, {a_queue(1): 1}, limits=limits)

    assert found.begin == []
    assert found.end == {1: 1}


def test_nobody_ends_for_a_tenant_that_has_its_share() -> None:
    assert planned({a_queue(1): 1_000}, {a_queue(1): 3}).end == {}


def test_what_is_nearest_to_the_sink_comes_first() -> None:
    ready = {a_queue(step=0): 1, a_queue(step=1): 1, a_queue(step=2): 1}

    assert [each.step for each in planned(ready).begin] == [2, 1, 0]


@pytest.mark.parametrize(("behind", "is_closed"), [(MAX_QUEUE - 1, False), (MAX_QUEUE, True)])
def test_nobody_works_into_a_full_queue(behind: int, is_closed: bool) -> None:
    found = planned({a_queue(step=0): 5, a_queue(step=1): behind})

    assert (a_queue(step=0) in found.closed) is is_closed
    assert (a_queue(step=0) in found.begin) is not is_closed
    assert a_queue(step=1) in found.begin


def test_code_of_a_tenant_without_processor_time_rests_and_its_sink_does_not() -> None:
    found = planned({a_queue(step=0): 5, a_queue(step=2): 5}, resting={1})

    assert found.begin == [a_queue(step=2)]


def test_of_a_tenant_that_is_full_what_is_farthest_on_goes_on_alone() -> None:
    """Beside its sinks', which make it less; others go on as they do."""
    clean, sort, sink = (a_queue(step=each) for each in range(3))
    other = a_queue(2)
    ready = {clean: 5, sort: 5, sink: 5, other: 5}

    assert planned(ready, full={1}).closed == {clean}
    assert planned({clean: 5, other: 5}, full={1}).closed == set()
    delayed = planned({clean: 5, sort: 0}, full={1})
    assert (delayed.begin, delayed.closed) == ([], {clean}), "what it makes would wait there, too"


def test_a_version_that_is_not_understood_waits() -> None:
    found = planned({a_queue(version=2): 5})

    assert found.begin == []
    assert found.closed == {a_queue(version=2)}


RESERVING = a_workflow(procedures={"clean": {"code": CODE, "reserved": 2}})


def test_reserved_places_are_for_nobody_else() -> None:
    """The sink gets one of three, however much waits for it."""
    found = planned({a_queue(step=1): 1_000}, workflow=RESERVING)

    assert found.begin == [a_queue(step=1)]


def test_whom_places_are_reserved_for_gets_them() -> None:
    ready = {a_queue(step=0): 1_000, a_queue(step=1): 1_000}

    found = planned(ready, {a_queue(step=1): 1}, workflow=RESERVING)

    assert found.begin == [a_queue(step=0)] * 2


def test_one_place_is_anybodys_whatever_is_reserved() -> None:
    greedy = a_workflow(procedures={"clean": {"code": CODE, "reserved": 1_000}})

    assert planned({a_queue(step=1): 1}, workflow=greedy).begin == [a_queue(step=1)]


FILES = a_workflow(source={"files": {"store": "in", "format": "csv", "reserved": 2}})
TO_LOOK, TO_CUT = a_queue(step=LOOK), a_queue(step=CUT)


def test_files_are_cut_while_their_atoms_have_room() -> None:
    """Whoever has as many atoms as may wait has no file cut, and what waits is worked on."""
    waiting = {TO_LOOK: 1, TO_CUT: 1, a_queue(): 1}

    assert set(planned(waiting, workflow=FILES).begin) == set(waiting)
    assert planned(waiting, workflow=FILES, brimming={1}).begin == [a_queue()]


def test_where_the_first_queue_is_full_no_file_is_cut() -> None:
    waiting = {TO_CUT: 1, a_queue(): MAX_QUEUE}

    assert TO_CUT in planned(waiting, workflow=FILES).closed
    assert TO_CUT not in planned({**waiting, a_queue(): MAX_QUEUE - 1}, workflow=FILES).closed


def test_where_many_files_wait_the_store_is_not_looked_at() -> None:
    assert TO_LOOK in planned({TO_LOOK: 1, TO_CUT: MAX_QUEUE}, workflow=FILES).closed
    assert TO_LOOK not in planned({TO_LOOK: 1, TO_CUT: MAX_QUEUE - 1}, workflow=FILES).closed


def test_what_waits_for_others_takes_no_place_of_what_computes() -> None:
    """A store or a receiver that is slow holds up no procedure, however many wait for it."""
    calls = a_workflow("clean", sink={"callback": {"url": "https://example.org/"}})
    sink = a_queue(step=calls.sink_step)
    for workflow, queue in ((FILES, a_queue(step=CUT)), (calls, sink)):
        found = planned({a_queue(): 500, queue: 500}, {queue: 3}, workflow)

        assert found.begin == [a_queue()] * 3
        assert waits(queue, workflow)
    assert not waits(a_queue(step=1), a_workflow("clean"))


def test_of_places_for_what_waits_each_tenant_has_a_turn() -> None:
    own, others = a_queue(step=CUT), a_queue(tenant=2, step=CUT)
    full = LIMITS._replace(instances=3, of_a_tenant=3)

    found = planned({own: 9, others: 9}, {own: 3}, FILES, limits=full)

    assert (found.end, found.end_waiting) == ({}, {1: 1})


def test_instances_are_reserved_for_files() -> None:
    """Of the three places for what waits two are for them: another workflow's have one."""
    other = a_queue(workflow="x", step=CUT)
    plain = a_workflow(source={"files": {"store": "in", "format": "csv"}})
    situation = Situation(
        [Waiting(each, 500, 500, 500, 0) for each in (a_queue(), other)],
        {},
        {},
        {("w", 1): FILES, ("x", 1): plain},
        *[()] * 4,
        {},
    )

    assert [each for each in plan(situation, LIMITS).begin if each == other] == [other]


def test_a_sink_that_calls_rests_without_deliveries() -> None:
    """And only that: what leads to it goes on until its queue is full."""
    calls = a_workflow("clean", sink={"callback": {"url": "https://example.org/"}})
    queue, sink = a_queue(), a_queue(step=calls.sink_step)

    found = planned({queue: 1, sink: 1}, workflow=calls, silent=(1,))

    assert (found.begin, found.closed) == ([queue], {sink})
    assert planned({sink: 1}, workflow=calls, silent=(2,)).closed == set()
    assert planned({a_queue(step=2): 1}, silent=(1,)).closed == set()


def test_where_atoms_are_too_many_none_are_gathered_and_objects_are_written() -> None:
    lake = a_workflow("clean", sink={"parquet": {"store": "lake"}})
    sink, written = a_queue(step=lake.sink_step), a_queue(step=lake.sink_step + 1)

    found = planned({sink: 1, written: 1}, workflow=lake, full=(1,))

    assert (found.begin, found.closed) == ([written], {sink})
    assert waits(written, lake)
    assert not waits(sink, lake)
    assert planned({sink: 1}, workflow=lake).begin == [sink]


def test_who_writes_into_a_table_waits_for_it() -> None:
    """So it has a place of those that do, and holds up nothing that computes."""
    rows = a_workflow("clean", sink={"table": {"database": "dw", "table": "t"}})

    assert [waits(a_queue(step=each), rows) for each in (0, 1)] == [False, True]
