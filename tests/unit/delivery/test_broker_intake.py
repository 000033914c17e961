"""What a client publishes goes on in its order, and nothing is lost by what another one does."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

import orjson
import pytest

from broker import retries
from broker.client import Client, Parting, Publication, Subscription, Taken
from broker.intake import MAX_TOGETHER, MAX_TOGETHER_BYTES, Intake
from broker.outcomes import Outcome
from broker.published import Published
from broker.retries import MAX_FAULTS
from delivery.admission.refusals import Refusal, Refused
from delivery.admission.requests import Identity
from delivery.backlog import Backlog
from delivery.rest_api import ApiResponse
from ingest.updates import Offered, Sent
from servioticy.domain.access import Scope
from servioticy.domain.tokens import digest

TOKEN = "the token of tenant 1"
SMALL = b'{"channels":{}}'
LARGE = b'{"more":"%b"}' % (b"x" * MAX_TOGETHER_BYTES)
TOPIC = "updates/pump/flow"
REPORT = "pump/actuations/1"
REQUEST = orjson.dumps({"meta": {"authorization": "token", "method": "GET", "url": "/"}})


class Asked(NamedTuple):
    """A request to the API, or updates on their way into the log."""

    path: str
    updates: Sequence[Offered] = ()


class Played:
    """Answers as the test says; keeps to the protocols `Asks` and `Takes`."""

    def __init__(self, update: Callable[[Offered], int], request: Callable[[], int]) -> None:
        self.asked: list[Asked] = []
        self._update, self._request = update, request

    async def ask(
        self, method: str, path: str, token: str, body: bytes, content_type: str
    ) -> ApiResponse:
        self.asked.append(Asked(path))
        return ApiResponse(self._request())

    async def take(self, tenant: int, sent: Sent) -> list[Outcome]:
        assert (tenant, sent.token) == (1, TOKEN)
        self.asked.append(Asked("", sent.updates))
        return [Outcome(self._update(each)) for each in sent.updates]

    @property
    def parts(self) -> list[int]:
        """How many updates went together."""
        return [len(each.updates) for each in self.asked if each.updates]


class Nobody:
    """Takes no messages; keeps to the protocol `Outlet`."""

    def send(
        self, subscription: Subscription, topic: str, payload: bytes, taken: Taken, *, old: bool
    ) -> None:
        taken(True)

    def unsent_bytes(self) -> int:
        return 0

    def close(self, why: str, parting: Parting = Parting.OURS) -> None: ...

    def abort(self) -> None: ...


class World:
    """A client that has published, and what it is told of each message."""

    def __init__(self, update: Callable[[Offered], int], request: Callable[[], int]) -> None:
        self.way = Played(update, request)
        self.client = Client(Nobody(), Backlog(1 << 30))
        self.client.identity = Identity(1, Scope(), TOKEN, digest(TOKEN))
        self.refusals: deque[int] = deque()
        """What whoever asks for an identity is told, before it gets one."""
        self.replies: list[Publication] = []
        self.told: list[int] = []
        self.order: list[int] = []
        """In which messages were answered."""

    async def identify(self, client: Client, token: str) -> Identity:
        if self.refusals:
            raise Refused(Refusal(self.refusals.popleft(), "not now"))
        return client.known

    async def publish(self, messages: Sequence[tuple[str, bytes]], *, is_promise: bool) -> None:
        intake = Intake(self.client, self.way, self.way, self.replies.append, self.identify)
        self.told = [0] * len(messages)
        for place, (topic, payload) in enumerate(messages):

            def answered(outcome: Outcome, place: int = place) -> None:
                self.told[place] = outcome.status
                self.order.append(place)

            intake.add(Published(topic, payload, is_promise, answered))
        intake.start()
        async with asyncio.timeout(20):
            await intake.finish()


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "FIRST_PAUSE_SECONDS", 0.001)


def published(
    *messages: bytes | tuple[str, bytes],
    update: Callable[[Offered], int] = lambda _: 202,
    request: Callable[[], int] = lambda: 202,
    refusals: Sequence[int] = (),
    is_promise: bool = True,
) -> World:
    """Publish these, updates of one stream unless they name a topic."""
    world = World(update, request)
    world.refusals.extend(refusals)
    pairs = [each if isinstance(each, tuple) else (TOPIC, each) for each in messages]
    asyncio.run(world.publish(pairs, is_promise=is_promise))
    return world


def test_what_waits_goes_together_so_many_at_once() -> None:
    found = published(*[SMALL] * (MAX_TOGETHER + 3))

    assert found.way.parts == [MAX_TOGETHER, 3]
    assert found.told == [202] * (MAX_TOGETHER + 3)


def test_so_many_bytes_go_together_and_one_message() -> None:
    found = published(SMALL, LARGE, SMALL, LARGE)

    assert found.way.parts == [2, 2]


def test_updates_and_other_messages_go_in_the_order_of_their_client() -> None:
    """A device may say first that it has done something, and then what it measures."""
    found = published(SMALL, SMALL, (REPORT, b"done"), SMALL)

    assert [len(each.updates) for each in found.way.asked] == [2, 0, 1]
    assert found.order == [0, 1, 2, 3]


def test_a_message_that_is_refused_takes_no_other_with_it() -> None:
    bad = b'{"bad":1}'
    found = published(SMALL, bad, SMALL, update=lambda each: 400 if each.body == bad else 202)

    assert found.told == [202, 400, 202]
    assert len(found.way.asked) == 1


def test_what_cannot_be_taken_now_is_tried_again_alone_and_answers_keep_their_order() -> None:
    """MQTT wants acknowledgements in the order of the messages."""
    tries = deque([503, 429, 202])
    found = published(
        SMALL,
        ("updates/pump/heat", SMALL),
        (TOPIC, b"{}"),
        update=lambda each: tries.popleft() if each.stream.stream == "heat" else 202,
    )

    assert found.told == [202] * 3
    assert found.order == [0, 1, 2]
    assert found.way.parts == [3, 1, 1]


@pytest.mark.parametrize("status", [500, 503, 429])
def test_without_a_promise_it_is_tried_once(status: int) -> None:
    found = published(*[SMALL] * 3, update=lambda _: status, is_promise=False)

    assert found.told == [status] * 3
    assert len(found.way.asked) == 1


def test_a_fault_of_ours_is_tried_again_before_it_is_told() -> None:
    answers = deque([500, 500, 202])
    found = published(SMALL, update=lambda _: answers.popleft())

    assert found.told == [202]


def test_a_message_that_is_a_fault_each_time_is_not_in_the_way_for_ever() -> None:
    bad = b'{"bad":1}'
    found = published(bad, SMALL, update=lambda each: 500 if each.body == bad else 202)

    assert found.told == [500, 202]
    assert found.way.parts == [2, *[1] * (MAX_FAULTS - 1)]


def test_a_request_waits_until_it_is_known_who_asks() -> None:
    found = published(("token/from", REQUEST), refusals=[503, 429], request=lambda: 200)

    assert found.told == [202]
    assert [orjson.loads(each.payload)["meta"]["status"] for each in found.replies] == [200]


def test_a_request_of_nobody_is_refused_at_once() -> None:
    found = published(("token/from", REQUEST), refusals=[403])

    assert found.told == [403]
    assert found.way.asked == []


def test_an_update_of_nobody_is_refused() -> None:
    world = World(lambda _: 202, lambda: 202)
    world.client.identity = None
    asyncio.run(world.publish([(TOPIC, SMALL)], is_promise=True))

    assert world.told == [403]
    assert world.way.asked == []


def test_when_the_client_has_gone_one_try_is_enough_for_all() -> None:
    """Nobody waits for the answers."""
    world = World(lambda _: 503, lambda: 503)
    world.client.end()
    asyncio.run(world.publish([(TOPIC, SMALL)] * 50, is_promise=True))

    assert world.told == [503] * 50
    assert world.way.parts == [50]


def test_a_request_of_a_client_that_has_gone_is_dropped() -> None:
    """Nobody is there for the answer; updates that it published go on."""
    world = World(lambda _: 202, lambda: 202)
    world.client.end()
    asyncio.run(world.publish([(f"{TOKEN}/from", REQUEST), (TOPIC, SMALL)], is_promise=False))

    assert [len(each.updates) for each in world.way.asked] == [1]
    assert world.replies == []
