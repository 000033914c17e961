"""The delivery program itself, on a real broker and a real Postgres."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from support.delivery_program import (
    WAIT_SECONDS,
    World,
    a_document,
    health,
    received,
    settings,
    world,
)
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from servioticy import bootstrap
from servioticy.client.follower import Follower
from servioticy.domain.model import StreamRef
from servioticy.settings import Settings, to_environment

__all__ = ["settings", "world"]


def test_nobody_is_let_in_while_what_is_emitted_cannot_be_read(settings: Settings) -> None:
    """A client that was let in would wait for ever, or miss what comes until it can be read."""
    no_broker = {"SERVIOTICY_BOOTSTRAP_SERVERS": "127.0.0.1:1"}
    environment = {**os.environ, **to_environment(settings), **no_broker}
    port = settings.delivery.port
    with subprocess.Popen([sys.executable, "-m", "delivery"], env=environment) as program:
        try:
            deadline = time.monotonic() + WAIT_SECONDS
            while health(port) != 503:
                assert time.monotonic() < deadline, "delivery does not listen"
                time.sleep(0.02)
            with pytest.raises(InvalidStatus) as refused:
                connect(
                    f"ws://127.0.0.1:{port}/mine/streams/data/live?after=0",
                    additional_headers={"Authorization": "a token"},
                    proxy=None,
                )
        finally:
            program.kill()

    assert refused.value.response.status_code == 503
    assert int(refused.value.response.headers["Retry-After"]) > 0


def test_frames_are_the_updates_as_emitted_in_order(world: World) -> None:
    with world.watch() as one, world.watch() as other:
        world.emitted(*range(1, 501))
        frames = [one.recv(timeout=10) for _ in range(500)]

        assert frames == [a_document(at).decode() for at in range(1, 501)]
        assert received(other, 500) == list(range(1, 501))


def test_only_the_watched_stream_comes(world: World) -> None:
    with world.watch(name="open") as connection:
        world.emitted(1, name="mine")
        world.emitted(2, name="open")

        assert received(connection, 1) == [2]


def test_after_gives_first_what_is_stored_then_what_is_live(world: World) -> None:
    """More than a page, and the last of it emitted once more: nothing twice."""
    world.stored(*range(1, 1201))
    with world.watch("?after=100") as connection:
        first = received(connection, 1100)
        world.emitted(1199, 1200, 1201)

        assert first == list(range(101, 1201))
        assert received(connection, 1) == [1201]


def test_what_is_emitted_while_the_history_is_read_comes_once(world: World) -> None:
    """The pipeline stores, then emits; a watcher joins in the middle of it."""
    world.stored(*range(1, 3001))
    with world.watch("?after=0") as connection:
        for at in range(3001, 3301, 10):
            world.stored(*range(at, at + 10))
            world.emitted(*range(at, at + 10))

        assert received(connection, 3300) == list(range(1, 3301))
        world.emitted(3301)  # nothing came once more before it
        assert received(connection, 1) == [3301]


def test_the_token_may_stand_in_the_address(world: World) -> None:
    with world.watch(f"?access_token={world.ours}", additional_headers={}) as connection:
        world.emitted(5)

        assert received(connection, 1) == [5]


@pytest.mark.parametrize(
    ("name", "token", "status"),
    [
        ("mine", "", 403),
        ("mine", "wrong", 403),
        ("private", "ours", 401),
        ("nothing", "ours", 404),
    ],
)
def test_strangers_are_refused_before_the_upgrade(
    world: World, name: str, token: str, status: int
) -> None:
    headers = {"Authorization": world.ours if token == "ours" else token} if token else {}
    with pytest.raises(InvalidStatus) as refusal:
        world.watch(name=name, additional_headers=headers)

    body = json.loads(refusal.value.response.body)
    assert refusal.value.response.status_code == body["status"] == status
    assert set(body) == {"status", "message", "info"}


def test_others_have_to_ask_again_when_a_document_has_changed(world: World) -> None:
    """It may be private from that version on; its owner watches on."""
    with world.watch() as own, world.watch(name="open") as foreign:
        world.emitted(1, name="open")
        assert received(foreign, 1) == [1]

        world.emitted(2, name="open", version=2)
        world.emitted(2, version=2)

        with pytest.raises(ConnectionClosed) as end:
            foreign.recv(timeout=10)
        assert end.value.rcvd is not None
        assert end.value.rcvd.code == 1013
        assert received(own, 1) == [2]


def test_a_follower_goes_on_where_a_killed_program_left_it(
    world: World, settings: Settings
) -> None:
    """What `servioticy tail` and the demonstration rely on."""
    follower = Follower(world.url, StreamRef("mine", "data"), world.ours, after=0)
    updates: Callable[[], str] = follower.updates().__next__
    world.stored(1, 2)
    assert [json.loads(updates())["lastUpdate"] for _ in range(2)] == [1, 2]

    world.program.kill()
    world.program.wait()
    world.stored(3)
    environment = {**os.environ, **to_environment(settings)}
    with subprocess.Popen([sys.executable, "-m", "delivery"], env=environment) as again:
        try:
            assert json.loads(updates())["lastUpdate"] == 3
        finally:
            again.kill()


def test_a_socket_ends_when_its_token_is_revoked_or_its_stream_made_private(world: World) -> None:
    """Postgres tells of it; the other sockets stay."""
    database = bootstrap.connect(world.settings)
    with world.watch() as own, world.watch(name="open") as foreign:
        database.rows("UPDATE service_objects SET public = false WHERE id = 'open'")
        with pytest.raises(ConnectionClosed) as private:
            foreign.recv(timeout=WAIT_SECONDS)
        world.emitted(1)
        assert received(own, 1) == [1]
        database.rows("UPDATE tokens SET revoked_at = now()")
        with pytest.raises(ConnectionClosed) as revoked:
            own.recv(timeout=WAIT_SECONDS)

    for each in (private, revoked):
        assert each.value.rcvd is not None
        assert each.value.rcvd.code == 1008
