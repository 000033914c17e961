"""What functions and expressions read of windows, in both engines, in trees and step by step."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from statistics import stdev
from typing import Any

import pytest
from sandbox_pools import a_pool
from sandbox_trees import a_call, once, step_by_step, told, value_of
from sandbox_windows import BEGIN, END, a_program, aggregated, an_event, by, numbers, saying

from sandbox import Binding, ChannelCode, Program, SandboxPool
from sandbox.trees import Call, Ended, Grown, Made
from servioticy.domain.windows.sketches import Sketch


@pytest.fixture(scope="module", params=["v8", "quickjs"])
def pool(request: pytest.FixtureRequest) -> Iterator[SandboxPool]:
    pool = a_pool(engine=request.param)
    yield pool
    pool.close()


def grown(pool: SandboxPool, call: Call) -> Grown:
    """What comes of a call, which is the same step by step; the allow-list lets it pass."""
    for node in call.wiring.nodes:
        assert node.code is None or pool.check(node.code) == []
    (found,) = pool.grow("tenant", [call])
    assert told(found) == told(step_by_step(pool, call))
    return found


def said(pool: SandboxPool, expression: str, *windows: Mapping[str, Any]) -> Any:
    """What an expression over `air` and `water` is, or what it throws, without the place."""
    windows = (*windows, numbers())[:2]
    found = grown(pool, a_call(saying(expression), an_event(*windows), windowed=True))
    return outcome(found)


def outcome(found: Grown) -> Any:
    if found.made[0]:
        return json.loads(value_of(found.made[0][0]))
    (ended,) = found.ended
    assert ended.kind == "script-error"
    return ended.message.partition(" (channel ")[0]


AIR = aggregated([
    {"c": 1, "room": "a", "shape": [1, [2]]}, {"c": 4, "room": "b"}, {"c": -2.5, "d": 7},
])  # fmt: skip
WATER = numbers(10, 30)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("[air.count, air.start, air.end]", [3, BEGIN, END]),
        ("air.sum('c')", 2.5),
        ("air.mean('c')", 2.5 / 3),
        ("[air.min('c'), air.max('c'), air.min('d'), air.max('d')]", [-2.5, 4, 7, 7]),
        ("air.stdev('c')", stdev([1, 4, -2.5])),
        ("air.stdev('d')", None),
        ("[air.first('c'), air.last('c')]", [1, -2.5]),
        ("[air.first('room'), air.last('room')]", ["a", "b"]),
        ("[air.counts('c'), air.counts('d'), air.counts('x')]", [3, 1, 0]),
        ("[air.sum('room'), air.mean('room'), air.min('x'), air.last('x')]", [None] * 4),
        ("air.first('shape')", [1, [2]]),
        ("[water.count, water.mean('c')]", [2, 20]),
        ("$input.max('c')", 4),
        ("Object.keys(air)", ["count", "start", "end", "early"]),
        ("air.early", False),
        ("air", AIR),
        ("[air, water]", [AIR, WATER]),
    ],
)  # fmt: skip
def test_what_a_window_tells(pool: SandboxPool, expression: str, expected: Any) -> None:
    """What is not there is null."""
    assert said(pool, expression, AIR, WATER) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("[water.count, water.start, water.end]", [0, BEGIN, END]),
        ("[water.sum('c'), water.mean('c'), water.stdev('c'), water.first('c')]", [None] * 4),
        ("water.counts('c')", 0),
        ("water.quantile('c', 0.5)", None),
        ("water.by('room')", {}),
        ("water.updates", []),
        ("water", {"count": 0, "start": BEGIN, "end": END}),
    ],
)
def test_an_input_without_updates_tells_nothing(
    pool: SandboxPool, expression: str, expected: Any
) -> None:
    """It throws nothing either: code asks all its inputs alike."""
    assert said(pool, expression, AIR, numbers()) == expected


METHODS = ("sum", "mean", "min", "max", "stdev", "first", "last", "counts", "by")


@pytest.mark.parametrize("channel", ["", "7", "null", "['c']", "{}"])
def test_a_channel_is_named_by_a_text(pool: SandboxPool, channel: str) -> None:
    """Whatever the method, and also where there are no updates."""
    for window in ("air", "water"):
        for method in METHODS:
            message = said(pool, f"{window}.{method}({channel})", AIR)
            assert (
                message == f"TypeError: .{method}('channel') takes the name of a channel, a text"
            )
        message = said(pool, f"{window}.quantile({channel or 'undefined'}, 0.5)", AIR)
        assert message.startswith("TypeError: .quantile('channel')")


# ---- Quantiles. ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_quantiles_are_those_of_the_sketch(pool: SandboxPool, seed: int) -> None:
    """As Python reads it: negative numbers, zeros, and positive ones."""
    chance = random.Random(seed)
    some = [chance.choice([chance.gauss(0, 100), 0, chance.expovariate(1e-6)]) for _ in range(200)]
    values = [round(each, 3) for each in some][: chance.choice([1, 7, 200])]
    sketch = Sketch()
    for each in values:
        sketch.add(each)
    parts = [0, 0.001, 0.1, 0.25, 0.5, 0.75, 0.9, 0.999, 1]

    found = said(pool, f"{parts}.map(q => air.quantile('c', q))", numbers(*values, sketches=True))

    expected = [sketch.quantile(q, min(values), max(values)) for q in parts]
    assert found == pytest.approx(expected, rel=1e-9)
    assert (found[0], found[-1]) == pytest.approx((min(values), max(values)), rel=0.01)


@pytest.mark.parametrize("q", ["-0.1", "1.1", "NaN", "'0.5'", "null", "undefined"])
def test_a_quantile_is_between_none_and_all(pool: SandboxPool, q: str) -> None:
    message = said(pool, f"air.quantile('c', {q})", numbers(1, 2, sketches=True))

    assert message == "RangeError: .quantile('channel', q) takes a number from 0 to 1"


def test_the_quantile_of_what_has_no_numbers_is_null(pool: SandboxPool) -> None:
    window = aggregated([{"c": 1, "room": "a"}], sketches=True)

    assert said(pool, "[air.quantile('room', 0.5), air.quantile('x', 0.5)]", window) == [None] * 2


@pytest.mark.parametrize(
    ("expression", "what"),
    [
        ("air.quantile('c', 0.5)", "quantiles"),
        ("air.by('room')", "aggregates by 'room'"),
        ("air.updates", "updates"),
    ],
)
def test_what_is_kept_on_demand_says_so_where_it_is_not_there(
    pool: SandboxPool, expression: str, what: str
) -> None:
    """Code may ask in a way that cannot be seen in its text."""
    message = said(pool, expression, AIR)

    assert message.startswith(
        f"TypeError: {what} are not kept here: code has to ask for them as ."
    )


# ---- By the values of a channel, and updates. ------------------------------------------------

ROOMS = by("room", [
    {"c": 1, "room": "a"}, {"c": 4, "room": "b"}, {"c": 2, "room": "a"}, {"c": 9, "room": "7"},
])  # fmt: skip


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("Object.keys(air.by('room'))", ["7", "a", "b"]),
        ("Object.values(air.by('room')).map(of => of.mean('c'))", [9, 1.5, 4]),
        ("air.by('room').a.count", 2),
        ("[air.by('room').c === undefined, air.by('room').toString === undefined]", [True, True]),
        ("air.by('room') === air.by('room')", True),
        ("[air.by('room').b.start, air.by('room').b.end]", [BEGIN, END]),
        ("air.by('room')", ROOMS["by"]["room"]),
        ("air.by('room').a.by('room')", "TypeError: aggregates by 'room' are not kept here: code"
         " has to ask for them as .by('channel'), of a whole window"),
    ],
)  # fmt: skip
def test_by_the_values_of_a_channel(pool: SandboxPool, expression: str, expected: Any) -> None:
    """Each is a window of its own."""
    assert said(pool, expression, ROOMS) == expected


NAMES = ["__proto__", "constructor", "prototype", "toString", "hasOwnProperty", "", "0", "\u20ac"]


@pytest.mark.parametrize("name", NAMES)
def test_any_text_is_the_name_of_a_channel(pool: SandboxPool, name: str) -> None:
    """Whether it is there or not: what objects inherit is nobody's channel."""
    text = json.dumps(name)
    ask = f"[air.sum({text}), air.last({text}), air.counts({text}), air.quantile({text}, 1)]"

    assert said(pool, ask, aggregated([{name: 3}], sketches=True)) == [3, 3, 1, 3]
    assert said(pool, ask, aggregated([{"c": 3}], sketches=True)) == [None, None, 0, None]


@pytest.mark.parametrize("name", NAMES)
def test_any_text_is_a_key(pool: SandboxPool, name: str) -> None:
    """Keys are values of channels, and anybody may send them."""
    window = by(name, [{"c": 5, name: name}, {"c": 6, name: name}])
    ask = f"Object.entries(air.by({json.dumps(name)})).map(([key, of]) => [key, of.sum('c')])"

    assert said(pool, ask, window) == [[name, 11]]
    assert said(pool, f"air.by({json.dumps(name)})", numbers(1)).startswith("TypeError")


def test_updates_are_whole_documents(pool: SandboxPool) -> None:
    updates = [{"channels": {"c": {"current-value": n}}, "lastUpdate": n} for n in (1, 2)]

    found = said(
        pool, "air.updates.map(each => iot.value(each))", {**numbers(1, 2), "updates": updates}
    )

    assert found == [1, 2]


def test_updates_that_were_too_many_are_told(pool: SandboxPool) -> None:
    """Whatever asks for them ends; all else is there."""
    window = {**numbers(1, 2), "updates": None, "updatesDropped": 1000}

    assert said(pool, "air.sum('c')", window) == 3
    message = said(pool, "air.updates.length", window)
    assert (
        message
        == "RangeError: more than 1000 updates are in this window: they are not given one by one"
    )


# ---- Which windows. ----------------------------------------------------------------------


def test_each_computation_sees_the_windows_that_wake_it(pool: SandboxPool) -> None:
    """Two of them in one tree: the second has come before anything of the first is computed."""
    program = saying("[air.sum('c'), water.sum('c')]")
    first = an_event(numbers(1), numbers(2), at=10, path=(1,))
    second = an_event(numbers(3), numbers(4), at=20, path=(2,))

    found = grown(pool, a_call(program, [first, second], windowed=True))

    assert [json.loads(value_of(made)) for made in found.made[0]] == [[1, 2], [3, 4]]
    assert [made.timestamp for made in found.made[0]] == [10, 20]
    (ended,) = found.ended
    assert (ended.times, ended.inputs) == (2, [20, 20])


def test_of_older_windows_nothing_newer_is_read(pool: SandboxPool) -> None:
    """They are stale for a composite that has an output since, and only then."""
    program = saying("[air.sum('c'), water.sum('c')]")
    trees = [an_event(numbers(n), numbers(-n), at=at) for n, at in ((1, 20), (2, 10), (3, 21))]

    found = grown(pool, a_call(program, *trees, windowed=True))

    assert [[json.loads(value_of(m)) for m in tree] for tree in found.made] == [
        [[1, -1]],
        [],
        [[3, -3]],
    ]
    assert {each.kind: each.times for each in found.ended} == {"emitted": 2, "stale": 1}


def test_its_own_last_output_is_no_window(pool: SandboxPool) -> None:
    """It is the stream's last update, as it always is."""
    code = "function(air, B) { return air.sum('c') + (B === null ? 0 : iot.value(B)) }"
    program = a_program(code, "air", "B", type_="number")
    trees = [an_event(numbers(n), None, at=n) for n in (1, 2, 3)]

    found = grown(pool, a_call(program, *trees, own=1, windowed=True))

    assert [value_of(made) for tree in found.made for made in tree] == [1, 3, 6]
    (ended,) = found.ended
    assert ended.inputs == [3, 2]


def test_inputs_that_come_with_windows_are_never_missing(pool: SandboxPool) -> None:
    call = a_call(
        saying("water.count"), an_event(numbers(1), numbers()), skips=True, windowed=True
    )

    assert outcome(grown(pool, call)) == 0


@pytest.mark.parametrize(
    ("pre", "post", "kind"),
    [
        ("air.count >= 2", None, "emitted"),
        ("air.count >= 3", None, "filtered"),
        ("air.mean('c') > water.mean('c')", None, "filtered"),
        (None, "iot.value($result) === air.max('c')", "emitted"),
        (None, "iot.value($result) !== air.max('c')", "filtered"),
        ("$input.updates", None, "script-error"),
    ],
)
def test_filters_see_windows(
    pool: SandboxPool, pre: str | None, post: str | None, kind: str
) -> None:
    program = a_program("air => air.max('c')", "air", "water", type_="number", pre=pre, post=post)
    call = a_call(program, an_event(numbers(1, 2), numbers(5)), windowed=True)

    (ended,) = grown(pool, call).ended

    assert ended.kind == kind


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (("mean", "c"), 1.5),
        (("count",), 3),
        (("mean", "x"), None),
        (("by", "room", "a", "sum", "c"), 3),
        ((("names", "by"), ("names", "room"), ("children",), ("names", "count")), [2, 1]),
    ],
)
def test_expressions_read_what_is_in_a_window(
    pool: SandboxPool, path: tuple[Any, ...], expected: Any
) -> None:
    """By their paths; of each input its own."""
    rooms = by("room", [{"c": 1, "room": "a"}, {"c": 2, "room": "a"}, {"c": "b", "room": "b"}])
    bindings = (Binding("$0", 1, path), Binding("$1", 0, ("count",)))
    channels = (ChannelCode("t", "JSON.stringify([$0, $1])", "string"),)
    program = Program(repr(path), "expression", ("air", "water"), channels, bindings=bindings)

    found = grown(pool, a_call(program, an_event(numbers(1, 2), rooms), windowed=True))

    assert outcome(found) == [expected, 2]


def test_a_window_of_ten_thousand_sensors_comes_in_one(pool: SandboxPool) -> None:
    """It is larger than a frame, and takes an engine longer to read than code may run."""
    updates = [{"c": n, "sensor": f"sensor-{n}"} for n in range(10_000)]
    window = {**numbers(1), "by": {"sensor": {u["sensor"]: aggregated([u]) for u in updates}}}
    code = """function(air) {
      var sum = 0;
      for (var each of Object.values(air.by('sensor'))) sum += each.sum('c');
      return sum;
    }"""
    call = a_call(a_program(code, "air", type_="number"), an_event(window), windowed=True)

    found = once(pool, call)

    assert isinstance(found, Made), found
    assert value_of(found) == sum(range(10_000))


def test_a_window_may_be_too_large(pool: SandboxPool) -> None:
    """It ends as the inputs of any computation do that are."""
    window = {**numbers(1), "updates": ["x" * 1000] * 4200}

    found = once(pool, a_call(saying("air.count"), an_event(window, numbers(1)), windowed=True))

    assert isinstance(found, Ended)
    assert (found.kind, found.message) == ("error", "more than 4194304 bytes of inputs")
    assert found.inputs == [END - 1, END - 1]
