"""A worker that says anything: nothing it says gets past the pool unless it could be true."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from collections.abc import Iterator, Sequence

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sandbox_pools import a_pool

from sandbox import (
    FAULT_KINDS,
    Assignment,
    Call,
    ChannelCode,
    Computation,
    Fault,
    InfraError,
    Outcome,
    Program,
    SandboxPool,
    TookTooLong,
    Value,
    protocol,
)
from sandbox.host.answers import MAX_MESSAGE, MAX_OUTPUT_BYTES
from sandbox.host.checking import Checking
from sandbox.host.workers import Workers

PROGRAM = Program(
    "p",
    "function",
    ("A",),
    (ChannelCode("t", "A", "number"), ChannelCode("s", "A", "string", "m")),
)
STEPS = (
    Computation(0, 5, 7, (0,)),
    Computation(0, 6, 8, (0,)),
    Assignment(0, 9),
    Computation(0, 10, 10, (0,)),
    Computation(0, 11, 11, (0,)),
)
CALL = Call(PROGRAM, None, None, (b"0",), STEPS)
CHANNELS = b'{"t":{"current-value":1},"s":{"current-value":"","unit":"m"}}'
OUTPUT = b'V%d {"channels":' + CHANNELS + b',"lastUpdate":%d}'
LINES = (OUTPUT % (7, 7), b'Fstale "x"', b"N", OUTPUT % (10, 10), b'Ferror "x"')


class Scripted:
    """A zygote whose workers have an answer to each frame, and then end."""

    pid = None

    def __init__(self) -> None:
        self.answers: Sequence[bytes] = ()
        self._children: list[int] = []

    def spawn(self, checks: bool = False) -> tuple[socket.socket, int]:
        ours, theirs = socket.socketpair()
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                ours.close()
                _serve(theirs, self.answers)
            os._exit(0)
        theirs.close()
        self._children.append(child)
        return ours, child

    def close(self) -> None:
        for child in self._children:
            os.waitpid(child, 0)
        self._children = []


def _serve(connection: socket.socket, answers: Sequence[bytes]) -> None:
    connection.sendall(answers[0])
    reader = protocol.Reader(connection)
    for answer in answers[1:]:
        reader.read()
        connection.sendall(answer)


@pytest.fixture(scope="module")
def zygote() -> Iterator[Scripted]:
    zygote = Scripted()
    yield zygote
    zygote.close()


def a_scripted_pool(zygote: Scripted, *answers: bytes) -> SandboxPool:
    pool = a_pool(allow_list=False)
    zygote.answers = answers
    pool._zygote = zygote  # type: ignore[assignment]
    pool._workers = Workers(zygote, pool._usage, 64, 60)  # type: ignore[arg-type]
    pool._checking = Checking(zygote, 60, allow_list=False)  # type: ignore[arg-type]
    return pool


READY = protocol.frame(protocol.READY, b"{}")
DEFINED = protocol.frame(protocol.DEFINED, b"")
VALUES = protocol.frame(protocol.VALUES, b"\n".join(LINES) + b"\n0")
PROBLEMS = protocol.frame(protocol.PROBLEMS, b'[[["syntax","x"]],[]]')

SNIPPETS = st.sampled_from(
    [
        *(b"9" * 400, b"9" * 5000, b"-", b"1e999", b"NaN", b"null", b"true", b"[]", b"{}", b"0"),
        *(b"\n", b" ", b",", b"N", b"V", b"F", b"stale", b"timeout", b"crash", b'"', b"\xff"),
        *(b"\\ud800", b"\\u0000", b'"unit":1', b'"lastUpdate":7', b'"t":{}', b"[" * 3000),
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
    kind = draw(st.one_of(st.just(head[4]), st.sampled_from(b"YXEVTOBP"), st.integers(0, 255)))
    length = draw(st.sampled_from([0, 0, 0, 0, 0, -1, 1, 2**23, 2**31]))
    return struct.pack("!IB", max(0, len(body) + length), kind) + bytes(body)


def could_be(outcomes: Sequence[Outcome]) -> bool:
    """Whether the rules of a fold allow them, and what is kept is as small as it must be."""
    last: int | None = None
    for step, outcome in zip(STEPS, outcomes, strict=True):
        if isinstance(step, Assignment):
            assert outcome is None
            last = step.timestamp if last is None else max(last, step.timestamp)
        elif isinstance(outcome, Value):
            assert last is None or step.timestamp > last
            last = step.floor if last is None else max(last, step.floor)
            assert outcome.timestamp == last
            _is_an_update(outcome)
        else:
            assert isinstance(outcome, Fault)
            assert outcome.kind in FAULT_KINDS - {"policy"}
            assert len(outcome.message) <= MAX_MESSAGE + 200
            outcome.message.encode()
    return True


def _is_an_update(value: Value) -> None:
    assert len(value.document) <= MAX_OUTPUT_BYTES
    document = orjson.loads(value.document)
    assert sorted(document) == ["channels", "lastUpdate"]
    assert repr(document["lastUpdate"]) == str(value.timestamp)
    channels = document["channels"]
    assert sorted(channels) == ["s", "t"]
    assert isinstance(channels["t"].pop("current-value"), (int, float))
    assert isinstance(channels["s"].pop("current-value"), str)
    assert channels["t"] in ({}, {"unit": None})
    assert channels["s"] in ({}, {"unit": "m"})


def test_a_truthful_worker_is_believed(zygote: Scripted) -> None:
    """Otherwise the tests below could not fail."""
    pool = a_scripted_pool(zygote, READY, DEFINED, VALUES)
    (outcomes,) = pool.run("tenant", [CALL])

    assert could_be(outcomes)
    assert [type(each) for each in outcomes] == [Value, Fault, type(None), Value, Fault]
    assert a_scripted_pool(zygote, READY, PROBLEMS).check_all([PROGRAM, PROGRAM]) == [["x"], []]


EXAMPLES = settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@EXAMPLES
@given(answer=mutated(VALUES), within=st.sampled_from([None, 0.0, 5.0]))
def test_whatever_it_says_of_a_frame(
    zygote: Scripted, answer: bytes, within: float | None
) -> None:
    """Outcomes that can be, or an error that the caller knows."""
    try:
        (outcomes,) = a_scripted_pool(zygote, READY, DEFINED, answer).run("tenant", [CALL], within)
    except (InfraError, TookTooLong):
        return
    finally:
        zygote.close()

    assert could_be(outcomes)


@EXAMPLES
@given(answer=mutated(DEFINED))
def test_whatever_it_says_of_programs(zygote: Scripted, answer: bytes) -> None:
    """It is to say nothing but that it knows them."""
    try:
        (outcomes,) = a_scripted_pool(zygote, READY, answer).run("tenant", [CALL])
    finally:
        zygote.close()

    assert could_be(outcomes)


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
        found = pool.check_all([PROGRAM, PROGRAM])
    finally:
        zygote.close()

    assert len(found) == 2
    assert all(len(text) <= MAX_MESSAGE + 200 for each in found for text in each)


def test_what_runs_no_code_is_settled_without_a_worker(zygote: Scripted) -> None:
    """Put from outside, at any size, or stale: no worker could make a fault of it."""
    pool = a_scripted_pool(zygote)  # whose workers would say nothing at all
    put = Call(PROGRAM, b"1", 5, (b" " * 2**21,), (Assignment(0, 9),))
    stale = Call(PROGRAM, b"1", 5, (b"0",), (Computation(0, 5, 5, (0,)),))

    assert pool.run("tenant", [put]) == [[None]]
    assert pool.run("tenant", [stale]) == [
        [Fault("stale", "trigger 5 is not newer than output 5")]
    ]
