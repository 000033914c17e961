"""Hostile programs: the culprit alone is blamed, the rest goes on."""

from __future__ import annotations

import time
from dataclasses import replace
from socket import SHUT_RDWR
from typing import Any
from unittest import mock

import pytest
from hostile_programs import CALL, GOOD, HANG, RIGHT, a_program, between, is_right, processes
from sandbox_trees import (
    a_call,
    a_call_of,
    a_function,
    an_event,
    events,
    grow_all,
    joined,
    kinds,
    once,
    one_by_one,
    rest_of,
    result,
    values,
)

from sandbox import SandboxPool
from sandbox.host.worker_client import WorkerClient
from sandbox.host.zygote_client import ZygoteClient
from sandbox.trees import Event, Last, Node, Wake, Wiring

SPAWN = ZygoteClient.spawn
KILLED = {"timeout", "oom", "crash"}
never_starved = pytest.mark.usefixtures("_never_starved")


# The allow-list would refuse most of what is tried here.
POOL_OPTIONS = {"allow_list": False, "budget_ms": 100}


HANGS = a_function(HANG)


@pytest.mark.parametrize(
    "attack",
    [
        "while(true){}",
        "while(true){try{while(true){}}finally{continue}}",
        "var a=[];while(true)a.push([1,2,3,4,5,6,7,8])",
        "var a=[];while(true)a.push(new Array(1000).fill(1.5))",
        "var s='a';while(true){try{s+=s}catch(e){s='a'}}",
        "var s='a';for(var i=0;i<28;i++)s+=s;return s.trim().length>1 && JSON.stringify(s).length",
        "return /^(a*)*b\\1$/.test('a'.repeat(40)) ? 1 : 0",
        "return {toJSON(){while(true){}}}",
    ],
)
def test_the_culprit_alone_is_faulted(pool: SandboxPool, attack: str) -> None:
    """Its neighbours in the tree have their values, and so have other trees and calls."""
    call = a_call_of(between(a_program(attack)), *events(3))

    first, second = pool.grow("tenant", [call, CALL])
    grown = grow_all(pool, call)

    survived = {"script-error"} if pool.options.engine == "quickjs" else set()  # a catchable lack
    (kind,) = {each.kind for each in grown.ended} - {"emitted"}
    assert kind in KILLED | survived
    assert kinds(grown) == {"emitted": 11 - 1, kind: 1}
    assert [each.node for each in grown.ended if each.kind == kind] == [2]
    assert values(grown) == [[1, 7, 1, 8], [2, 2], [3, 7, 3, 8]]
    assert values(second) == RIGHT
    assert first.failed == (kind in KILLED)
    assert is_right(pool)


@pytest.mark.parametrize(
    "attack",
    [
        "(async()=>{while(true)await 0})();return 1",
        "var p=(async()=>{})();function f(){p=p.then(f)};f();return 1",
    ],
)
def test_what_would_run_later_is_found_or_never_runs(pool: SandboxPool, attack: str) -> None:
    """V8 runs it after the call has returned, and the probe notices; QuickJS must be asked to."""
    quick = pool.options.engine == "quickjs"

    outcomes = one_by_one(pool, a_call(a_program(attack), *events(3)))

    assert list(map(result, outcomes)) == [7, 1 if quick else "timeout", 7]
    assert is_right(pool)


@pytest.mark.parametrize(
    "attack",
    [
        "JSON.parse = JSON.stringify = null",
        "Array.prototype[Symbol.iterator] = Object.keys = Reflect.apply = null",
        "Object.prototype.toJSON = Number.prototype.toJSON = () => 7",
        "Object.defineProperty(Array.prototype, 0, {set(v) { throw 1 }, configurable: true})",
        "Function.prototype.call = Function.prototype.bind = RegExp.prototype.exec = null",
    ],
)
def test_the_runner_uses_only_what_it_captured(pool: SandboxPool, attack: str) -> None:
    """Should a script break a built-in after all, trees are grown as ever."""
    grow_all(pool, a_call(a_program(attack), *events(3)))

    assert is_right(pool)


@pytest.fixture
def _never_starved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starved is not guilty, and a busy machine starves: here all time is processor time."""
    monkeypatch.setattr(WorkerClient, "_cpu", lambda _: time.monotonic())


@never_starved
@pytest.mark.parametrize("attack", [HANG, "var a=[];while(true)a.push([1,2,3,4,5,6,7,8])"])
def test_one_among_a_hundred_innocent_ones_is_found(pool: SandboxPool, attack: str) -> None:
    """A hundred composites of one tree: some processes die, not a hundred."""
    bad = a_function(attack)
    wakes = tuple(Wake(number, number + 1, 0) for number in range(100))
    programs = [bad if number == 50 else GOOD for number in range(100)]
    nodes = (Node(wakes), *[Node((), each, ((0,),)) for each in programs])
    call = a_call_of(Wiring(f"hundred {attack}", nodes), an_event(4))

    grown = grow_all(pool, call)

    assert values(grown) == [[5] * 99]
    (fault,) = [each for each in grown.ended if each.kind != "emitted"]
    assert (fault.node, fault.kind in KILLED, fault.times) == (51, True, 1)
    assert processes(pool) == 2  # with the whole tree, then alone
    assert pool.suspended() == {}


@never_starved
def test_one_call_among_others_fails_alone(pool: SandboxPool) -> None:
    """Devices of a tenant: each of the others has all it asked for in the same answer."""
    bad = a_call(HANGS, *events(3))

    found = pool.grow("tenant", [*[CALL] * 5, bad, *[CALL] * 5])

    assert {at for at, each in enumerate(found) if each.failed} <= {5}
    assert not found[5].made
    for each in found[:5] + found[6:]:  # a slow engine leaves some of them for another frame
        assert values(joined(each, grow_all(pool, rest_of(CALL, each)))) == RIGHT
    assert processes(pool) <= 2  # with the others, then alone


@never_starved
def test_one_tree_among_a_hundred_is_found(pool: SandboxPool) -> None:
    """Those before it, and those after it, are what they are without it."""
    hangs = a_function("if (A.lastUpdate === 50) while(true){} return A.lastUpdate")

    grown = grow_all(pool, a_call(hangs, *events(100)))

    assert values(grown) == [[] if at == 50 else [at] for at in range(1, 101)]
    assert kinds(grown) == {"emitted": 99, "timeout": 1}
    assert processes(pool) == 3  # with the others, then its tree, then alone


@never_starved
def test_a_program_that_always_hangs_does_not_hold_everyone(pool: SandboxPool) -> None:
    """Each hang costs a budget, so after some it is not tried any more."""
    outcomes = one_by_one(pool, a_call(HANGS, *events(20)))

    assert list(map(result, outcomes)) == ["timeout"] * 3 + ["suspended"] * 17
    grown = grow_all(pool, a_call_of(between(HANGS), *events(200)))
    assert kinds(grown) == {"suspended": 200, "emitted": 400}
    assert is_right(pool)


@never_starved
def test_the_suspended_are_known_by_their_streams(pool: SandboxPool) -> None:
    """One stream's input makes the program hang; another of the same code is not to blame."""
    hangs = a_function("if (A.lastUpdate === 2) while(true){} return 7")
    bad = a_call_of(a_call(hangs).wiring, an_event(at=2), name="@bad")
    good = a_call_of(a_call(hangs).wiring, an_event(at=3), name="@good")
    for _ in range(3):
        assert result(once(pool, bad)) == "timeout"

    assert set(pool.suspended()) == {hangs.id + "@bad"}
    assert result(once(pool, bad)) == "suspended"
    assert result(once(pool, good)) == 7


def test_refusals_in_the_middle_of_a_tree_change_nothing_else(pool: SandboxPool) -> None:
    """Limits of the caller come in the same way; what would follow is not reached."""
    wiring = between(a_program("return 7"))
    for node in (2, 3, 4):
        call = replace(a_call_of(wiring, *events(2)), refused={node: ("size-limit", "enough")})
        (grown,) = pool.grow("tenant", [call])

        expected = [[1, 7, 1, 8], [2, 7, 2, 8]]
        gone = {2: (1, 3), 3: (2,), 4: (3,)}[node]
        assert values(grown) == [
            [each for at, each in enumerate(tree) if at not in gone] for tree in expected
        ]
        (refused,) = [each for each in grown.ended if each.kind != "emitted"]
        assert (refused.node, refused.kind, refused.times) == (node, "size-limit", 2)
        assert refused.message == "enough"


def test_a_crash_counts_only_twice_in_a_row(pool: SandboxPool) -> None:
    """Whoever ends its process again, alone, is to blame."""
    ask, step = WorkerClient.grow, a_call(GOOD, an_event())
    deaths = iter([True, False, True, True, False, True, False, True, True])

    def dies(self: WorkerClient, *asked: Any) -> Any:
        if next(deaths):
            self._connection.shutdown(SHUT_RDWR)
        return ask(self, *asked)

    with mock.patch.object(WorkerClient, "grow", dies):
        assert [result(once(pool, step)) for _ in range(3)] == [2, "crash", 2]
        assert [pool.grow("tenant", [CALL])[0].failed for _ in range(2)] == [False, True]
    assert pool.suspended() == {}


def test_an_update_that_is_not_json_faults_its_own_step(pool: SandboxPool) -> None:
    """It should never come here, and must not stop the others if it does."""
    broken = a_call(GOOD, an_event(0, 1), Event(0, 2, b"{"), an_event(2, 3))

    first, second = pool.grow("tenant", [broken, CALL])
    grown = grow_all(pool, broken)

    assert (first.failed, values(second)) == (True, RIGHT)
    assert values(grown) == [[1], [], [3]]
    assert kinds(grown) == {"emitted": 2, "error": 1}


def test_inputs_that_are_too_large_fault_their_own_step(pool: SandboxPool) -> None:
    """No frame takes them; of the others of the tree nothing is lost."""
    large = [Last(3, 1, b" " * 2**20 + b"1")]
    nodes = (
        Node((Wake(0, 1, 0), Wake(1, 2, 0))),
        Node((), GOOD, ((0,),)),
        Node((), replace(GOOD, id="two", arguments=("a", "b")), ((0,), (3,))),
        Node(),
    )
    call = a_call_of(Wiring("large", nodes), an_event(1), lasts=large)

    assert pool.grow("tenant", [call])[0].failed
    grown = grow_all(pool, call)
    assert values(grown) == [[2]]
    assert kinds(grown) == {"emitted": 1, "error": 1}
    (error,) = [each for each in grown.ended if each.kind == "error"]
    assert (error.node, error.inputs) == (2, [2, 1])
    assert error.message == "more than 1048576 bytes of inputs"


def test_processor_time_is_counted_by_tenant(pool: SandboxPool) -> None:
    """Also that of a worker which was killed."""
    grow_all(pool, a_call(a_program(HANG), *events(3)), "busy")
    assert is_right(pool, "calm")

    used = pool.cpu_seconds()
    assert used["busy"] > used["calm"] > 0
