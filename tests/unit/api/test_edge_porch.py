"""Strangers have one small part of the loop together, in turns by address."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from api.edge.framing import STEPS, Body
from api.edge.porch import AHEAD_SECONDS, EVENT_SECONDS, Porch
from servioticy.http_heads import parse

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


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def porch(loop: Loop) -> Porch:
    return Porch(loop, loop.time, share=0.25)


def test_who_comes_where_it_is_quiet_is_taken_at_once(loop: Loop, porch: Porch) -> None:
    done: list[int] = []

    assert porch.turn("a", lambda: done.append(1))
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
        porch.turn(number % 50, work)
    loop.run(begun + 1)

    assert 0.2 < sum(took) < 0.25 + AHEAD_SECONDS + TURN + EVENT_SECONDS


def test_addresses_take_turns(loop: Loop, porch: Porch) -> None:
    """Whoever has a thousand connections delays another by one turn, not by all."""
    done: list[str] = []
    porch.charge(1.0)
    for _ in range(1_000):
        porch.turn("many", lambda: done.append("many"))
    porch.turn("one", lambda: done.append("one"))

    loop.run(loop.now + 60)

    assert done.index("one") == 1
    assert len(done) == 1_001


def test_a_turn_takes_so_many_chunks() -> None:
    """The rest is there, and taken in the next turn."""
    body = Body(parse(b"PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked"), 10_000)
    arrived = bytearray(b"1\r\nx\r\n" * 1_000 + b"0\r\n\r\n")

    assert not body.take(arrived)
    assert (len(body.content), body.has_more) == (STEPS // 3, True)
    turns = 1
    while not body.take(arrived):
        turns += 1
    assert (len(body.content), turns, body.has_more) == (1_000, 3, False)
