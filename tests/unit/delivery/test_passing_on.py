"""What another process has is asked of that one: once, bounded, and refused where it has gone."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
from running_delivery import RunningDelivery
from support.delivery_stores import WAIT_SECONDS

from delivery.admission.refusals import Refused
from delivery.feeds import feeds as feeds_module
from delivery.rest_api import ApiResponse
from delivery.transports import passing_on
from delivery.transports.passing_on import MARK, PassingOn
from delivery.transports.pulling import NOT_HERE
from servioticy.domain.model import StreamRef
from servioticy.embedded import tcp_ports as ports
from servioticy.http_heads import Head
from servioticy.ports.cursors import Claim

FLOW = StreamRef("pump", "flow")
ALL = dict.fromkeys(range(64), "http://10.0.0.2:8081")


class Feeds:
    def __init__(self, elsewhere: dict[int, str]) -> None:
        self.claim = Claim("own", frozenset(), frozenset(), 64, elsewhere)


class Others:
    """Notes what is asked, and answers when it may."""

    def __init__(self, status: int = 200) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.status = status
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def ask(self, *asked: Any) -> ApiResponse:
        self.asked.append(asked)
        await self.may_answer.wait()
        return ApiResponse(self.status, b"{}", 2.0)


def a_head(**more: str) -> Head:
    headers = {"HTTP_HOST": "x", "HTTP_AUTHORIZATION": "token-1", **more}
    return Head("GET", "/", "wait=5", headers, 0, False, True, False)


def passing(others: Others, elsewhere: dict[int, str] = ALL) -> PassingOn:
    made = PassingOn(Feeds(elsewhere))  # type: ignore[arg-type]
    made._others = others  # type: ignore[assignment]
    return made


async def refused(asked: Any) -> None:
    with pytest.raises(Refused) as why:
        await asked
    assert why.value.refusal is NOT_HERE


PATH = "/subscriptions/s/updates"


def test_the_question_goes_on_with_the_callers_token() -> None:
    async def play() -> None:
        others = Others()
        answer = await passing(others).ask("s", 1, a_head(), PATH, b"")

        assert answer == ApiResponse(200, b"{}", 2.0)
        assert others.asked == [("GET", f"http://10.0.0.2:8081{PATH}?wait=5", "token-1", b"", "")]

    asyncio.run(play())


def test_it_goes_no_further_than_to_one() -> None:
    """Nor where nobody says that he has it, or where that one does not answer."""

    async def play() -> None:
        others = Others()
        await refused(passing(others).ask("s", 1, a_head(**{MARK: "1"}), PATH, b""))
        await refused(passing(others, {}).ask("s", 1, a_head(), PATH, b""))
        assert others.asked == []
        await refused(passing(Others(0)).ask("s", 1, a_head(), PATH, b""))

    asyncio.run(play())


def test_a_tenant_has_only_so_many_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others still get an answer, and it does when one of its own has come."""
    monkeypatch.setattr(passing_on, "EACH", 2)

    async def play() -> None:
        others = Others()
        others.may_answer.clear()
        way = passing(others)
        waiting = [asyncio.create_task(way.ask("s", 1, a_head(), PATH, b"")) for _ in range(2)]
        await asyncio.sleep(0)
        await refused(way.ask("s", 1, a_head(), PATH, b""))
        waiting.append(asyncio.create_task(way.ask("s", 2, a_head(), PATH, b"")))
        waiting[0].cancel()  # its client has gone
        await asyncio.gather(*waiting[:1], return_exceptions=True)
        waiting.append(asyncio.create_task(way.ask("s", 1, a_head(), PATH, b"")))
        await asyncio.sleep(0)
        others.may_answer.set()
        found = await asyncio.gather(*waiting[1:])
        assert [each.status for each in found] == [200] * 3

    asyncio.run(play())


# Two that run


@pytest.fixture
def two() -> Iterator[tuple[RunningDelivery, RunningDelivery]]:
    """The first is asked; the second has the subscription, which has three updates."""
    with (
        mock.patch.object(feeds_module, "LOOK_SECONDS", 0.01),
        RunningDelivery() as asked,
        RunningDelivery() as holder,
    ):
        holder.cursors.add("s", FLOW)
        asked.cursors.others = f"http://127.0.0.1:{holder.port}"
        asked.cursors.is_claimed_by_others = True
        asked.until(lambda: asked.feeds.claim.holder("s") is not None)
        assert request(asked, "updates?wait=0")[0] == 200
        holder.hub.publish([holder.topic.append(0, FLOW, at) for at in (1, 2, 3)])
        yield asked, holder


def request(
    running: RunningDelivery, what: str, said: str | None = None, **headers: str
) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=WAIT_SECONDS)
    body = None if said is None else json.dumps({"id": said})
    method = "GET" if body is None else "POST"
    connection.request(
        method, f"/subscriptions/s/{what}", body, {"Authorization": "token-1", **headers}
    )
    answer = connection.getresponse()
    found = json.loads(answer.read() or b"null")
    return answer.status, answer.headers["Retry-After"] if answer.status == 503 else found


def test_polls_and_acknowledgements_are_answered_by_whoever_is_asked(two) -> None:
    asked, holder = two
    status, found = request(asked, "updates?limit=2")
    assert status == 200
    assert [each["update"]["lastUpdate"] for each in found["updates"]] == [1, 2]

    assert request(asked, "acknowledgements", found["cursor"])[0] == 200
    assert holder.cursors.rows["s"].cursor.offsets[0] == 2
    assert request(asked, "position")[1]["lag"] == 1
    assert request(asked, "updates?limit=x")[0] == 400
    assert request(asked, "updates", Authorization="token-2")[0] == 404


def test_who_is_told_that_it_was_passed_on_asks_nobody_else(two) -> None:
    asked, holder = two

    assert request(asked, "position", **{passing_on.HEADER: "1"}) == (503, "1")
    assert request(holder, "position", **{passing_on.HEADER: "1"})[0] == 200


def test_a_holder_that_has_gone_is_a_503(two) -> None:
    asked, _holder = two
    asked.cursors.others = f"http://127.0.0.1:{ports.free()}"
    asked.until(lambda: asked.feeds.claim.holder("s") == asked.cursors.others)

    assert request(asked, "updates?wait=0") == (503, "1")


def test_a_client_that_goes_ends_its_question_there(two) -> None:
    """Else the next one would have to take the place of somebody who has gone."""
    asked, holder = two
    cursor = request(asked, "updates")[1]["cursor"]
    assert request(asked, "acknowledgements", cursor)[0] == 200
    with socket.create_connection(("127.0.0.1", asked.port)) as client:
        client.sendall(
            b"GET /subscriptions/s/updates?wait=60&limit=1000 HTTP/1.1\r\nHost: x\r\n"
            b"Authorization: token-1\r\n\r\n"
        )
        holder.until(lambda: len(holder.hub.reception.admitted) == 1)
    asked.until(lambda: len(asked.hub.reception.admitted) == 0)
    holder.until(lambda: len(holder.hub.reception.admitted) == 0)
