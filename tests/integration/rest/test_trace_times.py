"""What became of an update is told with when: of what the log and Postgres know anyhow."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest
from api_builders import Caller, Served

from api.app import create_app
from command.remote.tracing import lines
from sandbox.text import argument_names
from servioticy.domain.model import StreamKey
from servioticy.domain.records import UpdateRecord
from servioticy.ports.batches import Batch, StoredUpdate
from servioticy.settings import Settings

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
CONTEXT = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
MADE = b'{"channels":{"v":{"current-value":2}},"lastUpdate":7}'
MINUTE = 60_000


@pytest.fixture
def served(backend: Any) -> Served:
    """With the real time, as Postgres has it."""
    return Served(create_app(backend.ports, Settings(), time.time, argument_names), backend)


@pytest.fixture
def so(alice: Caller) -> str:
    number = {"type": "number"}
    made = {**number, "current-value": "function(a) { return iot.value(a) }"}
    streams = {"a": {"channels": {"v": number}}, "out": {"channels": {"v": made}}}
    return alice.create({"version": "0.2.0", "streams": streams})


def send(alice: Caller, so: str) -> None:
    body = {"channels": {"v": {"current-value": 1}}, "lastUpdate": 7}
    assert alice.ask("PUT", f"/{so}/streams/a", json=body, headers=CONTEXT).status_code == 202


def computed(served: Served, so: str) -> None:
    """Let `out` have its row, in a transaction of its own, as one that is computed late has."""
    key: StreamKey = served.platform.stream(so, "out")
    at = served.platform.store.begin(0).next_offset
    row = StoredUpdate(*key, 7, MADE, 1, at, 0, is_new=True)
    served.platform.store.store(Batch(0, at, at, 0, updates=[row]))


def told(alice: Caller, so: str, stream: str = "a") -> dict[str, Any]:
    answer = alice.ask("GET", f"/{so}/streams/{stream}/trace?timestamp=7")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.get_json()
    return found


def test_it_is_told_when_an_update_was_accepted_and_each_step_stored(
    served: Served, alice: Caller, so: str
) -> None:
    """In this order, and of this moment."""
    began = int(time.time() * 1000)
    send(alice, so)
    served.store()
    computed(served, so)
    found = told(alice, so)

    (step,) = found["steps"]
    assert found["acceptedAt"] >= began
    assert found["acceptedAt"] - 1 <= found["storedAt"] <= step["storedAt"]
    assert step["storedAt"] <= time.time() * 1000 + 1
    assert found["trace"] == TRACE
    took = [each["storedAt"] - found["acceptedAt"] for each in (found, step)]
    update, output, *_ = lines(found)
    assert [line.rpartition(", stored after ")[2] for line in (update, output)] == [
        f"{each} ms" for each in took
    ]


def test_of_what_is_computed_it_is_known_when_it_was_stored_alone(
    served: Served, alice: Caller, so: str
) -> None:
    """The record at its place is another update's: that it was accepted says nothing of this."""
    send(alice, so)
    served.store()
    computed(served, so)
    found = told(alice, so, "out")

    assert "storedAt" in found
    assert {"acceptedAt", "trace"} & found.keys() == set()


def test_a_log_that_does_not_answer_keeps_back_no_more_than_that(
    served: Served, alice: Caller, so: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(alice, so)
    served.store()
    monkeypatch.setattr(served.platform.log, "record", lambda *_: None)
    found = told(alice, so)

    assert "storedAt" in found
    assert "acceptedAt" not in found


def test_a_time_that_cannot_be_the_rows_is_not_told(
    served: Served, alice: Caller, so: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of a transaction comes round: another one's commit is not this one's."""
    send(alice, so)
    served.store()
    record = served.platform.log.record

    def later(*place: int) -> Any:
        found = record(*place)
        assert isinstance(found, UpdateRecord)
        return msgspec.structs.replace(found, at=found.at + 2 * MINUTE)

    monkeypatch.setattr(served.platform.log, "record", later)
    assert "storedAt" not in told(alice, so)
