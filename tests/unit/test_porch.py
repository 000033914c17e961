"""Strangers have one small part of the loop together, in turns by address."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from api.edge.framing import BYTES_A_CHUNK, CHUNKS_A_TURN, FREE_CHUNKS, Body
from servioticy.doors.porch import AHEAD_SECONDS, EVENT_SECONDS, MOST_WAITING, Porch
from servioticy.http_heads import Malformed, parse

TURN = 0.001


class Loop:
    """A loop whose time goes as the test lets it."""

    def __init__(self) -> None:
        self.now = 100.0
        self.calls: list[tuple[float, Callable[[], object]]] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, callback: Callable[[], object], /) -> None:
        self.calls.append((self.now + delay, callback))

    def run(self, until: float) -> None:
        while self.calls and min(self.calls)[0] <= until:
            self.calls.sort(key=lambda each: each[0])
            at, callback = self.calls.pop(0)
            self.now = max(self.now, at)
            callback()
        self.now = max(self.now, until)


class Waiting:
    """A connection that waits for its turn."""

    def __init__(self) -> None:
        self.is_aborted = False

    def abort(self) -> None:
        self.is_aborted = True


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def porch(loop: Loop) -> Porch:
    return Porch(loop, loop.time, share=0.25)


def test_who_comes_where_it_is_quiet_is_taken_at_once(loop: Loop, porch: Porch) -> None:
    done: list[int] = []

    assert porch.turn("a", Waiting(), lambda: done.append(1))
    assert done == [1]
    assert loop.calls == []


def test_strangers_take_no_more_than_their_part(loop: Loop, porch: Porch) -> None:
    """However much waits: a quarter of the time, and what is allowed ahead."""
    took: list[float] = []

    def work() -> None:
        loop.now += TURN
        took.append(TURN)

    begun = loop.now
    for number in range(5_000):
        porch.turn(number % 50, Waiting(), work)
    loop.run(begun + 1)

    assert 0.2 < sum(took) < 0.25 + AHEAD_SECONDS + TURN + EVENT_SECONDS


def test_addresses_take_turns(loop: Loop, porch: Porch) -> None:
    """Whoever has a thousand connections delays another by one turn, not by all."""
    done: list[str] = []
    porch.charge(1.0)
    for _ in range(1_000):
        porch.turn("many", Waiting(), lambda: done.append("many"))
    porch.turn("one", Waiting(), lambda: done.append("one"))

    loop.run(loop.now + 60)

    assert done.index("one") == 1
    assert len(done) == 1_001


def test_of_too_many_that_wait_the_one_that_has_waited_longest_goes(porch: Porch) -> None:
    """Its client may have gone long ago; and who comes is not behind thousands."""
    porch.charge(1.0)
    waiting = [Waiting() for _ in range(MOST_WAITING + 2)]
    for each in waiting:
        porch.turn("many", each, lambda: None)
    porch.turn("one", Waiting(), lambda: None)

    assert [each for each in waiting if each.is_aborted] == waiting[:2]


def _in_chunks(largest: int = 1_000_000) -> Body:
    return Body(parse(b"PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked"), largest)


def test_a_turn_takes_so_many_chunks() -> None:
    """The rest is there, and taken in the next turn."""
    body = _in_chunks()
    arrived = bytearray(b"1\r\nx\r\n" * 1_100 + b"0\r\n\r\n")

    assert not body.take(arrived)
    assert (len(body.content), body.has_more) == (CHUNKS_A_TURN, True)
    turns = 1
    while not body.take(arrived):
        turns += 1
    assert (len(body.content), turns, body.has_more) == (1_100, 2, False)


@pytest.mark.parametrize("size", [1, 16, BYTES_A_CHUNK // 2])
def test_a_body_costs_no_more_turns_than_its_bytes_are_worth(size: int) -> None:
    """However it is cut: else a megabyte in chunks of a byte is two thousand turns."""
    body, turns = _in_chunks(), 0
    arrived = bytearray((b"%x\r\n" % size + b"x" * size + b"\r\n") * (1_000_000 // size))

    with pytest.raises(Malformed, match="too many chunks: "):
        while arrived:
            turns += 1
            body.take(arrived)
    assert turns <= (FREE_CHUNKS + len(body.content) // BYTES_A_CHUNK) // CHUNKS_A_TURN + 1


def test_a_short_body_may_be_cut_as_one_likes_and_a_long_one_into_pieces_of_some_bytes() -> None:
    """A device that writes its document byte by byte is served."""
    for count, size in ((FREE_CHUNKS - 1, 1), (1_000_000 // BYTES_A_CHUNK, BYTES_A_CHUNK)):
        body = _in_chunks()
        some = b"%x\r\n" % size + b"x" * size + b"\r\n"
        arrived = bytearray(some * count + b"0\r\n\r\n")
        while not body.take(arrived):
            pass

        assert len(body.content) == count * size
