"""More clients than there are places: the others still find theirs."""

from __future__ import annotations

import contextlib
import json
import queue
import threading

import pytest
from support.delivery_stores import WAIT_SECONDS, a_capacity, a_document
from support.running_delivery import (
    ATTACKER,
    INNOCENT,
    RunningDelivery,
    a_request,
    received,
    status,
)
from websockets.exceptions import InvalidStatus

from delivery.admission.reception import CATALOG_THREADS
from servioticy.client.follower import Follower
from servioticy.domain.model import StreamRef


def test_sockets_are_limited_for_each_tenant_and_in_all() -> None:
    with (
        RunningDelivery(a_capacity(connections=5, sockets=3)) as running,
        contextlib.ExitStack() as open_sockets,
    ):
        first = [open_sockets.enter_context(running.watch(ATTACKER)) for _ in range(3)]
        with pytest.raises(InvalidStatus) as own:
            running.watch(ATTACKER)
        for _ in range(2):
            open_sockets.enter_context(running.watch(INNOCENT))
        with pytest.raises(InvalidStatus) as everybody:
            running.watch("token-3")
        first[0].close()
        running.until(lambda: running.sockets == 4)
        open_sockets.enter_context(running.watch("token-3"))

        assert [each.value.response.status_code for each in (own, everybody)] == [429, 503]
        assert int(own.value.response.headers["Retry-After"]) > 0
        assert json.loads(everybody.value.response.body)["status"] == 503


def test_a_follower_whose_place_is_taken_waits_for_the_next() -> None:
    """After a restart all sockets of a tenant come again at once."""
    frames: queue.Queue[str] = queue.Queue()
    stop = threading.Event()
    with RunningDelivery(a_capacity(sockets=1)) as running:
        url = f"ws://127.0.0.1:{running.port}"
        follower = Follower(url, StreamRef("pump", "flow"), INNOCENT, after=0)

        def follow() -> None:
            for frame in follower.updates(stop):
                frames.put(frame)

        thread = threading.Thread(target=follow, daemon=True)
        thread.start()
        running.until(lambda: running.sockets == 1)
        running.publish(a_document(1, 1_900_000))
        assert json.loads(frames.get(timeout=10))["lastUpdate"] == 1
        asked = len(running.catalog.asked)
        running.use_up_quota_of(2)
        running.until(lambda: len(running.catalog.asked) > asked)  # it was told 429
        running.release_quota_of(2)
        running.until(lambda: running.sockets == 1)
        running.publish(a_document(2))

        assert json.loads(frames.get(timeout=10))["lastUpdate"] == 2
        stop.set()
        thread.join(WAIT_SECONDS)


def test_places_of_requests_that_end_without_a_socket_are_free_again() -> None:
    """A good token, and no upgrade."""
    with RunningDelivery(a_capacity(connections=1)) as running:
        for _ in range(3):
            target = "/pump/streams/flow/live"
            asked = running.plain(
                f"GET {target} HTTP/1.1\r\nAuthorization: {INNOCENT}\r\n\r\n".encode()
            )
            assert status(asked) == 426
            running.until(lambda: running.sockets == 0)
        with running.watch(INNOCENT):
            pass


def test_thousands_of_silent_connections_keep_nobody_out() -> None:
    """They go, the oldest first, as soon as there are too many of them."""
    with RunningDelivery(a_capacity(pending=200)) as running:
        silent = [running.plain() for _ in range(3_000)]
        with running.watch(INNOCENT) as honest:
            running.publish(a_document(1))

            assert json.loads(honest.recv(10))["lastUpdate"] == 1
        running.until(lambda: running.pending <= 200)
        assert received(silent[0]) == b""


def test_exactly_so_many_may_be_pending() -> None:
    with RunningDelivery(a_capacity(pending=20)) as running:
        silent = [running.plain() for _ in range(20)]
        running.until(lambda: running.pending == 20)
        silent[0].setblocking(False)
        with pytest.raises(BlockingIOError):
            silent[0].recv(1)
        silent[0].settimeout(WAIT_SECONDS)
        running.plain()

        assert received(silent[0]) == b""
        running.until(lambda: running.pending == 20)


def test_a_flood_of_requests_waits_for_itself_alone() -> None:
    """Invented tokens, each another one; the store answers nobody for a while."""
    with RunningDelivery(a_capacity(asking=300, asking_each=100)) as running:
        with running.watch(INNOCENT):
            pass
        running.until(lambda: running.sockets == 0)
        running.catalog.asked.clear()
        running.catalog.may_answer.clear()
        target = "/pump/streams/flow/live"
        flood = [running.plain(a_request(target, f"invented-{n}")) for n in range(250)]
        running.until(lambda: running.pending == 250 - 100 - CATALOG_THREADS)
        honest = running.plain(a_request(target))
        running.until(lambda: running.hub.reception.catalog_calls.waiting == 101)
        running.catalog.may_answer.set()

        assert b" 101 " in honest.recv(1000)
        running.until(lambda: len(running.catalog.asked) == 101 + CATALOG_THREADS)
        # Each that was being asked may have been followed by one of the flood.
        assert running.catalog.asked.index(INNOCENT) <= 2 * CATALOG_THREADS
        assert status(flood[249]) == 429
