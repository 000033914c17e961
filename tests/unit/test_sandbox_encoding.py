"""What crosses between pool and worker."""

from __future__ import annotations

import socket
import struct
import threading
from dataclasses import replace
from typing import Any

import orjson
import pytest
from sandbox_trees import a_call, an_event

from sandbox import Binding, ChannelCode, Program, protocol
from sandbox.encoding import (
    MAX_SAFE_INTEGER,
    PORTION_NODES,
    SETTLES,
    SKIPS,
    WINDOWED,
    encode_frame,
    encode_program,
    encode_wiring,
    program_of,
)
from sandbox.trees import Call, Event, Last, Node, Wake, Wiring

PROGRAM = Program("p", "expression", ("a", "b"), (ChannelCode("t", "1", "number"),))


def test_an_announced_length_beyond_the_limit_is_refused_unread() -> None:
    """Four gigabytes are announced in four bytes."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(struct.pack("!IB", 2**32 - 1, protocol.GROWN))

        with pytest.raises(protocol.ProtocolError):
            protocol.Reader(ours).read()


def test_a_frame_that_comes_byte_by_byte_has_no_more_time() -> None:
    """A wait for each byte would hold a frame of 0.1 s for the length of a frame."""
    ours, theirs = socket.socketpair()
    enough = threading.Event()

    def drip() -> None:
        theirs.sendall(struct.pack("!IB", 1000, protocol.GROWN))
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


def sent(call: Call) -> Any:
    """The call as the realm reads it."""
    return orjson.loads(encode_frame([call], {call.wiring.id: 3}, 40))


def test_timestamps_beyond_javascripts_numbers_are_sent_as_texts() -> None:
    """Nanoseconds are; two of them could be one number to the runner."""
    edge = MAX_SAFE_INTEGER
    call = a_call(PROGRAM, *(Event(0, at, b"0") for at in (edge, edge + 1, -edge, -edge - 1)))
    call = replace(call, lasts=[Last(0, edge, b"7"), Last(1, edge + 1, None, b'{"a":1}')])

    milliseconds, ((slot, lasts, trees, hops, computations, refused),) = sent(call)

    assert (milliseconds, slot, refused) == (40, 3, [])
    assert (hops, computations) == call.bounds
    assert lasts == [[0, edge, 7], [1, str(edge + 1), 0, {"a": 1}]]
    times = [edge, str(edge + 1), -edge, str(-edge - 1)]
    assert trees == [[[0, at, 0]] for at in times]


def test_an_event_tells_its_place_and_what_it_is_to_wake_where_it_has_them() -> None:
    event = an_event(at=5)
    call = a_call(PROGRAM, [event, event._replace(path=(1, 2)), event._replace(only=4)])
    call = replace(call, refused={2: ("policy", "no \ud800")})

    ((_, _, ((first, then, step),), _, _, refused),) = sent(call)[1]

    assert [len(first), then[3:], step[3:]] == [3, [[1, 2]], [[], 4]]
    assert refused == [[2, "policy", "no \ufffd"]]


@pytest.mark.parametrize(("more", "portions"), [(0, 1), (1, 2), (PORTION_NODES + 1, 3)])
def test_a_large_wiring_is_sent_in_portions(more: int, portions: int) -> None:
    """Each says how many nodes there are, and which is its first."""
    read = Node((Wake(0, 1, 0), Wake(2, 1, 1)), name="\ud800")
    code = Node((), PROGRAM, ((0,), (0, 2)), own=1, settles=True, skips=True, windowed=True)
    nodes = (read, code, *[Node()] * (PORTION_NODES + more - 2))

    told = [orjson.loads(each) for each in encode_wiring(Wiring("w", nodes), 7, {"p": 9})]

    whole = len(nodes)
    assert [each[:3] for each in told] == [[7, whole, n * PORTION_NODES] for n in range(portions)]
    assert sum(len(each[3]) for each in told) == whole
    assert told[0][3][0] == [-1, [], [[0, 1, 0], [2, 1, 1]], -1, 0, "\ufffd"]
    assert told[0][3][1] == [9, [[0], [0, 2]], [], 1, SETTLES + SKIPS + WINDOWED, ""]
    assert told[-1][3][-1] == [-1, [], [], -1, 0, ""]


@pytest.mark.parametrize(("members", "portions"), [(49_999, 1), (50_000, 2), (200_000, 3)])
def test_streams_that_read_much_are_sent_in_smaller_portions(members: int, portions: int) -> None:
    """A frame has an end, however large the groups are."""
    reader = Node((Wake(0, 0, 0),), PROGRAM, ((0,) * members,))
    few = (Node(),) * (portions == 3)

    told = [
        orjson.loads(each)
        for each in encode_wiring(Wiring("w", (*few, reader, reader)), 7, {"p": 9})
    ]

    assert len(told) == portions
    assert sum(len(each[3]) for each in told) == len(few) + 2
    assert [each[2] for each in told] == list(range(portions))


def test_half_a_surrogate_pair_in_a_program_is_replaced() -> None:
    """There is no UTF-8 for it, and everything beyond is UTF-8."""
    channels = (ChannelCode("t\ud800", "'\udc00x'", "string", "\ud83d\ude00"),)

    sent = orjson.loads(encode_program(Program("p", "function", (), channels)))

    assert sent["channels"][0]["name"] == "t\ufffd"
    assert sent["channels"][0]["code"] == "'\ufffdx'"
    assert sent["channels"][0]["unit"] == "\U0001f600"


def test_a_program_is_read_as_it_was_written() -> None:
    """With paths of selectors in selectors."""
    path = (("below", (("names", "a"), ("where", ("found", (("this",),))))),)
    program = Program(
        "p", "expression", ("a",), PROGRAM.channels, "1", "2", (Binding("$0", 0, path),)
    )

    assert program_of(orjson.loads(encode_program(program))) == program
