"""Devices on the one socket for many: they get actuations, and say what they have done."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from live_clients import Client, running
from running_delivery import RunningDelivery
from support.delivery_stores import WAIT_SECONDS
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from servioticy.domain.actuations import State
from servioticy.domain.model import ServiceObjectKey

__all__ = ["running"]


def submitted(running: RunningDelivery, *ids: str) -> None:
    for each in ids:
        now = int(time.time() * 1000)
        running.actuations.submit(ServiceObjectKey(1, "lamp"), each, now, 1_000_000)


def test_a_device_gets_its_actuations_and_says_what_it_has_done(running) -> None:
    submitted(running, "1", "2")
    client = Client(running)

    assert client.say("subscribe", "mine", serviceObject="lamp", actions=True) == {
        "id": "mine",
        "is": "subscribed",
    }
    frames = [client.hear(), client.hear()]
    told = client.say("report", "mine", actuation="1", status="done: blinked")

    assert [(each["id"], each["actuation"]["id"]) for each in frames] == [
        ("mine", "1"),
        ("mine", "2"),
    ]
    assert frames[0]["actuation"]["description"] == {"name": "blink"}
    assert told == {"id": "mine", "is": "reported", "actuation": "1"}
    assert running.actuations.kept["1"].state is State.DONE
    assert running.actuations.kept["2"].state is State.SENT


def test_what_a_device_has_said_nothing_of_comes_again(running) -> None:
    submitted(running, "1", "2")
    for expected in (["1", "2"], ["1", "2"]):
        with device(running) as socket:
            assert json.loads(socket.recv(WAIT_SECONDS))["is"] == "subscribed"
            got = [json.loads(socket.recv(WAIT_SECONDS))["actuation"]["id"] for _ in expected]
            assert got == expected

    with device(running) as socket:
        socket.recv(WAIT_SECONDS)
        socket.recv(WAIT_SECONDS)
        report = {"do": "report", "id": "actuations", "actuation": "1", "status": "seen"}
        socket.send(json.dumps(report))
        while "is" not in json.loads(socket.recv(WAIT_SECONDS)):
            pass
    with device(running) as socket:
        socket.recv(WAIT_SECONDS)
        assert json.loads(socket.recv(WAIT_SECONDS))["actuation"]["id"] == "2"


def device(running: RunningDelivery, name: str = "lamp", token: str = "token-1") -> Any:
    """The socket of a device, which is for its actuations alone."""
    return connect(
        f"ws://127.0.0.1:{running.port}/{name}/actuations/live",
        additional_headers={"Authorization": token},
        proxy=None,
        open_timeout=WAIT_SECONDS,
        close_timeout=0.5,
    )


@pytest.mark.parametrize(
    ("name", "token", "expected"),
    [("lamp", "nobody", 403), ("nothing", "token-1", 404), ("private", "token-1", 401)],
)
def test_only_its_owner_speaks_for_a_device(running, name: str, token: str, expected: int) -> None:
    """Not even for a public one."""
    with pytest.raises(InvalidStatus) as refused:
        device(running, name, token)
    assert refused.value.response.status_code == expected

    if token == "token-1":
        told = Client(running).say("subscribe", "x", serviceObject=name, actions=True)
        assert (told["is"], told["status"]) == ("refused", expected)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"actuation": "1", "status": "x"}, 404),
        ({"id": "mine", "actuation": "unknown", "status": "x"}, 404),
        ({"id": "mine", "actuation": 1, "status": "x"}, 400),
        ({"id": "mine", "actuation": "1"}, 400),
    ],
)
def test_a_report_that_is_none_is_refused(running, said: dict[str, Any], expected: int) -> None:
    client = Client(running)
    client.say("subscribe", "mine", serviceObject="lamp", actions=True)

    told = client.say(do="report", id_=said.pop("id", "other"), **said)

    assert (told["is"], told["status"]) == ("refused", expected)
