"""What strangers do, and go on doing when they are refused, keeps nobody out: counted in turns."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest
from edge_builders import SECONDS, WORK_SECONDS, Serving, Told, everything
from waiting import until

from api.edge import edge
from api.edge.connection import MAX_DRAINED, State
from servioticy.doors.porch import Porch

CROWD = 200
KERNEL_BYTES = 8 * 1024 * 1024
"""More than both sides of a connection of this machine keep of what is not read."""


class Crowd:
    """Strangers of one address that send long bodies, and want another turn after each."""

    def __init__(self, porch: Porch, state: State) -> None:
        self.turns = 0
        self.porch = porch
        self.state = state

    def come(self) -> None:
        for _ in range(CROWD):
            Stranger(self).ask()


class Stranger:
    """One of them."""

    def __init__(self, crowd: Crowd) -> None:
        self._crowd = crowd

    def ask(self) -> None:
        crowd = self._crowd
        crowd.porch.wait(("127.0.0.1", crowd.state), self, self.take)

    def take(self) -> None:
        self._crowd.turns += 1
        self._crowd.porch.charge(0.001)
        self.ask()

    def abort(self) -> None:
        raise AssertionError("fewer wait than may")


@pytest.mark.parametrize("token", ["", "a"])
def test_who_comes_while_strangers_want_every_turn_is_let_in_and_heard(
    token: str, serve: Callable[..., Serving]
) -> None:
    """The door has a part of its own, and heads have turns of their own: so it is the next one.

    Whoever it is, and from the address of those who fill the porch.
    """
    serving = serve()
    crowd = Crowd(serving.edge.porch, State.BODY)
    serving._loop.call_soon_threadsafe(crowd.come)
    for _ in range(5):
        before = crowd.turns

        assert serving.ask("/hello", token).status == 200
        assert crowd.turns - before < CROWD / 4


def test_who_shows_a_good_token_does_not_wait_for_those_who_show_none(
    serve: Callable[..., Serving],
) -> None:
    """However many heads wait: it is looked for before the head is read."""
    serving = serve()
    serving.introduce("a")
    porch = serving.edge.porch
    crowd = Crowd(porch, State.HEAD)

    def come() -> None:
        porch.charge(SECONDS)  # none of them has a turn
        crowd.come()

    serving._loop.call_soon_threadsafe(come)

    assert serving.ask("/hello", "a").status == 200
    assert crowd.turns == 0


@pytest.mark.parametrize("token", ["", "made-up"])
def test_what_a_stranger_takes_in_a_thread_counts_in_the_part_of_all_strangers(
    token: str, serve: Callable[..., Serving], app: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a thread computes the loop does not: to refuse each of a crowd took all of it."""
    serving = serve()
    serving.introduce("a")
    app.revoked.add("made-up")
    charged: list[float] = []
    monkeypatch.setattr(serving.edge.porch, "charge", charged.append)

    assert serving.ask("/works", "a").status == 200
    assert serving.ask("/works", "a").status == 200  # the loop has heard of the first
    assert sum(charged) < WORK_SECONDS
    serving.ask("/works", token)
    serving.ask("/hello", token)
    until(lambda: sum(charged) >= WORK_SECONDS)


def test_who_turns_out_to_be_a_tenant_pays_as_one(
    serve: Callable[..., Serving], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first request is as good as the next: it shuts the porch for nobody."""
    serving = serve()
    charged: list[float] = []
    monkeypatch.setattr(serving.edge.porch, "charge", charged.append)

    assert serving.ask("/works", "new").status == 200
    assert serving.ask("/works", "new").status == 200  # the loop has heard of the first
    assert sum(charged) < WORK_SECONDS


def test_others_who_come_do_not_wait_for_long_for_what_one_stranger_has_computed(
    serve: Callable[..., Serving], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long that took: the door is not shut by one request."""
    serving = serve()
    most = WORK_SECONDS / 10
    monkeypatch.setattr(edge, "MOST_CHARGED_SECONDS", most)
    charged: list[float] = []
    monkeypatch.setattr(serving.edge.porch, "charge", charged.append)

    serving.ask("/works", "")
    until(lambda: most in charged)

    assert max(charged) < WORK_SECONDS


def test_what_a_refused_client_still_sends_is_thrown_away_up_to_a_bound(
    serve: Callable[..., Serving],
) -> None:
    """However long it goes on: then it is closed, and whatever it has sent with it."""
    serving = serve()
    serving.edge.closing = serving.edge._deadlines(1_000 * SECONDS)
    client = serving.connect()
    client.sendall(b"PUT /o HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n")
    sent, some = 0, b"1\r\nx\r\n" * 10_000
    try:
        while sent <= MAX_DRAINED + KERNEL_BYTES:
            sent += client.send(some)
    except OSError:
        pass

    assert sent <= MAX_DRAINED + KERNEL_BYTES


def test_who_is_refused_in_the_middle_of_its_body_reads_why(
    serve: Callable[..., Serving],
) -> None:
    serving = serve(max_body_bytes=1_000_000)
    client = serving.connect()
    client.sendall(b"PUT /o HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
    client.sendall(b"1\r\nx\r\n" * 50_000)
    client.shutdown(socket.SHUT_WR)

    answer = everything(client)

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"The body comes in too many chunks: 4162 for the first" in answer
