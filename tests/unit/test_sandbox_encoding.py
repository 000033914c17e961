"""What crosses between pool and worker, and how a fold is cut."""

from __future__ import annotations

import socket
import struct
import threading

import orjson
import pytest
from sandbox.host.fold import LastOutput, part

from sandbox import Assignment, Call, ChannelCode, Computation, Fault, Program, Value, protocol
from sandbox.encoding import MAX_SAFE_INTEGER, encode_calls, encode_program

PROGRAM = Program("p", "expression", ("a", "b"), (ChannelCode("t", "1", "number"),))


def a_call(*steps: Computation | Assignment) -> Call:
    return Call(PROGRAM, None, None, (b"0", b"1", b"2"), steps)


def test_an_announced_length_beyond_the_limit_is_refused_unread() -> None:
    """Four gigabytes are announced in four bytes."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(struct.pack("!IB", 2**32 - 1, protocol.VALUES))

        with pytest.raises(protocol.ProtocolError):
            protocol.Reader(ours).read()


def test_a_frame_that_comes_byte_by_byte_has_no_more_time() -> None:
    """A wait for each byte would hold a frame of 0.1 s for the length of a frame."""
    ours, theirs = socket.socketpair()
    enough = threading.Event()

    def drip() -> None:
        theirs.sendall(struct.pack("!IB", 1000, protocol.VALUES))
        while not enough.wait(0.02):
            theirs.sendall(b"x")

    dripping = threading.Thread(target=drip)
    with ours, theirs:
        dripping.start()
        try:
            with pytest.raises(TimeoutError):
                protocol.Reader(ours).read(0.2)
        finally:
            enough.set()
            dripping.join()


def test_a_part_carries_only_the_updates_it_uses() -> None:
    """Otherwise a retry step by step would send everything for every step."""
    call = a_call(Computation(0, 1, 1, (0, -1)), Computation(1, 2, 2, (-1, 2)))

    second = part(call, 1, 2, LastOutput(b"{}", 1))

    assert second.updates == (b"2",)
    assert second.steps == (Computation(1, 2, 2, (-1, 0)),)
    assert (second.previous, second.previous_timestamp) == (b"{}", 1)


def test_the_last_output_moves_with_values_and_newer_assignments_only() -> None:
    """The rule the runner has, needed again where a fold is cut."""
    last = LastOutput(b"old", 5)
    computation = Computation(0, 6, 6, (0, -1))

    assert last.after(computation, Fault("filtered", ""), ()) == last
    assert last.after(computation, Value(6, b"new"), ()) == LastOutput(b"new", 6)
    assert last.after(Assignment(0, 4), None, (b"put",)) == last
    assert last.after(Assignment(0, 5), None, (b"put",)) == LastOutput(b"put", 5)


def test_timestamps_beyond_javascripts_numbers_are_sent_as_places() -> None:
    """Nanoseconds are; two of them could be one number to the runner."""
    edge = MAX_SAFE_INTEGER
    exact = Call(PROGRAM, b"7", edge - 1, (b"0",), (Computation(0, edge, edge, (0, -1)),))
    beyond = Call(PROGRAM, b"7", edge, (b"0",), (Computation(0, edge, edge + 1, (0, -1)),))

    sent = [orjson.loads(encode_calls([each], {"p": 3}))[0] for each in (exact, beyond)]

    assert sent[0] == [3, 7, edge - 1, [0], [[0, edge, edge, 0, -1]]]
    assert sent[1] == [3, 7, 0, [0], [[0, 0, 1, 0, -1]], [str(edge), str(edge + 1)]]


def test_half_a_surrogate_pair_in_a_program_is_replaced() -> None:
    """There is no UTF-8 for it, and everything beyond is UTF-8."""
    channels = (ChannelCode("t\ud800", "'\udc00x'", "string", "\ud83d\ude00"),)

    sent = orjson.loads(encode_program(Program("p", "function", (), channels)))

    assert sent["channels"][0]["name"] == "t\ufffd"
    assert sent["channels"][0]["code"] == "'\ufffdx'"
    assert sent["channels"][0]["unit"] == "\U0001f600"
