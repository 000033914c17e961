"""Feeds of durable subscriptions, shared by two processes of delivery of which one is killed."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from support.delivery_program import WAIT_SECONDS, World, again, settings, subscribe, world

from servioticy import bootstrap
from servioticy.embedded import tcp_ports as ports
from servioticy.settings import changed
from servioticy.storage.cursors import Deliverer

__all__ = ["settings", "world"]

SUBSCRIPTIONS = 24
UPDATES = 120


class Receiver:
    """Takes whatever it is called with, by the path."""

    def __init__(self) -> None:
        self.got: defaultdict[str, list[int]] = defaultdict(list)
        got = self.got

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                got[self.path[1:]].append(body["lastUpdate"])
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_arguments: object) -> None:
                """Nobody reads it."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def address(self, id_: str) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/{id_}"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.server.shutdown()
    made.server.server_close()


def held(world: World) -> list[int]:
    """How many slots each process has."""
    sql = """SELECT pid FROM pg_locks
              WHERE locktype = 'advisory' AND objsubid = 2 AND classid::bigint = %(slots)s
                AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"""
    locks = Deliverer.DELIVERY.value._asdict()
    rows = bootstrap.connect(world.settings).rows(sql, locks)
    return sorted(Counter(pid for (pid,) in rows).values())


def until_held(world: World, *slots: int) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while held(world) != [*slots]:
        assert time.monotonic() < deadline, held(world)
        time.sleep(0.1)


@pytest.mark.timeout(600)
def test_who_is_left_takes_over_and_nothing_is_lost(world: World, receiver: Receiver) -> None:
    """Each subscription has all, in order; and twice what was under way when it changed hands."""
    ids = [f"s{number}" for number in range(SUBSCRIPTIONS)]
    for id_ in ids:
        subscribe(world, id_, called=receiver.address(id_))
    until_held(world, 64)

    with again(changed(world.settings, live_port=ports.free())) as second:
        killed_at = random.Random(7).randrange(UPDATES // 3, UPDATES // 2)
        for at in range(1, UPDATES + 1):
            if at == UPDATES // 4:
                until_held(world, 32, 32)
            if at == killed_at:
                random.choice((world.program, second)).kill()
            world.stored(at)
            world.emitted(at)
        until_held(world, 64)
        deadline = time.monotonic() + WAIT_SECONDS
        while any(UPDATES not in receiver.got[id_] for id_ in ids):
            assert time.monotonic() < deadline, {id_: len(receiver.got[id_]) for id_ in ids}
            time.sleep(0.1)

    for id_ in ids:
        got = receiver.got[id_]
        assert list(dict.fromkeys(got)) == [*range(1, UPDATES + 1)], id_
        assert len(got) <= UPDATES + 2, (id_, got)
