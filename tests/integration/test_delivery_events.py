"""Events and polls of the delivery program itself, on a real broker and a real Postgres."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from support.delivery_program import WAIT_SECONDS, World, again, settings, subscribe, world

from servioticy import bootstrap
from servioticy.domain.model import StreamRef
from servioticy.ports.change_store import NewServiceObject
from servioticy.ports.cursors import Source
from servioticy.settings import Settings
from servioticy.storage.change_store import PostgresChangeStore

__all__ = ["settings", "world"]


class Client:
    def __init__(self, world: World) -> None:
        self._base = world.url.replace("ws:", "http:")
        self._headers = {"Authorization": world.ours}

    def poll(self, cursor: str | None = None, wait: int = 20) -> tuple[list[int], str | None]:
        query = {"wait": str(wait)} | ({"cursor": cursor} if cursor else {})
        url = f"{self._base}/subscriptions/s/updates"
        answer = httpx.get(url, params=query, headers=self._headers, timeout=WAIT_SECONDS)
        assert answer.status_code == 200, answer.text
        found = answer.json()
        return [each["update"]["lastUpdate"] for each in found["updates"]], found["cursor"]

    @contextmanager
    def events(self, last: str | None = None) -> Iterator[Iterator[tuple[str, Any]]]:
        url = f"{self._base}/mine/streams/data/events"
        headers = self._headers | ({"Last-Event-ID": last} if last else {})
        with httpx.stream("GET", url, headers=headers, timeout=WAIT_SECONDS) as answer:
            assert answer.status_code == 200
            yield _events(answer.iter_lines())


def _events(lines: Iterator[str]) -> Iterator[tuple[str, Any]]:
    """Yield the ids of events, and what they say; an id alone says None."""
    event: dict[str, str] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(": ")
            event[name] = value
        elif event:
            if "id" in event:
                yield event["id"], json.loads(event["data"]) if "data" in event else None
            event = {}


def test_events_go_on_in_a_process_that_comes_after_a_killed_one(
    world: World, settings: Settings
) -> None:
    """What was emitted meanwhile comes, also what has an old timestamp."""
    client = Client(world)
    with client.events() as events:
        next(events)
        world.emitted(10, 20)
        got = [next(events) for _ in range(2)]
    world.program.kill()
    world.program.wait()
    world.emitted(5, 30)
    with again(settings), client.events(got[-1][0]) as events:
        assert next(events) == (got[-1][0], None)
        got += [next(events) for _ in range(2)]
        world.emitted(40)
        got.append(next(events))

    assert [update["lastUpdate"] for _, update in got] == [10, 20, 5, 30, 40]


def test_polls_lose_nothing_to_a_kill(world: World, settings: Settings) -> None:
    """What was not acknowledged comes again; what was does not."""
    client = Client(world)
    subscribe(world, "s")
    world.emitted(1, 2)
    got, cursor = client.poll()
    while len(got) < 2:
        more, cursor = client.poll(cursor)
        got += more
    world.emitted(3)
    third, _ = client.poll(cursor)
    world.program.kill()
    world.program.wait()
    world.emitted(4)
    with again(settings):
        rest, last = client.poll(cursor)
        while 4 not in rest:
            more, last = client.poll(last)
            rest += more

    assert (got, third, rest) == ([1, 2], [3], [3, 4])


@pytest.mark.parametrize("path", ["/mine/streams/data/events", "/subscriptions/s/updates"])
def test_strangers_get_nothing(world: World, path: str) -> None:
    subscribe(world, "s")
    base = world.url.replace("ws:", "http:")
    foreign = httpx.get(base + path, headers={"Authorization": world.theirs}, timeout=30)
    wrong = httpx.get(base + path + "?access_token=wrong", timeout=30)

    assert foreign.status_code in (401, 404)
    assert wrong.status_code == 403


def test_a_member_that_is_made_later_comes_with_its_history_through_a_kill(
    world: World, settings: Settings
) -> None:
    """What it sent before delivery knew that it belongs."""
    address = world.addresses.address(world.ours, None, None)
    tenant = address.caller if address else 0
    database = bootstrap.connect(world.settings)
    changes = PostgresChangeStore(database)
    sources = (("g", StreamRef("mine", "data")),)
    changes.create(NewServiceObject("reader", tenant, False, b"{}", (), sources, 1), 1)
    subscribe(world, "s", Source("reader", group="g"))
    client = Client(world)
    world.emitted(1)
    got, cursor = client.poll()
    changes.create(NewServiceObject("late", tenant, False, b"{}", ("data",), (), 1), 1)
    world.stored(10, 20, name="late")
    world.emitted(10, 20, name="late")
    world.emitted(2)
    second, cursor = client.poll(cursor)
    world.program.kill()
    world.program.wait()
    with database.transaction():
        edge = {"tenant": tenant}
        database.rows(
            "INSERT INTO graph_edges (tenant_id, reader, group_name, stream_id)"
            " SELECT %(tenant)s, 'reader', 'g', id FROM streams WHERE service_object = 'late'",
            edge,
        )
        database.rows("UPDATE service_objects SET version = 2 WHERE id = 'reader'")
    with again(settings):
        rest: list[int] = []
        while len(rest) < 2:
            more, cursor = client.poll(cursor)
            rest += more
        world.emitted(30, name="late")
        world.emitted(3)
        while not {30, 3} <= set(rest):
            more, cursor = client.poll(cursor)
            rest += more

    assert (got, second) == ([1], [2])
    assert sorted(set(rest) - {2}) == [3, 10, 20, 30]
    assert [each for each in dict.fromkeys(rest) if each >= 10] == [10, 20, 30]
