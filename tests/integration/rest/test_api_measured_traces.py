"""Who sees which steps of a trace that were measured: the operator all, a tenant its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from api_builders import NOW, Caller, Platform, Served
from console_visits import signed_in

from api.app import create_app
from api.platform import traces
from monitoring.model import Node, RuntimePerformance
from monitoring.state import FOLDER
from sandbox.text import argument_names
from servioticy.settings import Settings, changed

TRACE, OTHER = "4bf92f3577b34da6a3ce929d0e0e4736", "b" * 32
MS = 1_000_000
TAKE = RuntimePerformance(
    Node("here/api/1", "ingest.take"), "f", 5 * MS, 7 * MS, TRACE, step="0" * 15 + "1"
)
INNER = RuntimePerformance(
    *(Node("here/api/1", "inner"), "g", 6 * MS, 7 * MS, TRACE, "ValueError"), "3" * 16, TAKE.step
)
LATER = RuntimePerformance(
    Node("here/api/1", "ingest.take"), "f", 9 * MS, 10 * MS, OTHER, "", "5" * 16
)
BATCH = RuntimePerformance(
    *(Node("here/pipeline/2", "pipeline.stages.fetch"), "h", 8 * MS, 9 * MS, "2:7"),
    step="0" * 15 + "2",
    links=(f"{TRACE}-{TAKE.step}", f"{OTHER}-{TAKE.step}"),
)
PART = RuntimePerformance(
    *(Node("here/pipeline/2", "sandbox.frame"), "i", 8 * MS, 9 * MS, "2:7", ""),
    "4" * 16,
    BATCH.step,
)


@pytest.fixture
def machine(backend: Platform, tmp_path: Path) -> Served:
    """The API of a machine on which programs have measured."""
    folder = tmp_path / FOLDER / "measurements"
    folder.mkdir(parents=True)
    encoder = msgspec.json.Encoder()
    (folder / "api-1.ndjson").write_bytes(encoder.encode_lines([INNER, TAKE, LATER]))
    (folder / "pipeline-2.ndjson.1").write_bytes(encoder.encode_lines([PART, BATCH]) + b"no json")
    settings = changed(Settings(), data=str(tmp_path), operator_tenant="examples")
    return Served(create_app(backend.ports, settings, lambda: NOW, argument_names), backend)


@pytest.fixture
def operator(machine: Served) -> Caller:
    return machine.tenant("examples")


def test_the_operator_sees_which_were_measured_last(operator: Caller) -> None:
    assert operator.ask("GET", "/platform/traces").get_json() == {
        "data": [
            {"trace": OTHER, "at": 9, "lasted": 1.0, "steps": 1, "first": "ingest.take"},
            {"trace": TRACE, "at": 5, "lasted": 2.0, "steps": 2, "first": "ingest.take"},
        ]
    }


def test_and_all_steps_of_one(operator: Caller) -> None:
    """Of a batch that it is in with what that did, and where; of what is not there none."""
    told = operator.ask("GET", f"/platform/traces/{TRACE}").get_json()

    assert [(each["step"], each["after"], each["depth"]) for each in told["steps"]] == [
        *(("ingest.take", 0.0, 0), ("inner", 1.0, 1)),
        *(("pipeline.stages.fetch", 3.0, 0), ("sandbox.frame", 3.0, 1)),
    ]
    assert [each["others"] for each in told["steps"]] == [0, 0, 1, 0]
    assert told["steps"][1]["error"] == "ValueError"
    assert told["steps"][2]["node"] == "here/pipeline/2"
    assert operator.ask("GET", f"/platform/traces/{'c' * 32}").get_json()["steps"] == []


@pytest.mark.parametrize("trace", ["x", TRACE.upper(), TRACE[1:], "..", f"{TRACE}%0a"])
def test_what_is_no_trace_is_not_found(operator: Caller, trace: str) -> None:
    assert operator.ask("GET", f"/platform/traces/{trace}").status_code == 404


def test_of_more_than_is_shown_it_is_said(
    operator: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("monitoring.analysis.tracing.MOST", 1)
    answer = operator.ask("GET", f"/platform/traces/{TRACE}")
    assert (answer.status_code, "More steps" in answer.text) == (400, True)


def test_the_newest_are_listed(operator: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "LISTED", 1)
    (listed,) = operator.ask("GET", "/platform/traces").get_json()["data"]
    assert listed["trace"] == OTHER


def test_the_operator_sees_them_in_the_console(machine: Served, operator: Caller) -> None:
    client = signed_in(machine, operator.token)
    page = client.get("/console/platform/traces").text
    assert f'href="/console/platform/traces/{TRACE}"' in page
    page = client.get(f"/console/platform/traces/{TRACE}").text
    assert "sandbox.frame" in page
    assert "together with 1 other" in page
    looked_for = client.get(f"/console/platform/traces?trace={TRACE.upper()}")
    assert looked_for.headers["Location"].endswith(f"/console/platform/traces/{TRACE}")
    stranger = signed_in(machine, machine.tenant("alice").token)
    assert stranger.get("/console/platform/traces").status_code == 403


def test_a_tenant_sees_what_was_measured_of_its_update(machine: Served) -> None:
    """Which step in which program, but nothing of what a batch did for others."""
    alice, at = machine.tenant("alice"), 7
    so = alice.create()
    send(alice, so, at, TRACE)
    send(alice, so, at + 1, "c" * 32)
    send(alice, so, at + 2)
    machine.store()
    measured = trace(alice, so, at)["measured"]

    assert [(each["step"], each["program"], each["after"]) for each in measured] == [
        *(("ingest.take", "api", 0.0), ("inner", "api", 1.0)),
        ("pipeline.stages.fetch", "pipeline", 3.0),
    ]
    assert not {"others", "node"} & {name for each in measured for name in each}
    for unmeasured in (at + 1, at + 2):
        assert "measured" not in trace(alice, so, unmeasured)
    page = signed_in(machine, alice.token).get(f"/console/streams/{so}/a/trace?timestamp={at}")
    assert "pipeline.stages.fetch" in page.text


def send(alice: Caller, so: str, at: int, trace: str = "") -> None:
    body = {"channels": {"x": {"current-value": 1}}, "lastUpdate": at}
    headers = {"traceparent": f"00-{trace}-00f067aa0ba902b7-01"} if trace else {}
    assert alice.ask("PUT", f"/{so}/streams/a", json=body, headers=headers).status_code == 202


def trace(alice: Caller, so: str, at: int) -> dict[str, Any]:
    answer = alice.ask("GET", f"/{so}/streams/a/trace?timestamp={at}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.get_json()
    return found
