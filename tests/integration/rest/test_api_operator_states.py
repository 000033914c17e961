"""What a program keeps for a stream is shown to its tenant, and forgotten as it wants."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from api_builders import Caller, Served
from operator_folders import write

from operators import archives
from servioticy.domain.evaluators.programs import HEAD, STATE, Head
from servioticy.domain.records import AnswerRecord

CHANNELS = {"v": {"type": "number"}}
DOCUMENT = {
    "public": "true",
    "streams": {
        "a": {"channels": CHANNELS},
        "b": {"channels": CHANNELS, "operator": {"name": "tried", "version": 1}},
        "c": {"channels": CHANNELS, "operator": {"of": "b"}},
    },
}


@pytest.fixture
def id_(alice: Caller, served: Served, tmp_path: Path) -> str:
    """A Service Object whose program keeps something, while three updates wait for it."""
    content = archives.pack(write(tmp_path / "folder", "x"))
    assert alice.ask("PUT", "/operators/tried", data=content).status_code == 201
    made = str(alice.ask("POST", "/", json=DOCUMENT).get_json()["id"])
    head = Head(1, first=5, next=8, size=70, states=3, program="tried", version=1)
    for key, value in ((HEAD, msgspec.msgpack.encode(head)), (STATE, b'{"n":[1,null]}')):
        served.platform.database.rows(
            "INSERT INTO kept_entries (log_partition, tenant_id, stream_id, key, value)"
            " VALUES (0, %(tenant)s, %(stream_id)s, %(key)s, %(value)s)",
            served.platform.stream(made, "b")._asdict() | {"key": key, "value": value},
        )
    return made


def test_it_is_shown_to_its_tenant_alone(alice: Caller, bob: Caller, id_: str) -> None:
    """Though the stream is public."""
    path = f"/{id_}/streams/b/state"

    assert alice.ask("GET", path).get_json() == {
        "waiting": 3,
        "bytes": 70,
        "answeredBy": {"name": "tried", "version": 1},
        "state": {"n": [1, None]},
    }
    assert bob.ask("GET", path).status_code == 401
    assert bob.ask("DELETE", path).status_code == 401


def test_it_is_forgotten_at_one_place_of_the_log(alice: Caller, served: Served, id_: str) -> None:
    """Who wanted that stands in the audit log."""
    node = served.platform.ports.graph.nodes([id_])[id_]
    before = len(served.platform.records(node.partition))
    assert alice.ask("DELETE", f"/{id_}/streams/b/state").status_code == 204
    (record,) = [each for _, each in served.platform.records(node.partition)[before:]]

    assert isinstance(record, AnswerRecord)
    assert (record.service_object, record.stream, record.forgets) == (id_, "b", True)
    newest = alice.ask("GET", "/audit").get_json()["data"][0]
    assert (newest["action"], newest["kind"], newest["id"]) == ("cleared", "stream", f"{id_}/b")


@pytest.mark.parametrize("stream", ["a", "c"])
def test_what_no_program_of_its_own_computes_keeps_nothing(
    alice: Caller, id_: str, stream: str
) -> None:
    """Neither what devices send, nor what another stream's program makes beside."""
    for method in ("GET", "DELETE"):
        answer = alice.ask(method, f"/{id_}/streams/{stream}/state")
        assert answer.status_code == 409
        assert "No program computes this stream" in answer.text
    assert alice.ask("GET", f"/{id_}/streams/none/state").status_code == 404


def test_who_may_not_change_may_not_forget(alice: Caller, id_: str) -> None:
    """A token that only looks."""
    wanted = {"name": "looks", "rights": ["inspect"]}
    looks = Caller(alice.client, alice.ask("POST", "/tokens", json=wanted).get_json()["token"])

    assert looks.ask("GET", f"/{id_}/streams/b/state").status_code == 200
    assert looks.ask("DELETE", f"/{id_}/streams/b/state").status_code == 403
