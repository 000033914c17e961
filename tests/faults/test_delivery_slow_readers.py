"""Clients that read slowly or not at all cost the others nothing, and are bounded by bytes."""

from __future__ import annotations

import contextlib
import json
import threading
import tracemalloc
from typing import Any

import pytest
from support.delivery_stores import WAIT_SECONDS, a_document
from support.running_delivery import (
    ATTACKER,
    INNOCENT,
    RunningDelivery,
)
from websockets.exceptions import ConnectionClosed

from delivery import hub, watcher
from delivery.hub import HISTORY_THREADS
from delivery.transport import WRITE_BUFFER_BYTES
from delivery.transports import websocket
from servioticy.domain.model import LastUpdate


def test_catch_ups_that_nobody_reads_are_bounded_by_bytes() -> None:
    """Sixty times a history of a gigabyte, and one socket that reads its own to the end."""
    with RunningDelivery() as running, contextlib.ExitStack() as open_sockets:
        running.history.updates, running.history.size = 10_000, 100_000
        tracemalloc.start()
        open_sockets.callback(tracemalloc.stop)
        for _ in range(60):
            open_sockets.enter_context(running.unread(ATTACKER, "?after=0"))
        reader = open_sockets.enter_context(running.watch(INNOCENT, "?after=9900"))
        got = [json.loads(reader.recv(30))["lastUpdate"] for _ in range(100)]
        peak = tracemalloc.get_traced_memory()[1]

        assert got == list(range(9901, 10_001))
        assert running.history.largest_page <= 262_144
        # A page, a full buffer, two updates on their way, and the connection: 0.7 MB each.
        assert peak < 61 * 700_000 + 5_000_000


def test_the_budget_for_all_is_kept_by_those_who_do_not_read() -> None:
    """They lose their sockets, whoever reads keeps his, however many they are."""
    budget = 4 * 1024 * 1024
    with (
        RunningDelivery(max_backlog_bytes=budget) as running,
        contextlib.ExitStack() as open_sockets,
    ):
        running.history.updates, running.history.size = 10_000, 50_000
        reader = open_sockets.enter_context(running.watch(INNOCENT, "?after=0"))
        for _ in range(60):
            open_sockets.enter_context(running.unread(ATTACKER, "?after=0"))
        for at in range(1, 201):
            assert json.loads(reader.recv(30))["lastUpdate"] == at
        running.until(lambda: running.sockets < 40)

        running.until(lambda: running.hub.backlog.total <= budget)
        assert json.loads(reader.recv(30))["lastUpdate"] == 201


def test_what_is_remembered_of_many_histories_is_bounded_and_closes_nobody() -> None:
    """Tiny updates: to remember them takes more than to send them."""
    budget = 2 * 1024 * 1024
    with (
        RunningDelivery(max_backlog_bytes=budget) as running,
        contextlib.ExitStack() as open_sockets,
    ):
        running.history.updates, running.history.size = 2_000, 30
        clients = [
            open_sockets.enter_context(running.watch(ATTACKER, "?after=0")) for _ in range(20)
        ]
        for client in clients:
            for at in range(1, 2_001):
                assert json.loads(client.recv(30))["lastUpdate"] == at
        running.publish(a_document(9_999))

        assert {json.loads(client.recv(30))["lastUpdate"] for client in clients} == {9_999}
        assert running.sockets == 20
        running.until(lambda: running.hub.backlog.total <= budget)


def test_a_thousand_slow_ones_closed_at_once_cost_the_others_nothing(monkeypatch) -> None:
    """They take not even the close frame; they are cut off before anything else ends them."""
    monkeypatch.setattr(watcher, "STALL_SECONDS", 10 * WAIT_SECONDS)
    monkeypatch.setattr(websocket, "PING_SECONDS", 10 * WAIT_SECONDS)
    with (
        RunningDelivery(max_unsent_bytes=2 * WRITE_BUFFER_BYTES) as running,
        running.watch(INNOCENT) as honest,
    ):
        for _ in range(1_000):
            running.unread(ATTACKER)
        sent = 0
        while running.sockets > 1 and sent < 200:
            running.publish(a_document(sent, 20_000))
            assert json.loads(honest.recv(30))["lastUpdate"] == sent
            sent += 1
        running.until(lambda: running.sockets == 1)
        running.publish(a_document(sent))

        assert json.loads(honest.recv(30))["lastUpdate"] == sent


def test_a_socket_that_takes_nothing_is_cut_off_though_nothing_more_comes(monkeypatch) -> None:
    """Its pings wait behind what it does not read."""
    monkeypatch.setattr(watcher, "STALL_SECONDS", 0.3)
    monkeypatch.setattr(hub, "CHECK_SECONDS", 0.05)
    with RunningDelivery() as running:
        running.history.updates, running.history.size = 100, 100_000
        client = running.unread(ATTACKER, "?after=0")
        running.until(lambda: running.sockets == 0)
        client.close()


def test_stopping_does_not_wait_for_those_who_do_not_listen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A socket that takes nothing, and a connection that says nothing: nothing else ends them."""
    for limit in ("HANDSHAKE_SECONDS", "PING_SECONDS"):
        monkeypatch.setattr(websocket, limit, 10 * WAIT_SECONDS)
    monkeypatch.setattr(watcher, "STALL_SECONDS", 10 * WAIT_SECONDS)
    with RunningDelivery() as running:
        running.history.updates, running.history.size = 100, 100_000
        running.unread(ATTACKER, "?after=0")
        running.plain()
        running.until(lambda: running.hub.backlog.total > WRITE_BUFFER_BYTES)


def test_who_leaves_the_queue_of_histories_leaves_nothing_there() -> None:
    """Opened and closed ten thousand times, a queue must not grow."""
    asked, may_go = threading.Event(), threading.Event()
    with RunningDelivery() as running:

        def hang(*_: Any) -> list[LastUpdate]:
            asked.set()
            may_go.wait(WAIT_SECONDS)
            return []

        running.history.updates_after = hang  # type: ignore[method-assign]
        for _ in range(HISTORY_THREADS + 20):
            with running.watch(ATTACKER, "?after=0"):
                pass
        assert asked.wait(WAIT_SECONDS)
        running.until(lambda: running.sockets == 0)
        running.until(lambda: running.hub.history_calls.waiting == 0)
        may_go.set()


def test_a_slow_one_is_told_before_it_is_cut_off() -> None:
    """It reads in the end: the close frame says what to do."""
    with RunningDelivery(max_unsent_bytes=32 * 1024) as running, running.watch(ATTACKER) as slow:
        for sent in range(200):
            running.publish(a_document(sent, 100_000))
        with pytest.raises(ConnectionClosed) as end:
            while True:
                slow.recv(10)

        assert end.value.rcvd is None or "slower" in end.value.rcvd.reason
