"""Feeds of durable subscriptions, shared by two processes of delivery of which one is killed."""

from __future__ import annotations

import itertools
import json
import random
import threading
import time
import urllib.error
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from support.delivery_program import (
    WAIT_SECONDS,
    World,
    again,
    settings,
    subscribe,
    until_held,
    world,
)

from servioticy.embedded import tcp_ports as ports
from servioticy.settings import changed

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


@contextmanager
def sent(world: World) -> Iterator[Callable[[], int]]:
    """Updates come without a pause; what is yielded ends that, and tells how many there were."""
    stopping, last = threading.Event(), [0]

    def send() -> None:
        while not stopping.is_set():
            last[0] += 1
            world.stored(last[0])
            world.emitted(last[0])
            stopping.wait(0.01)

    thread = threading.Thread(target=send)

    def stop() -> int:
        stopping.set()
        thread.join()
        return last[0]

    thread.start()
    try:
        yield stop
    finally:
        stop()


class Puller:
    """The client of a subscription, who asks whom he likes."""

    def __init__(self, world: World, id_: str, *ports: int) -> None:
        self._world, self.id = world, id_
        self.ports = itertools.cycle(ports)
        self.got: list[int] = []
        self.statuses: Counter[int] = Counter()

    def ask(self, what: str, said: str = "", **headers: str) -> tuple[int, Any]:
        """The next of the processes."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{next(self.ports)}/subscriptions/{self.id}/{what}",
            data=json.dumps({"id": said}).encode() if said else None,
            headers={"Authorization": self._world.ours, **headers},
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, error.headers["Retry-After"]

    def pull(self) -> None:
        """Fetch what there is, and acknowledge it to the other one; 503 is tried again."""
        status, found = self.ask("updates?wait=5&limit=5")
        self.statuses[status] += 1
        if status == 200 and found["updates"]:
            self.got += [each["update"]["lastUpdate"] for each in found["updates"]]
            self.statuses[self.ask("acknowledgements", found["cursor"])[0]] += 1


@pytest.mark.timeout(600)
def test_who_comes_and_goes_has_nobody_lose_or_get_more_than_one_twice(
    world: World, receiver: Receiver
) -> None:
    """Slots are given up by processes that live, and polls reach whoever has them."""
    called, pulled = [[f"{kind}{number}" for number in range(12)] for kind in "cp"]
    for id_ in called:
        subscribe(world, id_, called=receiver.address(id_))
    for id_ in pulled:
        subscribe(world, id_)
    until_held(world, 64)
    other = changed(world.settings, live_port=ports.free())
    both = (world.settings.delivery.port, other.delivery.port)
    with sent(world) as stop:
        with again(other) as second:
            until_held(world, 32, 32)
            pullers = [Puller(world, id_, *both) for id_ in pulled]
            wait_for_claims = time.monotonic() + 1.5  # each has looked since
            for each in itertools.cycle(pullers):
                each.pull()
                if time.monotonic() > wait_for_claims and each is pullers[-1]:
                    break
            before = [Counter(each.statuses) for each in pullers]
            for each in pullers * 2:
                each.pull()
            alone = [each.ask("position", **{"X-Servioticy-Passed-On": "1"}) for each in pullers]
            alone += [each.ask("position", **{"X-Servioticy-Passed-On": "1"}) for each in pullers]
            second.terminate()
            second.wait(30)
        until_held(world, 64)
        count = stop()
    for each in pullers:
        each.ports = itertools.cycle(both[:1])
        while len(set(each.got)) < count:
            each.pull()
    deadline = time.monotonic() + WAIT_SECONDS
    while any(count not in receiver.got[id_] for id_ in called):
        assert time.monotonic() < deadline, {id_: len(receiver.got[id_]) for id_ in called}
        time.sleep(0.1)

    for was, each in zip(before, pullers, strict=True):
        assert set(was) <= {200, 503}
        assert list(dict.fromkeys(each.got)) == [*range(1, count + 1)], each.id
    assert Counter(status for status, _ in alone) == {200: len(pullers), 503: len(pullers)}
    assert {found for status, found in alone if status == 503} == {"1"}
    for id_ in called:
        got = receiver.got[id_]
        assert list(dict.fromkeys(got)) == [*range(1, count + 1)], id_
        assert max(Counter(got).values()) <= 2 and len(got) <= count + 2, (id_, got)


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
