"""The command tells how computations ended, and what was used."""

from __future__ import annotations

import json
import time

import pytest
from api_builders import Caller, Served
from command_runs import RAW, Run, run

from sandbox.suspension import Suspension
from servioticy.domain.model import StreamRef
from servioticy.ports.accounts import Use
from servioticy.ports.batches import Batch, StoredVerdict

__all__ = ["run"]


def computed(served: Served, so: str, at: int, **endings: dict[str, object]) -> None:
    """Let computations of stream `a` have ended so, at this place of the log."""
    served.store()
    key = served.platform.stream(so)
    verdicts = [
        StoredVerdict(*key, name, 3, json.dumps(last).encode()) for name, last in endings.items()
    ]
    served.platform.store.store(Batch(0, at, at, 0, verdicts=verdicts))


def test_a_stream_is_asked_by_name(
    run: Run, served: Served, alice: Caller, capsys: pytest.CaptureFixture[str]
) -> None:
    """Suspended, with until when and why."""
    so = alice.create({**RAW, "name": "raw"})
    text = Suspension("1", f"{so}/a@1", "timeout", 3, 60, time.time() + 60).text
    computed(
        served,
        so,
        1,
        suspended={"timestamp": 9, "version": 1, "message": text, "inputs": {"b": 4}},
        emitted={"timestamp": 8, "version": 1, "message": "", "inputs": {}},
    )

    assert run("status", "raw", "a") == 0
    told = capsys.readouterr().out
    assert told.startswith(f"a of {so}: suspended until 20")
    assert "its code has ended 3 processes, the last one by timeout" in told
    assert told.index("suspended  3") < told.index('{"b": 4}') < told.index("emitted  3")

    assert run("status", "raw", "a", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert {each["verdict"] for each in found["verdicts"]} == {"suspended", "emitted"}
    assert run("status", "raw", "nothing") == 1


def test_a_service_object_is_a_line_for_each_stream(
    run: Run, served: Served, alice: Caller, capsys: pytest.CaptureFixture[str]
) -> None:
    streams = {**RAW["streams"], "b": RAW["streams"]["a"]}
    so = alice.create({"streams": streams, "name": "raw"})
    assert run("put", "raw", "b", "x=1", "--at", 7) == 0
    computed(served, so, 2, stale={"timestamp": 1})

    assert run("status", "raw") == 0
    names, first, second = capsys.readouterr().out.splitlines()
    assert names.split() == ["stream", "newest", "update", "state", "computations"]
    assert first.split() == ["a", "none", "active", "stale", "3"]
    assert second.split()[:2] == ["b", "7"]

    assert run("status", so, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert {name: each["lastUpdate"] for name, each in found.items()} == {"a": None, "b": 7}


def test_usage_and_quotas_beside_each_other(
    run: Run, served: Served, alice: Caller, capsys: pytest.CaptureFixture[str]
) -> None:
    so = alice.create({**RAW, "name": "raw"})
    served.store()
    tenant = served.platform.stream(so).tenant
    used = Use(tenant, StreamRef(so, "a"), tenant, updates=1500, rows=1500, bytes=9)
    served.platform.store.account([used])

    always = ("--from", 0, "--to", 2**53 - 1)
    assert run("usage", "--json", *always) == 0
    found = json.loads(capsys.readouterr().out)
    [in_all] = found["usage"]
    assert in_all["updates"] == 1500
    assert "documents" in {each["name"] for each in found["quotas"]}
    assert run("usage", "--by", "stream", *always) == 0
    told = capsys.readouterr().out
    assert f"{so}/a" in told
    assert "1,500" in told
    assert "\ndocuments  " in told


def test_what_became_of_an_update_is_a_line_for_each_composite(
    run: Run, served: Served, alice: Caller, capsys: pytest.CaptureFixture[str]
) -> None:
    code = {"channels": {"v": {"type": "number", "current-value": "function(a) { return null }"}}}
    streams = {**RAW["streams"], "out": code}
    so = alice.create({"version": "0.2.0", "name": "raw", "streams": streams})
    for at in (7, 8):
        assert run("put", "raw", "a", "x=1", "--at", at) == 0
    served.store()
    key = served.platform.stream(so, "out")
    last = {"trigger": f"{so}/a", "timestamp": 8, "message": "v is null", "inputs": {"a": 8}}
    row = StoredVerdict(*key, "filtered", 3, json.dumps(last).encode())
    at = served.platform.store.begin(0).next_offset
    served.platform.store.store(Batch(0, at, at, 0, verdicts=[row]))
    capsys.readouterr()

    assert run("trace", "raw", "a") == 0
    first, ending, message, read = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{so}/a  8")
    assert ending == f"  {so}/out  filtered  by {so}/a as a"
    assert (message.split(), read.split()) == (["message", "v", "is", "null"], ["read", "a:", "8"])

    assert run("trace", "raw", "a", "--at", "7") == 0
    assert "no output (filtered)" in capsys.readouterr().out
    assert run("trace", "raw", "a", "--at", "6") == 1
    assert run("trace", "raw", "a", "--json") == 0
    assert json.loads(capsys.readouterr().out)["lastUpdate"] == 8
