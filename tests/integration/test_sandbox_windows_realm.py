"""Windows in the locked realm: no program changes one, makes one, or finds a way out by one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from sandbox_pools import a_pool
from sandbox_trees import BOUNDS, a_call, a_call_of, once, value_of
from sandbox_windows import a_program, aggregated, an_event

from sandbox import SandboxPool
from sandbox.trees import Ended, Made, Node, Wake, Wiring


@pytest.fixture(scope="module", params=["v8", "quickjs"])
def pool(request: pytest.FixtureRequest) -> Iterator[SandboxPool]:
    """Without the allow-list: the realm must hold by itself, in either engine."""
    pool = a_pool(allow_list=False, engine=request.param)
    yield pool
    pool.close()


UPDATES = [{"c": 1, "room": "a", "shape": [1, [2]]}, {"c": 2, "room": "b"}]
WINDOW = {
    **aggregated(UPDATES, sketches=True),
    "by": {"room": {"a": aggregated(UPDATES[:1]), "b": aggregated(UPDATES[1:])}},
    "updates": [{"channels": {"c": {"current-value": 1}}, "lastUpdate": 1}],
}

SEEN = """JSON.stringify([
  air, Object.keys(air), air.x, air[0], air.sum('c'), air.mean('c'), air.counts('c'), air.sum.x,
  air.quantile('c', 1), air.first('shape'), air.updates, Object.keys(air.by('room')),
  air.by('room').a.sum('c'), air.by('room').a.x, air.by('room').x, typeof air.constructor,
  air.constructor === Object, String(air), typeof leaked,
])""".replace("\n", " ")
"""What a program sees of a window."""

POLLUTIONS = [
    "air.count = 9",
    "air.x = 1",
    "air[0] = 1",
    "delete air.count",
    "air.sum = () => 9",
    "air.sum.x = 1",
    "air.sum.prototype = {x: 1}",
    "air.sum.constructor.x = 1",
    "air.__proto__.x = 1",
    "air.constructor.prototype.x = 1",
    "air.constructor = 1",
    "Object.assign(air, {x: 1})",
    "Object.freeze(air.sum)",
    "air.by('room').x = 1",
    "delete air.by('room').a",
    "air.by('room').a.x = 1",
    "air.by('room').a = air",
    "air.by('room').__proto__ = {x: 1}",
    "air.updates.push(1)",
    "air.updates[0].channels.c['current-value'] = 9",
    "air.updates = []",
    "air.first('shape')[1][0] = 9",
    "air.toJSON().sum.c = 9",
    "air.toJSON().by.room.a.sum.c = 9",
    "air.toJSON().sketches.c.positive[0][1] = 900",
    "air.toJSON().x = 1",
    "Math.floor = () => 0",
    "Object.hasOwn = () => true",
    "Array.prototype[Symbol.iterator] = null",
    "Object.defineProperty(Object.prototype, 'a', {set(v) {}})",
    "leaked = air",
    "[a, b] = [air, air.by('room')]",
]


def a_region(*bodies: str) -> Wiring:
    """Composites of the same windows, in this order."""
    programs = [a_program(f"function(air) {{ {each} }}", "air") for each in bodies]
    wakes = tuple(Wake(number, number + 1, 0) for number in range(len(programs)))
    nodes = [Node(code=each, inputs=((0,),), windowed=True) for each in programs]
    return Wiring(repr(bodies), (Node(wakes), *nodes))


def told(pool: SandboxPool, body: str, window: Any = WINDOW) -> Any:
    """What a function's body returns, or how it ended."""
    program = a_program(f"function(air) {{ {body} }}", "air")
    found = once(pool, a_call(program, an_event(window), windowed=True))
    return value_of(found) if isinstance(found, Made) else found


@pytest.mark.parametrize("pollution", POLLUTIONS)
def test_who_computes_next_sees_the_same_window(pool: SandboxPool, pollution: str) -> None:
    """Of the same update, and in the next tree."""
    clean = told(pool, f"return {SEEN}")
    assert isinstance(clean, str), clean
    tried = f"try {{ {pollution} }} catch (error) {{}}"
    region = a_region(f"{tried} return 'done'", f"return {SEEN}")
    events = [an_event(WINDOW, at=at) for at in (1, 2)]

    (found,) = pool.grow("tenant", [a_call_of(region, *events, bounds=BOUNDS)])

    assert [[value_of(made) for made in tree] for tree in found.made] == [["done", clean]] * 2


@pytest.mark.parametrize(
    "change", ["air.count = 9", "air.sum = () => 9", "air.by('room').x = 1", "air.updates.push(1)"]
)
def test_a_program_does_not_change_its_own_window(pool: SandboxPool, change: str) -> None:
    """So channels of one stream see the same, too."""
    assert told(pool, f"try {{ {change} }} catch (error) {{}} return {SEEN}") == told(
        pool, f"return {SEEN}"
    )


@pytest.mark.parametrize(
    "code",
    [
        "air.sum.call({sum: {c: 1}}, 'c')",
        "air.sum.call(null, 'c')",
        "air.sum.apply(air.by('room'), ['c'])",
        "({__proto__: air}).sum('c')",
        "({__proto__: air}).updates",
        "Object.assign({}, air).sum('c')",
        "new air.sum('c')",
        "air.toJSON.call({})",
        "new (air.constructor)({sum: {c: 1}}).sum('c')",
        "air.sum.constructor('return 1')()",
        "air.sum.caller.x",
        "air.by('room').constructor('return 1')()",
        "(function f() { return f.caller.arguments[0] })()",
    ],
)
def test_only_windows_are_windows(pool: SandboxPool, code: str) -> None:
    """No object takes the place of one, and no method leads out of the realm."""
    found = told(pool, f"return String({code})")

    assert isinstance(found, Ended), found
    assert found.kind == "script-error"


def test_a_method_may_be_lent_to_another_window(pool: SandboxPool) -> None:
    """It has nothing of its own."""
    assert told(pool, "return String(air.sum.call(air.by('room').b, 'c'))") == "2"


def test_nothing_of_a_window_is_left_for_the_next_computation(pool: SandboxPool) -> None:
    """What is made once is the window's, which is the computation's."""
    body = "var before = typeof kept; kept = air.by('room'); return before"

    assert [told(pool, body) for _ in range(3)] == ["undefined"] * 3


@pytest.mark.parametrize(
    "body",
    [
        "return String(air.by('__proto__').c)",
        "return String(Object.keys(air.by('room').__proto__.by('x')))",
        "return String(air.first('c').constructor.constructor('return 1')())",
    ],
)
def test_names_of_the_language_lead_nowhere(pool: SandboxPool, body: str) -> None:
    """A window has no such channel."""
    found = told(pool, body)

    assert isinstance(found, Ended)
    assert found.kind == "script-error"


def test_a_channel_may_hide_no_method(pool: SandboxPool) -> None:
    """Its values are under its name, whatever that is."""
    window = aggregated([{"sum": 5, "count": 7, "__proto__": 9}])

    found = told(
        pool, "return JSON.stringify([air.count, air.sum('sum'), air.sum('count')])", window
    )

    assert json.loads(found) == [1, 5, 7]
