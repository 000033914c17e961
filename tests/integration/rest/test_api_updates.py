"""Putting and reading updates."""

from __future__ import annotations

import io
import json
import time
from datetime import datetime

import msgspec
import pytest
from api_builders import NOW, UPDATE, Caller, Served

from sandbox.suspension import Suspension
from servioticy.domain.model import StreamRef
from servioticy.domain.records import UpdateRecord
from servioticy.ports.accounts import Use
from servioticy.ports.batches import Batch, StoredVerdict


def at(timestamp: int) -> bytes:
    return b'{"channels":{"x":{"current-value":%d}},"lastUpdate":%d}' % (timestamp, timestamp)


def test_an_update_is_in_the_log_when_it_is_accepted(served: Served, alice: Caller) -> None:
    so = alice.create()

    answer = alice.put(so, b' {"extra": "\\u00e9", ' + UPDATE[1:])

    stored = b'{"extra":"\xc3\xa9",' + UPDATE[1:]
    assert (answer.status_code, answer.data) == (202, stored)
    ((offset, record),) = served.platform.records(0)[1:]
    assert isinstance(record, UpdateRecord)
    assert abs(record.at / 1000 - time.time()) < 600, "and says when that was"
    accepted = UpdateRecord(so, "a", 1, msgspec.Raw(stored), at=record.at)
    assert (offset, record) == (1, accepted)


def test_paths_may_end_with_a_slash_and_have_queries(alice: Caller) -> None:
    so = alice.create()

    assert alice.ask("PUT", f"/{so}/streams/a/?size=1", data=UPDATE).status_code == 202


def test_data_come_ascending(served: Served, alice: Caller) -> None:
    """Clients read the last element as the newest; parallel senders deliver out of order."""
    so = alice.create()
    for timestamp in (2, 1_401_819_725_000, 1, 1_401_819_725):
        alice.put(so, at(timestamp))
    served.store()

    answer = alice.ask("GET", f"/{so}/streams/a/")

    assert [each["lastUpdate"] for each in answer.get_json()["data"]] == [
        1,
        2,
        1_401_819_725,
        1_401_819_725_000,
    ]
    assert "X-Servioticy-Behind" not in answer.headers


@pytest.mark.parametrize("path", ["", "/lastUpdate"])
def test_who_asks_is_told_which_version_made_an_update(
    path: str, served: Served, alice: Caller
) -> None:
    """The contract's shape knows no version, so only those who ask get it."""
    so = alice.create()
    alice.put(so, at(1))
    served.store()

    labelled = alice.ask("GET", f"/{so}/streams/a{path}?versions=true").get_json()["data"]
    plain = alice.ask("GET", f"/{so}/streams/a{path}").get_json()["data"]

    assert labelled == [plain[0] | {"version": 1}]
    assert "version" not in plain[0]


def test_the_last_update_is_an_array_of_one(served: Served, alice: Caller) -> None:
    so = alice.create()
    for timestamp in (2, 1):
        alice.put(so, at(timestamp))
    served.store()

    answer = alice.ask("GET", f"/{so}/streams/a/lastUpdate")

    assert answer.data == b'{"data":[' + at(2) + b"]}"


@pytest.mark.parametrize("path", ["", "/lastUpdate"])
def test_no_data_is_no_content(alice: Caller, path: str) -> None:
    so = alice.create()

    answer = alice.ask("GET", f"/{so}/streams/a{path}")

    assert (answer.status_code, answer.data) == (204, b"")


def test_a_read_says_how_far_behind_it_is(alice: Caller) -> None:
    """The definition and two updates are in the log, and nobody stores them."""
    so = alice.create()
    alice.put(so)
    alice.put(so)

    answer = alice.ask("GET", f"/{so}/streams/a")

    assert (answer.status_code, answer.headers["X-Servioticy-Behind"]) == (204, "3")


def test_a_read_without_a_broker_shows_what_there_is(served: Served, alice: Caller) -> None:
    so = alice.create()
    alice.put(so)
    served.store()
    served.platform.state.broker_answers = False

    answer = alice.ask("GET", f"/{so}/streams/a")

    assert (answer.status_code, answer.headers["X-Servioticy-Behind"]) == (200, "unknown")


def test_a_read_says_that_a_part_of_the_log_is_lost(served: Served, alice: Caller) -> None:
    """Progress ahead of the log: who reads now must not believe to see all he was promised."""
    so = alice.create()
    alice.put(so)
    served.store()
    whole = alice.ask("GET", f"/{so}/streams/a")
    served.platform.state.log[0].pop()

    answer = alice.ask("GET", f"/{so}/streams/a")

    assert "X-Servioticy-Behind" not in whole.headers
    assert (answer.status_code, answer.headers["X-Servioticy-Behind"]) == (200, "log-lost")


def test_an_update_that_the_broker_does_not_take_is_not_accepted(
    served: Served, alice: Caller
) -> None:
    so = alice.create()
    served.platform.state.broker_answers = False

    answer = alice.put(so)

    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")


@pytest.mark.parametrize("method", ["GET", "PUT"])
@pytest.mark.parametrize("stream", ["nothing", "A", "%00", "a%20"])
def test_an_unknown_stream_is_not_found(alice: Caller, method: str, stream: str) -> None:
    so = alice.create()

    answer = alice.ask(method, f"/{so}/streams/{stream}", data=UPDATE)

    message = "This Service Object does not have this stream."
    if stream != "%00":
        assert (answer.status_code, answer.get_json()["message"]) == (404, message)
    assert answer.status_code == 404


def test_an_update_from_the_future_is_refused(alice: Caller) -> None:
    so = alice.create()

    assert alice.put(so, at(int(NOW) + 86_400)).status_code == 202
    assert alice.put(so, at((int(NOW) + 86_400) * 1000)).status_code == 202
    for timestamp in (int(NOW) + 86_401, (int(NOW) + 86_401) * 1000):
        answer = alice.put(so, at(timestamp))
        assert answer.status_code == 400
        assert "86400 seconds ahead" in answer.get_json()["message"]
        assert answer.get_json()["code"] == "too-far-ahead"
        assert answer.get_json()["pointer"] == "/lastUpdate"


def test_too_large_a_body_is_refused(alice: Caller) -> None:
    so = alice.create()
    many = b'{"channels":{"x":{"current-value":1}},"lastUpdate":1,"more":[%b]}'

    sent = alice.put(so, many % b",".join([b"1"] * 20_000))
    kept = alice.put(so, many % b",".join([b"1e15"] * 3_000))

    assert (sent.status_code, kept.status_code) == (413, 413)
    assert sent.get_json()["message"] == "The request is too large"


@pytest.mark.parametrize(("size", "status"), [(20_000, 400), (20_001, 413), (90_000, 413)])
def test_too_large_a_body_without_a_length_is_refused(
    alice: Caller, size: int, status: int
) -> None:
    """Senders in chunks do not tell how much will come."""
    so = alice.create()
    environ = {"wsgi.input_terminated": True, "HTTP_TRANSFER_ENCODING": "chunked"}

    answer = alice.ask(
        "PUT",
        f"/{so}/streams/a",
        input_stream=io.BytesIO(b"x" * size),
        environ_overrides=environ,
    )

    assert answer.status_code == status


def test_an_update_on_a_composite_stream_is_accepted(alice: Caller) -> None:
    """The generator of the paper seeds each of them so."""
    channels = {"x": {"type": "number", "current-value": "{$a.channels.x.current-value}"}}
    streams = {"a": {"channels": {"x": {"type": "number"}}}, "b": {"channels": channels}}
    so = alice.create({"streams": streams})

    assert alice.put(so, stream="b").status_code == 202


def test_status_tells_how_computations_ended(served: Served, alice: Caller) -> None:
    so = alice.create()
    served.store()
    key, store = served.platform.stream(so), served.platform.store
    verdicts = [StoredVerdict(*key, "stale", 3, b'{"timestamp":1}')]
    store.store(Batch(0, 1, 1, 0, verdicts=verdicts))
    used = StreamRef(so, "a")
    store.account([Use(key.tenant, used, key.tenant, microseconds=1_500_000)])

    assert alice.ask("GET", f"/{so}/streams/a/status").get_json() == {
        "state": "active",
        "cpu-seconds": 1.5,
        "verdicts": [{"verdict": "stale", "count": 3, "last": {"timestamp": 1}}],
    }


@pytest.mark.parametrize(
    ("newest", "state"),
    [
        ({"timeout": 3}, "active"),
        ({"timeout": 3, "suspended": 4}, "suspended"),
        ({"timeout": 3, "suspended": 4, "stale": 5}, "suspended"),
        ({"timeout": 3, "suspended": 4, "emitted": 5}, "active"),
        ({"suspended": 4, "of an earlier version": 5}, "suspended"),
    ],
)
def test_status_tells_whether_the_stream_is_suspended(
    newest: dict[str, int], state: str, served: Served, alice: Caller
) -> None:
    """By what the newest computation met."""
    so = alice.create()
    served.store()
    key = served.platform.stream(so)
    verdicts = [
        StoredVerdict(
            *key, kind, 1, b'{"timestamp":%d,"version":%d}' % (at, "earlier" not in kind)
        )
        for kind, at in newest.items()
    ]
    served.platform.store.store(Batch(0, 1, 1, 0, verdicts=verdicts))

    answer = alice.ask("GET", f"/{so}/streams/a/status").get_json()

    assert answer["state"] == state


@pytest.mark.parametrize(("left", "state"), [(60, "suspended"), (-1, "active")])
def test_status_tells_who_is_suspended_why_and_until_when(
    left: int, state: str, served: Served, alice: Caller
) -> None:
    """And once that is over, that the next update is tried."""
    so = alice.create()
    served.store()
    until = float(int(time.time()) + left)
    text = Suspension("1", f"{so}/a@1", "timeout", 3, 60, until).text
    last = json.dumps({"timestamp": 3, "version": 1, "message": text}).encode()
    key = served.platform.stream(so)
    verdicts = [StoredVerdict(*key, "suspended", 1, last)]
    served.platform.store.store(Batch(0, 1, 1, 0, verdicts=verdicts))

    answer = alice.ask("GET", f"/{so}/streams/a/status").get_json()

    assert answer["state"] == state
    if state == "suspended":
        found = answer["suspended"]
        assert found["stream"] == f"{so}/a"
        assert found["why"] == "its code has ended 3 processes, the last one by timeout"
        assert datetime.fromisoformat(found["until"]).timestamp() == until
    else:
        assert "suspended" not in answer
