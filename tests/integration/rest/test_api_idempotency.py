"""A request that comes again with its key is done once, and answered as the first time."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator

import orjson
import pytest
from api_builders import NOW, SIMPLE, Caller, Platform, Served
from werkzeug.test import TestResponse

from api.app import create_app
from api.http import idempotency
from sandbox.text import argument_names
from servioticy.changes import Changes
from servioticy.domain.records import UpdateRecord
from servioticy.errors import Unavailable
from servioticy.settings import Settings, changed
from servioticy.storage.queries import queries

DOCUMENT = orjson.dumps(SIMPLE)
BATCH = b'[{"channels":{"x":{"current-value":1}},"lastUpdate":1},7]'
SECONDS = 300.0


class Clock:
    now = NOW

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def served(backend: Platform, clock: Clock) -> Iterator[Served]:
    """An API whose clock the test sets."""
    settings = changed(Settings(), max_body_bytes=20_000)
    yield Served(create_app(backend.ports, settings, clock, argument_names), backend)


def send(caller: Caller, path: str, body: bytes, key: str = "key") -> TestResponse:
    return caller.ask("POST", path, data=body, headers={"Idempotency-Key": key})


def test_a_service_object_is_created_once(alice: Caller) -> None:
    answers = [send(alice, "/", DOCUMENT) for _ in range(3)]

    assert [each.status_code for each in answers] == [201] * 3
    assert len({each.data for each in answers}) == 1
    assert len({(each.headers["Location"], each.headers["ETag"]) for each in answers}) == 1
    assert [each.headers.get("Idempotency-Replayed") for each in answers] == [None, "true", "true"]
    assert len(alice.ask("GET", "/").get_json()) == 1


@pytest.mark.parametrize("many", [False, True])
def test_a_batch_is_accepted_once(many: bool, served: Served, alice: Caller) -> None:
    """The refused ones are told again, too."""
    so = alice.create()
    named = b'[{"serviceObject":"%b","stream":"a","update":%b},7]'
    body = named % (so.encode(), BATCH[1:-3]) if many else BATCH
    path = "/updates" if many else f"/{so}/streams/a/updates"

    answers = [send(alice, path, body) for _ in range(2)]

    assert [each.status_code for each in answers] == [207, 207]
    assert answers[0].data == answers[1].data
    records = [record for n in (0, 1) for _, record in served.platform.records(n)]
    assert sum(isinstance(each, UpdateRecord) for each in records) == 1


def test_a_key_is_the_tenants_own(alice: Caller, bob: Caller) -> None:
    ids = [send(each, "/", DOCUMENT).get_json()["id"] for each in (alice, bob)]

    assert ids[0] != ids[1]


def test_a_key_with_another_request_is_refused(alice: Caller) -> None:
    so = alice.create()
    send(alice, "/", DOCUMENT)

    answers = [
        send(alice, "/", DOCUMENT + b" "),
        send(alice, f"/{so}/streams/a/updates", BATCH),
        send(alice, "/?x=1", DOCUMENT),
    ]

    assert [each.status_code for each in answers] == [422] * 3


def test_what_was_refused_leaves_the_key_free(alice: Caller) -> None:
    """Nothing was done, and the client mends its request."""
    assert send(alice, "/", b"{}").status_code == 400
    assert send(alice, "/", DOCUMENT).status_code == 201


def test_what_failed_leaves_the_key_free(served: Served, alice: Caller) -> None:
    so = alice.create()
    served.platform.state.broker_answers = False
    failed = send(alice, f"/{so}/streams/a/updates", BATCH)
    served.platform.state.broker_answers = True

    assert failed.status_code == 503
    assert send(alice, f"/{so}/streams/a/updates", BATCH).status_code == 207


def test_the_same_at_once_is_done_once(served: Served, alice: Caller) -> None:
    """Whoever comes meanwhile is told to try again."""
    answers: list[int] = []
    gate = threading.Barrier(8)

    def ask() -> None:
        own = Caller(served.app.test_client(), alice.token)
        gate.wait(SECONDS)
        answers.append(send(own, "/", DOCUMENT).status_code)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(SECONDS)

    counted = Counter(answers)
    assert counted[201] >= 1
    assert counted[201] + counted[409] == 8
    assert len(alice.ask("GET", "/").get_json()) == 1


def test_while_one_works_the_other_is_told_so(
    alice: Caller, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attempt that was killed keeps the key for five minutes, and not longer."""

    def killed(*_arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Changes, "create", killed)
        give_up = "DELETE FROM idempotency"
        patch.setitem(queries("idempotency"), "give_up", f"{give_up} WHERE false")
        with pytest.raises(KeyboardInterrupt):
            send(alice, "/", DOCUMENT)

    assert send(alice, "/", DOCUMENT).status_code == 409
    assert send(alice, "/", DOCUMENT + b" ").status_code == 422
    clock.now += 301
    assert send(alice, "/", DOCUMENT).status_code == 201


def test_an_answer_is_kept_for_a_day(alice: Caller, clock: Clock) -> None:
    first = send(alice, "/", DOCUMENT)
    clock.now += 86_399
    again = send(alice, "/", DOCUMENT)
    clock.now += 2
    later = send(alice, "/", DOCUMENT)

    assert first.data == again.data
    assert (later.status_code, later.data != first.data) == (201, True)


def test_what_is_kept_is_bounded_and_goes(
    served: Served, alice: Caller, bob: Caller, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest go as soon as they may; until then there is a most."""
    monkeypatch.setattr(idempotency, "MAX_KEYS", 2)
    monkeypatch.setattr(idempotency, "KNOWN_MS", -1)
    statuses = [send(alice, "/", DOCUMENT, f"{n}").status_code for n in range(3)]
    other = send(bob, "/", DOCUMENT).status_code
    clock.now += 86_401
    later = send(alice, "/", DOCUMENT, "3").status_code

    assert (statuses, other, later) == ([201, 201, 429], 201, 201)
    count = "SELECT count(*) FROM idempotency WHERE tenant_id = 1"
    assert served.platform.database.rows(count) == [(1,)]


def test_the_stored_answer_tells_nothing_without_the_token(served: Served, alice: Caller) -> None:
    """It may hold a token, and tokens are stored nowhere."""
    answer = send(alice, "/", DOCUMENT)

    [(body,)] = served.platform.database.rows("SELECT body FROM idempotency")

    assert len(bytes(body)) == len(answer.data)
    assert not any(part in bytes(body) for part in (b"id", answer.data[:8], answer.data[-8:]))


@pytest.mark.parametrize("key", ["", "a b", "x" * 201, "\u00e9", "a\tb"])
def test_a_key_that_is_none_is_refused(key: str, alice: Caller) -> None:
    assert send(alice, "/", DOCUMENT, key).status_code == 400


def test_without_postgres_nothing_is_done(
    served: Served, alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a note of it, it could be done twice."""

    def fail(*_arguments: object, **_values: object) -> None:
        raise Unavailable("Postgres does not answer")

    monkeypatch.setattr(idempotency.Idempotency, "_is_full", fail)

    assert send(alice, "/", DOCUMENT).status_code == 503
    assert alice.ask("GET", "/").get_json() == []
