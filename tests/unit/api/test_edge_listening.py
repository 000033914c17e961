"""Whoever works on a request can see that its client has gone."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import pytest
from edge_builders import REQUEST, Serving, Told
from waiting import until

from api.http.listening import LISTENS


class Looking(Told):
    """Keeps what tells whether its clients listen."""

    def __init__(self) -> None:
        super().__init__()
        self.listens: list[Callable[[], bool]] = []

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        self.listens.append(environ[LISTENS])
        return super().__call__(environ, start_response)


@pytest.fixture
def app() -> Looking:
    return Looking()


@pytest.mark.parametrize("goes", [socket.socket.close, lambda c: c.shutdown(socket.SHUT_WR)])
def test_a_client_that_goes_or_ends_what_it_sends_listens_no_more(
    goes: Callable[[socket.socket], object], serve: Callable[..., Serving], app: Looking
) -> None:
    client = serve().connect()
    client.sendall(REQUEST.replace(b"/o/streams/s", b"/block") + b"Content-Length: 0\r\n\r\n")
    until(lambda: len(app.listens) == 1)
    assert app.listens[0]()

    goes(client)

    until(lambda: not app.listens[0]())
    app.gate.set()
