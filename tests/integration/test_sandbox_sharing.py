"""Composites get the same inputs, and equal ones the same code: they can change none of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from realm_programs import UPDATE, a_program, a_region, told
from sandbox_pools import a_pool
from sandbox_trees import a_call, a_call_of, value_of

from sandbox import SandboxPool
from sandbox.trees import Call, Event, Node, Wake, Wiring


@pytest.fixture(scope="module", params=["v8", "quickjs"])
def pool(request: pytest.FixtureRequest) -> Iterator[SandboxPool]:
    """Without the allow-list: the realm must hold by itself, in either engine."""
    pool = a_pool(allow_list=False, engine=request.param)
    yield pool
    pool.close()


SEEN = "return JSON.stringify(A) + Object.keys(A) + A.channels.t['current-value']"


@pytest.mark.parametrize(
    "change",
    [
        "A.x = 1",
        "A.lastUpdate = 7",
        "A.channels.t['current-value'] = 9",
        "A.channels = {t: {'current-value': 9}}",
        "A.channels.t = 1",
        "A.channels.u = {}",
        "A.channels.t.list[0] = 9",
        "A.channels.t.list.push(9)",
        "A.channels.t.list.length = 0",
        "A.channels.t.list.sort()",
        "A.channels.t.list.reverse()",
        "A.channels.t.list.fill(7)",
        "delete A.lastUpdate",
        "delete A.channels.t.list[0]",
        "Object.assign(A, {x: 1})",
        "Object.assign(A.channels.t.list, [9])",
        "Object.defineProperty(A, 'x', {value: 1})",
        "A.__proto__ = {x: 1}",
        "A.toJSON = () => 7",
        "A.channels.t.toJSON = () => 7",
        "({set x(v) { A.lastUpdate = v }}).x = 7",
        "$input.lastUpdate = 7",
        "A = {lastUpdate: 7}",
        "$input = A = null",
    ],
)
def test_an_input_that_is_shared_cannot_be_changed(pool: SandboxPool, change: str) -> None:
    """Composites of a tree get the same object, which is not copied; so do later trees."""
    update = b'{"channels":{"t":{"current-value":4,"list":[3,1,2]}},"lastUpdate":%d}'
    region = a_region(f"{change}; return 'done'", SEEN)
    events = [Event(0, at, update % at) for at in (1, 2)]

    found = told(pool, a_call_of(region, *events))

    for at, tree in zip((1, 2), found, strict=True):
        assert tree[-1] == (update % at).decode() + "channels,lastUpdate4"


def test_an_output_that_others_read_cannot_be_changed(pool: SandboxPool) -> None:
    """It is parsed once, for all that it wakes and for its own composite the next time."""
    adds = "return B === null ? 'first' : B.channels.t['current-value'] + '!'"
    spoil = "try { A.channels.t['current-value'] = 'spoilt' } catch (e) {} return 'done'"
    made, spoils = a_program(adds, inputs="AB"), a_program(spoil)
    reads = a_program("return A.channels.t['current-value']")
    nodes = (
        Node((Wake(0, 1, 0),)),
        Node((Wake(0, 2, 0), Wake(1, 3, 0)), made, ((0,), (1,)), own=1),
        Node((), spoils, ((1,),)),
        Node((), reads, ((1,),)),
    )
    call = a_call_of(Wiring("output", nodes), *[Event(0, at, UPDATE) for at in (1, 2, 3)])

    assert [tree[2] for tree in told(pool, call)] == ["first", "first!", "first!!"]


def test_equal_programs_of_two_devices_share_nothing_but_code(pool: SandboxPool) -> None:
    """They are compiled once, and each gets its own inputs and its own last output."""
    body = (
        "n = typeof n === 'undefined' ? 1 : n + 1; try { arguments.callee.n = 1 } catch (e) {}"
        "return [n, A.channels.t['current-value'], B === null ? 'none' : B.lastUpdate].join()"
    )
    program = a_program(body, inputs="AB")

    def device(value: int, *times: int) -> Call:
        update = b'{"channels":{"t":{"current-value":%d}},"lastUpdate":1}' % value
        return a_call(program, *[Event(0, at, update) for at in times], own=1)

    first, second = pool.grow("tenant", [device(4, 1, 2, 3), device(7, 5, 6)])

    assert [value_of(each) for (each,) in first.made] == ["1,4,none", "1,4,1", "1,4,2"]
    assert [value_of(each) for (each,) in second.made] == ["1,7,none", "1,7,5"]
