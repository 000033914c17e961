"""What may leave the realm: well-formed text, and no more of it than an output may be."""

from __future__ import annotations

from collections.abc import Iterator

import orjson
import pytest
from sandbox_pools import a_pool

from sandbox import (
    Assignment,
    Call,
    ChannelCode,
    Computation,
    Fault,
    Outcome,
    Program,
    SandboxPool,
    Value,
)
from sandbox.host.answers import MAX_OUTPUT_BYTES

pytestmark = pytest.mark.real
TOO_LONG = Fault("error", f"the output has more than {MAX_OUTPUT_BYTES} bytes")
PARTS = {"ascii": "x", "two": "\u00e9", "three": "\u20ac", "pair": "\U0001f600", "escaped": "\n"}


@pytest.fixture(scope="module", params=["v8", "quickjs"])
def pool(request: pytest.FixtureRequest) -> Iterator[SandboxPool]:
    # A million characters take QuickJS a while.
    pool = a_pool(budget_ms=1000, engine=request.param)
    yield pool
    pool.close()


def a_program(code: str, type_: str = "string", **more: object) -> Program:
    channel = ChannelCode("t", code, type_)
    return Program(repr((code, type_, more)), "function", ("A", "B"), (channel,), self_argument=1)


def updates_of(*values: object) -> tuple[bytes, ...]:
    return tuple(
        orjson.dumps({"channels": {"t": {"current-value": each}}, "lastUpdate": n + 1})
        for n, each in enumerate(values)
    )


def run(pool: SandboxPool, program: Program, *updates: bytes) -> list[Outcome]:
    """The program folded over one update after the other, from time 1 on."""
    steps = tuple(Computation(0, n + 1, n + 1, (n, -1)) for n in range(len(updates)))
    return pool.run("tenant", [Call(program, None, None, updates, steps)])[0]


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
    assert isinstance(short, Value)
    # Each full string of the filling adds `"",`; the last one is there already.
    missing = MAX_OUTPUT_BYTES - len(short.document)
    strings = 0
    while missing - strings * 60003 > 60000:
        strings += 1
    fill = missing - 3 * strings
    assert fill - strings * 60000 <= 60000

    longest, beyond, again = run(pool, program, *updates_of(fill, fill + 1, fill))

    assert isinstance(longest, Value)
    assert len(longest.document) == MAX_OUTPUT_BYTES
    assert beyond == TOO_LONG
    assert isinstance(again, Value)
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

    assert run(pool, a_program(code, "array[string]"), *updates_of(1)) == [TOO_LONG]
    assert run(pool, a_program(nested, "array[array[string]]"), *updates_of(1)) == [TOO_LONG]
    assert pool.suspended() == {}


def test_many_channels_are_one_output(pool: SandboxPool) -> None:
    """Each string is within its own bound."""
    code = "function(){var s='x';while(s.length<60000)s+=s;return s}"
    channels = tuple(ChannelCode(f"c{n}", code, "string") for n in range(20))
    program = Program("many", "function", ("A", "B"), channels)
    steps = (Computation(0, 1, 1, (0, -1)),)

    assert pool.run("tenant", [Call(program, None, None, updates_of(1), steps)]) == [[TOO_LONG]]


def test_the_fold_goes_on_from_the_output_before_one_that_is_too_long(pool: SandboxPool) -> None:
    """In a batch as alone: the last output is the last that was."""
    code = """function(A, B) {
      var n = A.channels.t["current-value"], all = [];
      for (var i = 0; i < n; i++) all.push("x".repeat(60000));
      all.push(B === null ? "none" : B.channels.t["current-value"][0]);
      return all.length === 1 ? ["last was " + all[0]] : all;
    }"""
    program = a_program(code, "array[string]")
    updates = updates_of(0, 20, 0)
    together = run(pool, program, *updates)
    first = run(pool, program, updates[0])[0]
    assert isinstance(first, Value)
    alone = pool.run(
        "tenant",
        [Call(program, first.document, 1, updates[2:], (Computation(0, 3, 3, (0, -1)),))],
    )[0]

    assert together[1] == TOO_LONG
    assert together[2] == alone[0]


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

    assert isinstance(outcome, Value)
    assert orjson.loads(outcome.document)["channels"]["t"]["current-value"] == value


def test_a_script_sees_its_own_output_as_it_left(pool: SandboxPool) -> None:
    """Whether its last output is threaded through a batch or comes from the store."""
    code = """function(A, B) {
      if (B === null) return "\\ud800";
      var last = B.channels.t["current-value"];
      return last + (last === "\\ufffd");
    }"""

    _, second = run(pool, a_program(code), *updates_of(1, 2))

    assert isinstance(second, Value)
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

    assert isinstance(outcome, Fault)
    assert outcome.kind in {"error", "script-error"}
    outcome.message.encode()


def test_names_and_units_are_well_formed(pool: SandboxPool) -> None:
    """The API would not take such a document; the sandbox does not rely on that."""
    channels = (ChannelCode("n\ud800", "function(A){return 1}", "number", "\udc00"),)
    program = Program("names", "function", ("A", "B"), channels)

    (outcome,) = run(pool, program, *updates_of(1))
    assert isinstance(outcome, Value)
    assert orjson.loads(outcome.document)["channels"] == {
        "n\ufffd": {"current-value": 1, "unit": "\ufffd"}
    }


def test_timestamps_beyond_javascripts_numbers_stay_exact(pool: SandboxPool) -> None:
    """Nanoseconds: the neighbours are one number to a script, and two updates to us."""
    largest = 2**63 - 1
    code = "function(A, B){return B === null ? 0 : B.channels.t['current-value'] + 1}"
    program = a_program(code, "number")
    steps = (
        Computation(0, largest - 4, largest - 3, (0, -1)),
        Computation(0, largest - 3, largest - 3, (0, -1)),
        Computation(0, largest - 2, largest - 2, (0, -1)),
        Assignment(1, largest - 1),
        Computation(0, largest, largest, (0, -1)),
    )
    updates = (
        updates_of(1)[0],
        b'{"channels":{"t":{"current-value":7}},"lastUpdate":%d}' % (largest - 1),
    )

    outcomes = pool.run("tenant", [Call(program, None, None, updates, steps)])[0]

    def value(number: int, at: int) -> Value:
        return Value(at, b'{"channels":{"t":{"current-value":%d}},"lastUpdate":%d}' % (number, at))

    stale = f"trigger {largest - 3} is not newer than output {largest - 3}"
    assert outcomes == [
        value(0, largest - 3),
        Fault("stale", stale),
        value(1, largest - 2),
        None,
        value(8, largest),
    ]
