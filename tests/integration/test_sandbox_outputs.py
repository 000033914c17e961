"""What may leave the realm: well-formed text, and no more of it than an output may be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import orjson
import pytest
from sandbox_pools import a_pool
from sandbox_trees import Outcome, a_call, a_call_of, grow_all, once, one_by_one, value_of

from sandbox import ChannelCode, Program, SandboxPool
from sandbox.host.outputs import MAX_OUTPUT_BYTES
from sandbox.trees import Ended, Event, Last, Made, Node, Wake, Wiring

TOO_LONG = "error", f"the output has more than {MAX_OUTPUT_BYTES} bytes"
PARTS = {"ascii": "x", "two": "\u00e9", "three": "\u20ac", "pair": "\U0001f600", "escaped": "\n"}


@pytest.fixture(scope="module", params=["v8", "quickjs"])
def pool(request: pytest.FixtureRequest) -> Iterator[SandboxPool]:
    # A million characters take QuickJS a while.
    pool = a_pool(budget_ms=1000, engine=request.param)
    yield pool
    pool.close()


def a_program(code: str, type_: str = "string", **more: object) -> Program:
    channel = ChannelCode("t", code, type_)
    return Program(repr((code, type_, more)), "function", ("A", "B"), (channel,))


def updates_of(*values: object) -> tuple[bytes, ...]:
    return tuple(
        orjson.dumps({"channels": {"t": {"current-value": each}}, "lastUpdate": n + 1})
        for n, each in enumerate(values)
    )


def run(pool: SandboxPool, program: Program, *updates: bytes) -> list[Outcome]:
    """The program computed for one update after the other, from time 1 on."""
    events = [Event(0, n + 1, each) for n, each in enumerate(updates)]
    return one_by_one(pool, a_call(program, *events, own=1))


def ends(outcome: Outcome) -> tuple[str, str]:
    """How it ended, and why."""
    return (outcome.kind, outcome.message) if isinstance(outcome, Ended) else ("emitted", "")


# Fifteen strings and what is needed to come to any size; the input says how much.
LONG = """function(A) {
  var part = "%s", one = "", all = [], n = A.channels.t["current-value"];
  while (one.length < 15000) one += part;
  for (var i = 0; i < 15; i++) all.push(one);
  while (n > 60000) { all.push("x".repeat(60000)); n -= 60000; }
  all.push("x".repeat(n));
  return all;
}"""


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_an_output_may_be_so_many_bytes_and_not_one_more(pool: SandboxPool, part: str) -> None:
    """Bytes of UTF-8, alike for two engines, and for texts of one to four bytes."""
    program = a_program(LONG % part.replace("\n", "\\n"), "array[string]")
    (short,) = run(pool, program, *updates_of(0))
    assert isinstance(short, Made)
    # Each full string of the filling adds `"",`; the last one is there already.
    missing = MAX_OUTPUT_BYTES - len(short.document)
    strings = 0
    while missing - strings * 60003 > 60000:
        strings += 1
    fill = missing - 3 * strings
    assert fill - strings * 60000 <= 60000

    longest, beyond, again = run(pool, program, *updates_of(fill, fill + 1, fill))

    assert isinstance(longest, Made)
    assert len(longest.document) == MAX_OUTPUT_BYTES
    assert ends(beyond) == TOO_LONG
    assert isinstance(again, Made)
    assert again.timestamp == 3


def test_what_is_far_too_long_is_a_fault_and_not_a_lack_of_memory(pool: SandboxPool) -> None:
    """Sixty times one string of 64 KiB is an accident, not an attack."""
    code = """function() {
      var s = 'x', r = [];
      while (s.length < 60000) s += s;
      for (var i = 0; i < 4000; i++) r.push(s);
      return r;
    }"""
    nested = code.replace("return r", "return [[],r]")

    for program in (a_program(code, "array[string]"), a_program(nested, "array[array[string]]")):
        assert list(map(ends, run(pool, program, *updates_of(1)))) == [TOO_LONG]
    assert pool.suspended() == {}


def test_many_channels_are_one_output(pool: SandboxPool) -> None:
    """Each string is within its own bound."""
    code = "function(){var s='x';while(s.length<60000)s+=s;return s}"
    channels = tuple(ChannelCode(f"c{n}", code, "string") for n in range(20))
    program = Program("many", "function", ("A", "B"), channels)

    assert list(map(ends, run(pool, program, *updates_of(1)))) == [TOO_LONG]


def test_the_last_output_stays_after_one_that_is_too_long(pool: SandboxPool) -> None:
    """In a call of many trees as alone: the last output is the last that was."""
    code = """function(A, B) {
      var n = A.channels.t["current-value"], all = [];
      for (var i = 0; i < n; i++) all.push("x".repeat(60000));
      all.push(B === null ? "none" : B.channels.t["current-value"][0]);
      return all.length === 1 ? ["last was " + all[0]] : all;
    }"""
    program = a_program(code, "array[string]")
    updates = updates_of(0, 20, 0)
    events = [Event(0, n + 1, each) for n, each in enumerate(updates)]

    together = grow_all(pool, a_call(program, *events, own=1))
    alone = run(pool, program, *updates)

    assert [ends(each) for each in together.ended if each.kind == "error"] == [TOO_LONG]
    assert [each for tree in together.made for each in tree] == [alone[0], alone[2]]
    assert value_of(together.made[2][0]) == ["last was last was none"]


@pytest.mark.parametrize(
    ("code", "type_", "value"),
    [
        ("return '\\ud800'", "string", "\ufffd"),
        ("return 'a\\udc00b\\ud83d\\ude00'", "string", "a\ufffdb\U0001f600"),
        ("return ['\\ud83d', '\\ude00']", "array[string]", ["\ufffd", "\ufffd"]),
        ("return '\\ud83d' + '\\ude00'", "string", "\U0001f600"),
        ("return A.channels.t['current-value']", "string", "x\ufffdy"),
        ("return '\\u20ac'.repeat(65535) + '\\ud800'", "string", "\u20ac" * 65535 + "\ufffd"),
    ],
)
def test_half_a_surrogate_pair_leaves_as_a_replacement(
    pool: SandboxPool, code: str, type_: str, value: object
) -> None:
    """It has no UTF-8: what reads an output would stumble over it, delivery did."""
    update = b'{"channels":{"t":{"current-value":"x\\ud800y"}},"lastUpdate":1}'

    (outcome,) = run(pool, a_program(f"function(A){{{code}}}", type_), update)

    assert isinstance(outcome, Made)
    assert orjson.loads(outcome.document)["channels"]["t"]["current-value"] == value


def test_a_script_sees_its_own_output_as_it_left(pool: SandboxPool) -> None:
    """Whether its last output is threaded through a batch or comes from the store."""
    code = """function(A, B) {
      if (B === null) return "\\ud800";
      var last = B.channels.t["current-value"];
      return last + (last === "\\ufffd");
    }"""

    _, second = run(pool, a_program(code), *updates_of(1, 2))

    assert isinstance(second, Made)
    assert orjson.loads(second.document)["channels"]["t"]["current-value"] == "\ufffdtrue"


@pytest.mark.parametrize(
    ("code", "type_"),
    [
        ("throw new Error('\\ud800')", "string"),
        ("throw '\\udc00'", "string"),
        ("throw {toString: 1, x: '\\ud800'}", "string"),
        ("return '\\ud800'", "number"),
        ("return ['\\ud800']", "number"),
        ("return 'x'.repeat(99) + '\\ud83d\\ude00'", "number"),
        ("throw new Error('x'.repeat(299) + '\\ud83d\\ude00')", "number"),
    ],
)
def test_messages_are_well_formed(pool: SandboxPool, code: str, type_: str) -> None:
    """Also where one was cut in the middle of a pair."""
    (outcome,) = run(pool, a_program(f"function(A){{{code}}}", type_), *updates_of(1))

    assert isinstance(outcome, Ended)
    assert outcome.kind in {"error", "script-error"}
    outcome.message.encode()


def test_names_and_units_are_well_formed(pool: SandboxPool) -> None:
    """The API would not take such a document; the sandbox does not rely on that."""
    channels = (ChannelCode("n\ud800", "function(A){return 1}", "number", "\udc00"),)
    program = Program("names", "function", ("A", "B"), channels)

    (outcome,) = run(pool, program, *updates_of(1))
    assert isinstance(outcome, Made)
    assert orjson.loads(outcome.document)["channels"] == {
        "n\ufffd": {"current-value": 1, "unit": "\ufffd"}
    }


def test_timestamps_beyond_javascripts_numbers_stay_exact(pool: SandboxPool) -> None:
    """Nanoseconds: the neighbours are one number to a script, and two updates to us."""
    largest = 2**63 - 1
    code = "function(A, B){return B === null ? 0 : B.channels.t['current-value'] + 1}"
    program = a_program(code, "number")
    at_most = b'{"channels":{"t":{"current-value":7}},"lastUpdate":%d}'
    trees = [
        Event(0, largest - 4, b"{}"),
        Event(0, largest - 4, b"{}"),
        Event(0, largest - 3, b"{}"),
        Event(2, largest - 1, at_most % (largest - 1)),  # put from outside
        Event(0, largest - 1, b"{}"),
        Event(0, largest, b"{}"),
    ]

    grown = grow_all(pool, a_call(program, *trees, own=1))

    made = [(value_of(each), each.timestamp) for tree in grown.made for each in tree]
    assert made == [(0, largest - 4), (1, largest - 3), (8, largest)]
    document = b'{"channels":{"t":{"current-value":8}},"lastUpdate":%d}' % largest
    assert grown.made[5][0].document == document
    (stale,) = [each for each in grown.ended if each.kind == "stale"]
    last = f"trigger {largest - 1} is not newer than output {largest - 1}"
    assert (stale.times, stale.tree, stale.message) == (2, 4, last)
    (emitted,) = [each for each in grown.ended if each.kind == "emitted"]
    assert emitted.inputs == [largest, largest - 1]


def test_a_state_keeps_large_timestamps_exact(pool: SandboxPool) -> None:
    """As texts; it is read again with the next call."""
    largest = 2**63 - 1
    call = a_call(a_program("A => A.lastUpdate", "number"), by_input=True)

    def step(state: bytes | None, at: int) -> Outcome:
        lasts = [Last(2, largest - 8, b"{}", state), Last(1, 2**53, b"{}")]
        return once(pool, replace(call, lasts=lasts, trees=[[Event(0, at, b'{"lastUpdate":1}')]]))

    first = step(None, largest - 3)
    assert isinstance(first, Made)
    assert first.state is not None
    used = {"stream 0": str(largest - 3), "stream 1": str(2**53)}
    assert orjson.loads(first.state) == used
    assert ends(step(first.state, largest - 3))[0] == "stale"
    second = step(first.state, largest - 2)
    assert isinstance(second, Made)
    assert (second.timestamp, second.state) == (
        largest - 2,
        first.state.replace(str(largest - 3).encode(), str(largest - 2).encode()),
    )


def test_after_the_last_timestamp_nothing_is_newer(pool: SandboxPool) -> None:
    """A tick later would be more than anybody can store."""
    largest = 2**63 - 1
    program = a_program("A => 1", "number")

    def of_last(at: int) -> Outcome:
        lasts = [Last(2, at, b"{}", b'{"stream 0":4}')]
        return once(pool, a_call(program, Event(0, 5, b"{}"), lasts=lasts, by_input=True))

    before = of_last(largest - 1)
    assert isinstance(before, Made)
    assert before.timestamp == largest
    assert ends(of_last(largest)) == (
        "stale",
        "no timestamp is later than that of the last output",
    )


@pytest.mark.parametrize(
    "name", ["constructor", "__proto__", "toString", "", "5", "\ud800", "\u2028", "a/b", '"']
)
def test_a_stream_may_have_any_name(pool: SandboxPool, name: str) -> None:
    """In a state it is a key, and nothing else."""
    program = a_program("A => 1", "number")
    nodes = (
        Node((Wake(0, 1, 0),), name=name),
        Node((), program, ((0,), (1,)), own=1, by_input=True, name=name),
    )
    call = a_call_of(Wiring(f"named {name}", nodes), *[Event(0, at, b"{}") for at in (5, 5, 6, 3)])

    grown = grow_all(pool, call)

    assert [len(each) for each in grown.made] == [1, 0, 1, 0]
    states = [orjson.loads(each.state or b"") for tree in grown.made for each in tree]
    shown = name.replace("\ud800", "\ufffd")
    assert states == [{shown: 5}, {shown: 6}]
    one = a_call_of(call.wiring, *call.trees)
    assert [isinstance(each, Made) for each in one_by_one(pool, one)] == [True, False, True, False]
