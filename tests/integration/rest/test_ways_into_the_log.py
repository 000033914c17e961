"""An update is the same in the log, and refused in the same words, whatever way it comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple
from unittest import mock

import msgspec
import orjson
import pytest
import waiting
from api_builders import NOW, SIMPLE, Caller, Served
from support.mqtt_client import MqttClient
from support.running_broker import RunningBroker
from support.stomp_client import StompClient

from api.app import SERVICES
from api.edge.calls import Answer, Application, Request
from api.updates_lane import UpdatesLane
from broker import ingesting, outcomes
from delivery import rest_api
from servioticy.domain.records import LogRecord, UpdateRecord, write
from servioticy.http_heads import parse
from servioticy.settings import Settings, changed
from servioticy.storage.quotas import PostgresQuotas

AT = int(NOW * 1000)
BODY = b'{"channels":{"x":{"current-value":1.5}},"lastUpdate":%d}' % AT
MAX_BODY = 20_000


def _timeless(record: LogRecord) -> LogRecord:
    return msgspec.structs.replace(record, at=0) if isinstance(record, UpdateRecord) else record


class Said(NamedTuple):
    """What became of an update."""

    status: int
    message: str = ""


Way = Callable[[str, str, str, bytes], Said]
"""Sends with a token, to a stream of a Service Object, such a body."""


class Ways:
    """All ways into one log, over the stores of one platform."""

    def __init__(self, served: Served, broker: RunningBroker) -> None:
        self.served = served
        self.broker = broker
        lane = UpdatesLane(served.app.extensions[SERVICES].ingest)
        self._application = Application(served.app, "127.0.0.1", 8080, lane.answers)

    def records(self) -> list[tuple[int, bytes]]:
        """What stands in the log, as it is written there, with the partition; but for when."""
        log = self.served.platform.log
        return [
            (number, write(_timeless(record)))
            for number in range(log.partitions())
            for _, record in log.records(number)
        ]

    def put(self, token: str, service_object: str, stream: str, body: bytes) -> Said:
        """As the edge does: together with others, or where that is not for it alone."""
        head = [f"PUT /{service_object}/streams/{stream} HTTP/1.1", f"Authorization: {token}"]
        head += ["Host: h", f"Content-Length: {len(body)}"]
        request = Request(parse("\r\n".join(head).encode()), body, "127.0.0.1")
        assert self._application.together is not None
        answer = self._application.together([request])[0] or self._application.call(request)
        assert isinstance(answer, Answer)
        status = int(answer.status.split()[0])
        return Said(status, orjson.loads(answer.body)["message"] if status != 202 else "")

    def mqtt(self, token: str, service_object: str, stream: str, body: bytes) -> Said:
        with MqttClient(self.broker.port, token, version=5) as client:
            assert client.subscribe("errors")
            number = client.publish(f"updates/{service_object}/{stream}", body, 1)
            if not client.acknowledged(number).is_failure:
                return Said(202)
            told = orjson.loads(client.received(1)[0][1])
        return Said(told["status"], told["message"])

    def stomp(self, token: str, service_object: str, stream: str, body: bytes) -> Said:
        client = StompClient(self.broker.port, token)
        client.send("SUBSCRIBE", {"id": "e", "destination": "/topic/errors"})
        destination = f"/topic/updates/{service_object}/{stream}"
        client.send("SEND", {"destination": destination, "receipt": "r"}, body)
        found = client.receive()
        client.close()
        if found.command == "RECEIPT":
            return Said(202)
        told = orjson.loads(found.body)
        return Said(told["status"], told["message"])


@pytest.fixture
def ways(served: Served) -> Iterator[Ways]:
    """The broker is as its program wires it, as its own role in Postgres."""
    platform = served.platform
    database = platform.database.delivery
    addresses = platform.ports.addresses
    settings = changed(Settings(), max_body_bytes=MAX_BODY)
    way = ingesting.ingest(settings, database, addresses, platform.log, lambda: NOW)
    with RunningBroker(addresses=addresses, ingest=way) as broker:
        yield Ways(served, broker)


def test_the_same_record_comes_into_the_log(ways: Ways, alice: Caller) -> None:
    so = alice.create()
    before = len(ways.records())
    odd = b' {"lastUpdate": %d, "more": [1e9], "channels": {"x": {"current-value": 2}}}\n' % AT

    for body in (BODY, odd):
        assert {way(alice.token, so, "a", body) for way in (ways.put, ways.mqtt, ways.stomp)} == {
            Said(202)
        }

    came = ways.records()[before:]
    assert len(came) == 6
    assert len(set(came[:3])) == len(set(came[3:])) == 1


def test_what_is_refused_is_refused_in_the_same_words(
    ways: Ways, alice: Caller, bob: Caller
) -> None:
    so, theirs = alice.create(), bob.create(SIMPLE | {"public": True})
    other = alice.create()
    scope = {"name": "n", "serviceObject": other, "rights": ["send"]}
    scoped = alice.ask("POST", "/tokens", json=scope).get_json()["token"]
    before = len(ways.records())
    cases = {
        "no stream": (alice.token, so, "b", BODY),
        "no Service Object": (alice.token, "1500000000000", "a", BODY),
        "another's": (alice.token, theirs, "a", BODY),
        "a token for another object": (scoped, so, "a", BODY),
        "no JSON": (alice.token, so, "a", b"[1,"),
        "no object": (alice.token, so, "a", b"[]"),
        "no time": (alice.token, so, "a", b'{"channels":{"x":{"current-value":1}}}'),
        "no channels": (alice.token, so, "a", b'{"lastUpdate":1}'),
        "no such channel": (alice.token, so, "a", BODY.replace(b'"x"', b'"y"')),
        "no number": (alice.token, so, "a", BODY.replace(b"1.5", b'"1.5"')),
        "a NUL": (alice.token, so, "a", BODY.replace(b"}}", b'},"\\u0000":1}')),
        "of the future": (alice.token, so, "a", BODY.replace(b"%d" % AT, b"%d" % (2 * AT))),
        "nothing": (alice.token, so, "a", b""),
        "too large": (alice.token, so, "a", BODY + b" " * MAX_BODY),
    }

    for name, case in cases.items():
        by_put = ways.put(*case)
        assert 400 <= by_put.status < 500, name
        assert by_put.message, name
        assert ways.mqtt(*case) == by_put, name
        assert ways.stomp(*case) == by_put, name

    assert len(ways.records()) == before


def test_a_token_that_has_ended_is_heeded_by_the_next_message(ways: Ways, alice: Caller) -> None:
    """Nothing is remembered from one message to the next; the connection may not know it yet."""
    so = alice.create()
    with MqttClient(ways.broker.port, alice.token, version=5) as client:
        client.acknowledged(client.publish(f"updates/{so}/a", BODY, 1))
        ways.served.platform.database.rows("UPDATE tokens SET revoked_at = now()")
        reason = client.acknowledged(client.publish(f"updates/{so}/a", BODY, 1))

    assert reason.value == 0x87
    assert ways.put(alice.token, so, "a", BODY).status == 403


def test_who_has_used_up_a_quota_is_told_so_by_all_ways(ways: Ways, alice: Caller) -> None:
    """Without a promise: with one it waits, and is tried again."""
    so = alice.create()
    PostgresQuotas(ways.served.platform.database).give("alice", "updates", 0)
    ways.served.app.extensions[SERVICES].quotas._known.clear()
    by_put = ways.put(alice.token, so, "a", BODY)
    with MqttClient(ways.broker.port, alice.token) as client:
        assert client.subscribe("errors")
        client.publish(f"updates/{so}/a", BODY)
        told = orjson.loads(client.received(1)[0][1])

    assert by_put.status == 429
    assert Said(told["status"], told["message"]) == by_put


@pytest.mark.parametrize("quota", ["stored-bytes", "updates-waiting"])
def test_what_others_meter_keeps_updates_out_here_too(
    ways: Ways, alice: Caller, quota: str
) -> None:
    """As the broker's role, which may see of it what it needs."""
    so, database = alice.create(), ways.served.platform.database
    PostgresQuotas(database).give("alice", quota, 0)
    with MqttClient(ways.broker.port, alice.token) as client:
        assert client.subscribe("errors")
        client.publish(f"updates/{so}/a", BODY)
        told = orjson.loads(client.received(1)[0][1])

    assert told["status"] == 429
    assert "a quota of 0" in told["message"]


@pytest.mark.parametrize("part", ["broker", "postgres"])
def test_while_a_part_is_down_nothing_is_acknowledged(
    ways: Ways, alice: Caller, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outcomes, "AWAY_SECONDS", 0.05)
    so, state = alice.create(), ways.served.platform.state
    before = len(ways.records())
    with MqttClient(ways.broker.port, alice.token) as client:
        client.acknowledged(client.publish(f"updates/{so}/a", BODY, 1))
        setattr(state, f"{part}_answers", False)
        assert ways.put(alice.token, so, "a", BODY).status == 503
        number = client.publish(f"updates/{so}/a", BODY, 1)
        with pytest.raises(AssertionError):
            waiting.until(lambda: number in client.published, 0.5)
        assert len(ways.records()) == before + 1
        setattr(state, f"{part}_answers", True)
        client.acknowledged(number)

    assert len(ways.records()) == before + 2


def test_publishing_makes_no_http_request_and_the_second_update_reads_no_document(
    ways: Ways, alice: Caller
) -> None:
    so = alice.create()
    documents = "servioticy.storage.service_objects.PostgresServiceObjects.document"
    asked = mock.patch.object(rest_api.Api, "ask", side_effect=AssertionError)
    with asked as ask, MqttClient(ways.broker.port, alice.token) as client:
        client.acknowledged(client.publish(f"updates/{so}/a", BODY, 1))
        with mock.patch(documents, side_effect=AssertionError) as read:
            numbers = [client.publish(f"updates/{so}/a", BODY, 1) for _ in range(50)]
            for each in numbers:
                client.acknowledged(each)

    assert not ask.called
    assert not read.called
    assert ways.broker.broker.lane.taken == 51


def test_another_version_in_force_is_heeded_by_the_next_message(ways: Ways, alice: Caller) -> None:
    so = alice.create()
    assert ways.mqtt(alice.token, so, "a", BODY) == Said(202)
    document = {"streams": {"a": {"channels": {"y": {"type": "number"}}}}}
    assert alice.ask("PUT", f"/{so}", json=document).status_code == 200

    assert ways.mqtt(alice.token, so, "a", BODY).status == 400
    assert ways.mqtt(alice.token, so, "a", BODY.replace(b'"x"', b'"y"')) == Said(202)


def test_a_warning_is_told_where_the_protocol_has_a_place_for_it(
    ways: Ways, alice: Caller
) -> None:
    so = alice.create({"streams": {"a": {"channels": {"x": {"type": "number", "unit": "C"}}}}})
    body = BODY.replace(b"1.5", b'1.5,"unit":"F"')
    by_put = alice.put(so, body)
    with MqttClient(ways.broker.port, alice.token, version=5) as client:
        number = client.publish(f"updates/{so}/a", body, 1)
        assert client.acknowledged(number).value == 0
        told = client.published[number][1].ReasonString

    assert "channel x is in C, and this value came in F" in by_put.headers["Warning"]
    assert told in by_put.headers["Warning"]
