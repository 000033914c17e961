"""The delivery program itself, and clients and records that mean it no good."""

from __future__ import annotations

import signal
from contextlib import ExitStack

import pytest
from support.delivery_program import (
    WAIT_SECONDS,
    World,
    bare,
    received,
    settings,
    world,
)
from websockets.exceptions import ConnectionClosed, InvalidStatus

__all__ = ["settings", "world"]


def test_a_client_that_does_not_read_is_closed_and_stalls_nobody(world: World) -> None:
    """Its buffer is bounded; the others get everything meanwhile."""
    slow = bare(world, "/mine/streams/data/live")
    assert b"101" in slow.recv(1024)
    with world.watch() as quick:
        for begin in range(0, 1000, 20):
            world.emitted(*range(begin, begin + 20), padding=30_000)
            assert received(quick, 20) == list(range(begin, begin + 20))

    slow.settimeout(10)
    got = b""
    while part := slow.recv(1 << 20):
        got = (got + part)[-4000:]
    slow.close()
    # Either the close frame reached it behind the last whole frame, or it was cut off.
    assert b"slower" in got or len(got) == 4000


UGLY = {
    "invalid UTF-8": b'{"v":"\xff"}',
    "a surrogate in UTF-8": b'{"v":"\xed\xa0\x80"}',
    "no object": b"null",
    "huge": b'{"v":"' + b"x" * 1_900_000 + b'"}',
}


@pytest.mark.parametrize("update", UGLY.values(), ids=UGLY)
def test_an_ugly_update_costs_nobody_a_frame(world: World, update: bytes) -> None:
    """One tenant's, in the real topic; a socket of another misses nothing."""
    envelope = b'{"service_object":"open","stream":"data","tenant":2,"version":1,"timestamp":1,'
    with world.watch() as other, world.watch(name="open"):
        for at in (1, 2, 3):
            world.produced(envelope + b'"update":' + update + b"}")
            world.emitted(at)

        assert received(other, 3) == [1, 2, 3]


UNREADABLE = {
    "half a surrogate pair, escaped": rb'{"v":"\ud800"}',
    "nothing": b"",
    "cut off": b'{"v":',
    "deep": b"[" * 100_000 + b"]" * 100_000,
}


@pytest.mark.parametrize("update", UNREADABLE.values(), ids=UNREADABLE)
def test_a_record_that_cannot_be_read_costs_nobody_a_frame(world: World, update: bytes) -> None:
    """It is skipped; the reader goes on, for every tenant."""
    envelope = b'{"service_object":"open","stream":"data","tenant":2,"version":1,"timestamp":1,'
    with world.watch() as other:
        for at in (1, 2, 3):
            world.produced(envelope + b'"update":' + update + b"}")
            world.emitted(at)

        assert received(other, 3) == [1, 2, 3]


def test_histories_that_nobody_reads_do_not_fill_the_memory(world: World) -> None:
    """Twenty sockets of a stream of 60 MB; a page of 500 updates each would be all of it."""
    for at in range(1, 61):
        world.stored(at, padding=1_000_000)
    with ExitStack() as clients:
        for _ in range(20):
            client = clients.enter_context(bare(world, "/mine/streams/data/live?after=0"))
            assert b"101" in client.recv(12)
        reader = clients.enter_context(world.watch("?after=0", max_size=None))

        assert received(reader, 60) == list(range(1, 61))
        # A page of one large update each, a few in the making, and the program itself.
        assert world.most_memory() < 250_000_000


def test_an_address_that_is_none_is_the_clients_mistake(world: World) -> None:
    with bare(world, "//[/x") as client:
        assert client.recv(12) == b"HTTP/1.1 400"


def test_the_program_ends_though_a_client_does_not_listen(world: World) -> None:
    for at in range(1, 21):
        world.stored(at, padding=1_000_000)
    with bare(world, "/mine/streams/data/live?after=0") as client:
        assert b"101" in client.recv(12)
        world.program.send_signal(signal.SIGTERM)

        assert world.program.wait(timeout=WAIT_SECONDS) == 0


def test_what_clients_say_is_ignored_unless_it_is_large(world: World) -> None:
    with world.watch() as connection:
        connection.send("hello" * 10)
        world.emitted(1)
        assert received(connection, 1) == [1]

        connection.send("x" * 10_000)
        with pytest.raises(ConnectionClosed) as end:
            connection.recv(timeout=10)
        assert end.value.rcvd is not None
        assert end.value.rcvd.code == 1009


def test_sigterm_closes_sockets_with_going_away(world: World) -> None:
    with world.watch() as connection:
        world.program.send_signal(signal.SIGTERM)
        with pytest.raises(ConnectionClosed) as end:
            connection.recv(timeout=10)

        assert end.value.rcvd is not None
        assert end.value.rcvd.code == 1001
        assert world.program.wait(timeout=WAIT_SECONDS) == 0


def test_tokens_are_not_logged(world: World) -> None:
    with world.watch(f"?access_token={world.ours}", additional_headers={}):
        pass
    with pytest.raises(InvalidStatus):
        world.watch("?access_token=not-a-token-of-anybody", additional_headers={})
    world.program.send_signal(signal.SIGTERM)
    assert world.program.stderr is not None
    written = world.program.stderr.read().decode()

    assert world.ours not in written
    assert "not-a-token-of-anybody" not in written
