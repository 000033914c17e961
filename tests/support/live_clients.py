"""Clients of the one socket for many."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
from running_delivery import RunningDelivery
from support.delivery_stores import WAIT_SECONDS
from websockets.sync.client import ClientConnection, connect

from delivery.feeds import feeds as feeds_module
from servioticy.domain.model import StreamRef

FLOW, LAMP = StreamRef("pump", "flow"), StreamRef("lamp", "flow")


@pytest.fixture
def running() -> Iterator[RunningDelivery]:
    with mock.patch.object(feeds_module, "LOOK_SECONDS", 0.01), RunningDelivery() as delivery:
        delivery.cursors.add("s", FLOW)
        yield delivery


class Client:
    def __init__(self, running: RunningDelivery, token: str = "token-1") -> None:
        self.socket: ClientConnection = connect(
            f"ws://127.0.0.1:{running.port}/live?access_token={token}",
            proxy=None,
            open_timeout=WAIT_SECONDS,
            close_timeout=0.5,
        )

    def say(self, do: str, id_: str, **more: Any) -> dict[str, Any]:
        """Say it, and return the next frame."""
        self.socket.send(json.dumps({"do": do, "id": id_} | more))
        return self.hear()

    def watch(self, id_: str, stream: StreamRef = FLOW, **more: Any) -> dict[str, Any]:
        names = {"serviceObject": stream.service_object, "stream": stream.stream}
        return self.say("subscribe", id_, **names, **more)

    def hear(self) -> dict[str, Any]:
        return json.loads(self.socket.recv(WAIT_SECONDS))

    def update(self) -> tuple[str, int]:
        frame = self.hear()
        return frame["id"], frame["update"]["lastUpdate"]
