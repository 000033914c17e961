"""A worker that says anything: nothing it says gets past the pool unless it could be true."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace

import orjson
import pytest
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sandbox_pools import a_pool
from scripted_workers import Scripted

from sandbox import ChannelCode, InfraError, Program, SandboxPool, TookTooLong, protocol
from sandbox.host.answers import MAX_MESSAGE
from sandbox.host.checking import Checking
from sandbox.host.outputs import MAX_OUTPUT_BYTES
from sandbox.host.spare import Spare
from sandbox.host.workers import Workers
from sandbox.trees import Bounds, Call, Event, Grown, Last, Made, Node, Wake, Wiring

PROGRAM = Program(
    "p",
    "function",
    ("A",),
    (ChannelCode("t", "A", "number"), ChannelCode("s", "A", "string", "m")),
)
ANOTHER = replace(PROGRAM, id="another")
WIRING = Wiring(
    "w",
    (
        Node((Wake(0, 1, 0), Wake(1, 2, 0))),
        Node((Wake(0, 2, 1),), PROGRAM, ((0,),)),
        Node((), PROGRAM, ((0,), (1,)), by_input=True),
    ),
)
TREES = [[Event(0, 6, b"0")], [Event(0, 7, b"0"), Event(1, 9, b"0", (3,))]]
CALL = Call(WIRING, ["", "one", "two"], [Last(1, 4, b"0")], TREES, Bounds(4, 10))
STEP = Call(WIRING, CALL.names, [], [[Event(0, 6, b"0", only=0)]], CALL.bounds)

CHANNELS = b'{"t":{"current-value":1},"s":{"current-value":"","unit":"m"}}'
OUTPUT = b'{"channels":' + CHANNELS + b',"lastUpdate":%d}'
ROWS = b'[[0,0,1,6,%b]],[[0,1,2,7,%b,{"x":7}],[1,0,2,9,%b,{"x":7,"y":9}]]' % (
    OUTPUT % 6,
    OUTPUT % 7,
    OUTPUT % 9,
)
ENDED = (
    b'[1,"emitted",1,0,0,"",[6]],[2,"emitted",2,1,1,"",[7,9]],[1,"stale",1,1,0,"x"],'
    b'[2,"script-error",2,0,1,"y",[6,null]]'
)
ANSWER = b"[[[" + ROWS + b"],[" + ENDED + b"],[[1,3]],-1]]"
OF_STEP = b'[[[[[0,0,1,6,%b]]],[[1,"emitted",1,0,0,"",[6]]],[],-1]]' % (OUTPUT % 6)


@pytest.fixture(scope="module")
def zygote() -> Iterator[Scripted]:
    zygote = Scripted()
    yield zygote
    zygote.close()
    zygote.end()


def a_scripted_pool(zygote: Scripted, *answers: bytes) -> SandboxPool:
    pool = a_pool(allow_list=False)
    zygote.answers = answers
    pool._zygote = zygote  # type: ignore[assignment]
    pool._spare = Spare(zygote)  # type: ignore[arg-type]
    pool._shared.workers = Workers(pool._spare, pool._usage, pool._exclusion, 64, 60)
    pool._workers = pool._shared.workers
    pool._checking = Checking(zygote, pool._spare, 60, allow_list=False)  # type: ignore[arg-type]
    return pool


READY = protocol.frame(protocol.READY, b"{}")
DEFINED = protocol.frame(protocol.DEFINED, b"")
WIRED = protocol.frame(protocol.WIRED, b"")
GROWN = protocol.frame(protocol.GROWN, ANSWER)
GROWN_STEP = protocol.frame(protocol.GROWN, OF_STEP)
PROBLEMS = protocol.frame(protocol.PROBLEMS, b'[[["syntax","x"]],[]]')

SNIPPETS = st.sampled_from(
    [
        *(b"9" * 400, b"9" * 5000, b"-", b"1e999", b"NaN", b"null", b"true", b"[]", b"{}", b"0"),
        *(b"\n", b" ", b",", b"0", b"1", b"2", b"stale", b"timeout", b"crash", b'"', b"\xff"),
        *(b"\\ud800", b"\\u0000", b'"unit":1', b'"lastUpdate":7', b'"t":{}', b"[" * 3000),
        *(b"[[", b"]]", b"],[", b"[],", b"-1", b"[0,0,1,6,{}]", b"9" * 19, b"emitted", b"{}"),
    ]
)


@st.composite
def mutated(draw: st.DrawFn, frame: bytes) -> bytes:
    """The frame with some of its body replaced; the head is right, or anything."""
    head, body = frame[:5], bytearray(frame[5:])
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(body)))
        until = draw(st.integers(at, min(len(body), at + 12)))
        body[at:until] = draw(st.one_of(SNIPPETS, st.binary(max_size=4)))
    kind = draw(st.one_of(st.just(head[4]), st.sampled_from(b"YXEIVTOBP"), st.integers(0, 255)))
    length = draw(st.sampled_from([0, 0, 0, 0, 0, -1, 1, 2**23, 2**31]))
    return struct.pack("!IB", max(0, len(body) + length), kind) + bytes(body)


def could_be(call: Call, grown: Grown) -> bool:
    """Whether it is what the trees may come to, and what is kept is as small as it must be."""
    assert len(grown.made) <= len(call.trees)
    lasts = {each.node: each.timestamp for each in call.lasts}
    wakes = 0
    for tree, made in zip(call.trees, grown.made, strict=False):
        known = [(each.node, each.timestamp, each.path, each.only) for each in tree]
        for each in made:
            node, timestamp, path, only = known[each.parent]
            assert only in (None, each.wake)
            assert (each.wake, each.node) in [wake[:2] for wake in WIRING.nodes[node].wakes]
            assert each.timestamp >= timestamp
            assert each.timestamp > lasts.get(each.node, -1)
            lasts[each.node] = each.timestamp
            known.append((each.node, each.timestamp, (*path, each.wake), only))
            _is_an_update(each)
        assert len({(each.parent, each.wake) for each in made}) == len(made)
        wakes += sum(len(WIRING.nodes[each[0]].wakes) if each[3] is None else 0 for each in known)
        wakes += sum(each.only is not None for each in tree)
    assert sum(each.times for each in grown.ended) == wakes
    for ended in grown.ended:
        assert 0 <= ended.tree < len(grown.made)
        assert len(ended.message) <= MAX_MESSAGE + 200
        ended.message.encode()
    return True


def _is_an_update(made: Made) -> None:
    assert len(made.document) <= MAX_OUTPUT_BYTES
    assert len(made.document.splitlines()) == 1
    document = orjson.loads(made.document)
    assert sorted(document) == ["channels", "lastUpdate"]
    assert repr(document["lastUpdate"]) == str(made.timestamp)
    channels = document["channels"]
    assert sorted(channels) == ["s", "t"]
    assert isinstance(channels["t"]["current-value"], (int, float))
    assert isinstance(channels["s"]["current-value"], str)
    assert (made.state is not None) == (made.node == 2)
    assert made.state is None or isinstance(orjson.loads(made.state), dict)


def test_a_truthful_worker_is_believed(zygote: Scripted) -> None:
    """Otherwise the tests below could not fail."""
    pool = a_scripted_pool(zygote, READY, WIRED, DEFINED, GROWN)
    (grown,) = pool.grow("tenant", [CALL])

    assert could_be(CALL, grown)
    assert [len(each) for each in grown.made] == [1, 2]
    assert not grown.failed
    pool = a_scripted_pool(zygote, READY, WIRED, DEFINED, GROWN_STEP)
    assert could_be(STEP, pool.grow("tenant", [STEP])[0])
    assert a_scripted_pool(zygote, READY, PROBLEMS).check_all([PROGRAM, ANOTHER]) == [["x"], []]


def test_one_that_says_each_time_that_it_had_no_time_is_not_asked_for_ever(
    zygote: Scripted,
) -> None:
    """It has not used what it may: the machine could have given it none."""
    late = protocol.frame(protocol.TIMEOUT, b"")

    assert a_scripted_pool(zygote, READY, late).check_all([PROGRAM]) == [
        ["the program cannot be checked: timeout"]
    ]


EXAMPLES = settings(
    max_examples=examples(100),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@EXAMPLES
@given(answer=mutated(GROWN), within=st.sampled_from([None, 0.0, 5.0]))
def test_whatever_it_says_of_trees(zygote: Scripted, answer: bytes, within: float | None) -> None:
    """What can be; or nothing, so that it is taken in steps; or an error that is known."""
    pool = a_scripted_pool(zygote, READY, WIRED, DEFINED, answer)
    try:
        (grown,) = pool.grow("tenant", [CALL], within)
    except (InfraError, TookTooLong):
        return
    finally:
        zygote.close()

    assert grown.failed or grown.made
    assert not (grown.failed and grown.made)
    assert could_be(CALL, grown)


@EXAMPLES
@given(answer=mutated(GROWN_STEP))
def test_whatever_it_says_of_a_step(zygote: Scripted, answer: bytes) -> None:
    """One outcome: the step's own, or a fault."""
    pool = a_scripted_pool(zygote, READY, WIRED, DEFINED, answer)
    try:
        (grown,) = pool.grow("tenant", [STEP])
    finally:
        zygote.close()

    assert could_be(STEP, grown)
    assert [each.node for each in grown.ended] == [1]
    assert len(grown.made[0]) == (grown.ended[0].kind == "emitted")


@EXAMPLES
@given(answer=mutated(DEFINED), when=st.sampled_from([1, 2]))
def test_whatever_it_says_of_programs_and_wirings(
    zygote: Scripted, answer: bytes, when: int
) -> None:
    """It is to say nothing but that it knows them."""
    pool = a_scripted_pool(zygote, *(READY, WIRED)[:when], answer)
    try:
        (grown,) = pool.grow("tenant", [STEP])
    finally:
        zygote.close()

    assert could_be(STEP, grown)
    assert not grown.failed


@EXAMPLES
@given(answer=mutated(READY))
def test_whatever_it_says_at_its_start(zygote: Scripted, answer: bytes) -> None:
    """Before it has said rightly what protects it, it is given nothing."""
    try:
        layers = a_scripted_pool(zygote, answer).layers()
    except InfraError:
        return
    finally:
        zygote.close()

    assert all(len(text) <= MAX_MESSAGE + 200 for each in layers.items() for text in each)


@EXAMPLES
@given(answer=mutated(PROBLEMS))
def test_whatever_it_says_of_a_document(zygote: Scripted, answer: bytes) -> None:
    """Texts of a bounded length, for each program."""
    pool = a_scripted_pool(zygote, READY, answer)
    try:
        found = pool.check_all([PROGRAM, ANOTHER])
    finally:
        zygote.close()

    assert len(found) == 2
    assert all(len(text) <= MAX_MESSAGE + 200 for each in found for text in each)
