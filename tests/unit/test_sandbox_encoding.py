"""What crosses between pool and worker, and how a fold is cut."""

from __future__ import annotations

import socket
import struct

import pytest

from sandbox import Assignment, Call, ChannelCode, Computation, Fault, Program, Value, protocol
from sandbox.encoding import Garbage, decode_answer
from sandbox.fold import Last, part

PROGRAM = Program("p", "expression", ("a", "b"), (ChannelCode("t", "1", "number"),))


def a_call(*steps: Computation | Assignment) -> Call:
    return Call(PROGRAM, None, None, (b"0", b"1", b"2"), steps)


GARBAGE = [
    *(b"", b"V1 {}\nN", b"Vx {}", b"Fnonsense 1", b"?", b"\xff"),
    *(b"V5 {x", b"V5 ", b"V1_0 {}", b"V+1 {}", b"V9223372036854775808 {}"),
    *(b'V5 {"v":NaN}', b'V5 "\xff"', b"V5 " + b"[" * 100_000),
]


@pytest.mark.parametrize("answer", GARBAGE)
def test_an_answer_that_does_not_fit_is_garbage(answer: bytes) -> None:
    """A worker may have been taken over by the script; its words are not believed."""
    with pytest.raises(Garbage):
        decode_answer(answer, [a_call(Computation(0, 1, 1, (0, -1)))])


def test_half_a_surrogate_pair_is_a_value() -> None:
    """JavaScript has such texts, and writes them as JSON."""
    document = b'{"v":"\\ud800"}'

    (outcomes,) = decode_answer(b"V5 " + document, [a_call(Computation(0, 1, 1, (0, -1)))])

    assert outcomes == [Value(5, document)]


def test_an_announced_length_beyond_the_limit_is_refused_unread() -> None:
    """Four gigabytes are announced in four bytes."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(struct.pack("!IB", 2**32 - 1, protocol.VALUES))

        with pytest.raises(protocol.ProtocolError):
            protocol.Reader(ours).read()


def test_a_part_carries_only_the_updates_it_uses() -> None:
    """Otherwise a retry step by step would send everything for every step."""
    call = a_call(Computation(0, 1, 1, (0, -1)), Computation(1, 2, 2, (-1, 2)))

    second = part(call, 1, 2, Last(b"{}", 1))

    assert second.updates == (b"2",)
    assert second.steps == (Computation(1, 2, 2, (-1, 0)),)
    assert (second.previous, second.previous_timestamp) == (b"{}", 1)


def test_the_last_output_moves_with_values_and_newer_assignments_only() -> None:
    """The rule the runner has, needed again where a fold is cut."""
    last = Last(b"old", 5)
    computation = Computation(0, 6, 6, (0, -1))

    assert last.after(computation, Fault("filtered", ""), ()) == last
    assert last.after(computation, Value(6, b"new"), ()) == Last(b"new", 6)
    assert last.after(Assignment(0, 4), None, (b"put",)) == last
    assert last.after(Assignment(0, 5), None, (b"put",)) == Last(b"put", 5)
