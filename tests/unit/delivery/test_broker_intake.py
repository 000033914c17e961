"""What a client publishes reaches the API, and no message is lost by what another one does."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

import orjson
import pytest

from broker import retries
from broker.client import Client, Publication, Subscription, Taken
from broker.intake import Intake
from broker.published import MAX_BATCH_BYTES, Published
from broker.retries import WITH_BATCH, WITH_ONE
from delivery.admission.refusals import Refusal, Refused
from delivery.admission.requests import Identity
from delivery.backlog import Backlog
from delivery.rest_api import ApiResponse
from servioticy.domain.access import Scope
from servioticy.domain.tokens import digest

TOKEN = "the token of tenant 1"
SMALL = b'{"channels":{}}'
LARGE = b'{"more":"%b"}' % (b"x" * MAX_BATCH_BYTES)
ALL_RIGHTS = Scope()
TOPIC = "updates/pump/flow"
REQUEST = orjson.dumps({"meta": {"authorization": "token", "method": "GET", "url": "/"}})


class Asked(NamedTuple):
    method: str
    path: str
    body: bytes

    @property
    def lines(self) -> Sequence[bytes]:
        return self.body.split(b"\n")


class PlayedApi:
    """Answers as the test says; keeps to the protocol `Asks`."""

    def __init__(self, answer: Callable[[Asked], int]) -> None:
        self.asked: list[Asked] = []
        self._answer = answer

    async def ask(
        self, method: str, path: str, token: str, body: bytes, content_type: str
    ) -> ApiResponse:
        self.asked.append(Asked(method, path, body))
        return ApiResponse(self._answer(self.asked[-1]))


class Nobody:
    """Takes no messages; keeps to the protocol `Outlet`."""

    def send(
        self, subscription: Subscription, topic: str, payload: bytes, taken: Taken, *, old: bool
    ) -> None:
        taken(True)

    def unsent_bytes(self) -> int:
        return 0

    def close(self, why: str, *, refused: bool = False) -> None: ...

    def abort(self) -> None: ...


class World:
    """A client that has published, and what it is told of each message."""

    def __init__(self, answer: Callable[[Asked], int], scope: Scope) -> None:
        self.api = PlayedApi(answer)
        self.client = Client(Nobody(), Backlog(1 << 30))
        self.client.identity = Identity(1, scope, TOKEN, digest(TOKEN))
        self.refusals: deque[int] = deque()
        """What whoever asks for an identity is told, before it gets one."""
        self.replies: list[Publication] = []
        self.told: list[int] = []

    async def identify(self, client: Client, token: str) -> Identity:
        if self.refusals:
            raise Refused(Refusal(self.refusals.popleft(), "not now"))
        return client.known

    async def publish(self, messages: Sequence[tuple[str, bytes]], *, is_promise: bool) -> None:
        intake = Intake(self.client, self.api, self.replies.append, self.identify)
        self.told = [0] * len(messages)
        for place, (topic, payload) in enumerate(messages):

            def answered(answer: ApiResponse, place: int = place) -> None:
                self.told[place] = answer.status

            intake.add(Published(topic, payload, is_promise, answered))
        intake.start()
        async with asyncio.timeout(20):
            await intake.finish()


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "FIRST_PAUSE_SECONDS", 0.001)


def published(
    *messages: bytes | tuple[str, bytes],
    answer: Callable[[Asked], int] = lambda _: 202,
    scope: Scope = ALL_RIGHTS,
    refusals: Sequence[int] = (),
    is_promise: bool = True,
) -> World:
    """Publish these, updates of one stream unless they name a topic."""
    world = World(answer, scope)
    world.refusals.extend(refusals)
    pairs = [each if isinstance(each, tuple) else (TOPIC, each) for each in messages]
    asyncio.run(world.publish(pairs, is_promise=is_promise))
    return world


def a_limit(asked: Asked) -> int:
    return 413 if len(asked.body) > MAX_BATCH_BYTES else 202


def test_a_large_message_takes_no_other_with_it() -> None:
    found = published(*[SMALL] * 10, LARGE, *[SMALL] * 10, answer=a_limit)

    assert found.told == [202] * 10 + [413] + [202] * 10
    assert [len(each.lines) for each in found.api.asked] == [10, 1, 10]


def test_a_batch_counts_the_names_of_its_streams() -> None:
    names = [f"updates/pump/{'s' * 1900}{at}" for at in range(300)]

    found = published(*[(name, SMALL) for name in names], answer=a_limit)

    assert found.told == [202] * 300
    assert max(len(each.body) for each in found.api.asked) <= MAX_BATCH_BYTES
    assert {each.method for each in found.api.asked} == {"POST"}


@pytest.mark.parametrize("scope", [ALL_RIGHTS, Scope("pump")])
@pytest.mark.parametrize("status", [400, 403, 413, 500])
def test_of_a_refused_batch_each_message_is_asked_for_alone(status: int, scope: Scope) -> None:
    """Only one of them may be what the API does not want."""
    bad = b'{"bad":1}'
    found = published(
        SMALL, bad, SMALL, answer=lambda asked: status if bad in asked.body else 202, scope=scope
    )

    assert found.told == [202, status, 202]


def test_a_batch_that_nobody_answers_is_not_repeated_for_ever() -> None:
    """Who does not want its size may close the connection."""
    found = published(*[SMALL] * 3, answer=lambda asked: 0 if asked.method == "POST" else 202)

    assert found.told == [202] * 3
    assert len(found.api.asked) == WITH_BATCH.silences + 3


def test_without_a_promise_a_batch_is_tried_once() -> None:
    found = published(*[SMALL] * 3, answer=lambda _: 503, is_promise=False)

    assert found.told == [503] * 3
    assert len(found.api.asked) == 1


def test_updates_of_a_token_for_one_object_go_to_their_streams() -> None:
    other = ("updates/pump/heat", SMALL)
    found = published(SMALL, SMALL, other, other, SMALL, scope=Scope("pump"))

    assert [(each.method, each.path) for each in found.api.asked] == [
        ("POST", "/pump/streams/flow/updates"),
        ("POST", "/pump/streams/heat/updates"),
        ("PUT", "/pump/streams/flow"),
    ]


def test_a_fault_of_ours_is_tried_again_before_it_is_told() -> None:
    answers = deque([500, 500, 202])
    found = published(SMALL, answer=lambda _: answers.popleft())

    assert found.told == [202]


def test_a_message_that_is_a_fault_each_time_is_not_in_the_way_for_ever() -> None:
    found = published(SMALL, answer=lambda _: 500)

    assert found.told == [500]
    assert len(found.api.asked) == WITH_ONE.faults


def test_a_request_waits_until_it_is_known_who_asks() -> None:
    found = published(("token/from", REQUEST), refusals=[503, 429], answer=lambda _: 200)

    assert found.told == [202]
    assert [orjson.loads(each.payload)["meta"]["status"] for each in found.replies] == [200]


def test_a_request_of_nobody_is_refused_at_once() -> None:
    found = published(("token/from", REQUEST), refusals=[403])

    assert found.told == [403]
    assert found.api.asked == []


def test_when_the_client_has_gone_one_try_is_enough_for_all() -> None:
    """Each may take a minute, and nobody waits for the answers."""
    world = World(lambda _: 503, ALL_RIGHTS)
    world.client.end()
    asyncio.run(world.publish([(TOPIC, SMALL)] * 50, is_promise=True))

    assert world.told == [503] * 50
    assert len(world.api.asked) == 2


def test_a_request_of_a_client_that_has_gone_is_dropped() -> None:
    """Nobody is there for the answer; updates that it published go on."""
    world = World(lambda _: 202, ALL_RIGHTS)
    world.client.end()
    asyncio.run(world.publish([(f"{TOKEN}/from", REQUEST), (TOPIC, SMALL)], is_promise=False))

    assert [each.method for each in world.api.asked] == ["PUT"]
    assert world.replies == []
