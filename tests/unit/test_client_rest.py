"""The client of the REST API against a server whose answers are written down beforehand."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from servioticy.client import rest
from servioticy.client.answers import Answered
from servioticy.client.rest import Rest
from servioticy.embedded import tcp_ports
from servioticy.errors import ServioticyError, Unavailable

CUT = (0, None)
"""Instead of an answer, the connection ends."""


@dataclass
class Server:
    """What it will answer, and what it was asked."""

    url: str = ""
    answers: list[tuple[int, Any]] = field(default_factory=list)
    asked: list[tuple[str, str, bytes]] = field(default_factory=list)
    tokens: set[str | None] = field(default_factory=set)
    clients: set[tuple[str, int]] = field(default_factory=set)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(rest, "FIRST_PAUSE_SECONDS", 0.0)
    told = Server()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            told.asked.append((self.command, self.path, body))
            told.tokens.add(self.headers.get("Authorization"))
            told.clients.add(self.client_address)
            status, document = told.answers.pop(0)
            if (status, document) == CUT:
                self.close_connection = True
                return
            text = b"" if document is None else json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.send_header("ETag", '"7"')
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_PUT = do_POST = answer  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as serving:
        serving.daemon_threads = True
        told.url = f"http://127.0.0.1:{serving.server_address[1]}"
        thread = threading.Thread(target=serving.serve_forever, args=(0.01,))
        thread.start()
        yield told
        serving.shutdown()
        thread.join()


def test_requests_share_a_connection_and_carry_the_token(server: Server) -> None:
    server.answers = [(201, {"id": "so1"}), (202, {}), (200, ["so1"])]
    update = {"channels": {"v": {"current-value": 1}}, "lastUpdate": 3}
    with Rest(server.url, "secret") as api:
        assert api.create({"streams": {}}) == "so1"
        api.put("so1", "a stream/é", update)
        assert api.ids() == ["so1"]

    assert server.tokens == {"secret"}
    assert len(server.clients) == 1
    method, path, body = server.asked[1]
    assert (method, path) == ("PUT", "/so1/streams/a%20stream%2F%C3%A9")
    assert json.loads(body) == update


def test_reads_of_an_empty_stream(server: Server) -> None:
    server.answers = [(204, None), (204, None), (200, {"data": [{"lastUpdate": 5}]})]
    with Rest(server.url, "secret") as api:
        assert api.updates("so1", "s") == []
        assert api.last_timestamp("so1", "s") is None
        assert api.last_timestamp("so1", "s") == 5


@pytest.mark.parametrize("trouble", [(503, {"message": "wait"}), (502, None), CUT])
def test_what_heals_is_asked_again(server: Server, trouble: tuple[int, Any]) -> None:
    server.answers = [trouble, trouble, (200, [])]
    with Rest(server.url, "secret") as api:
        assert api.ids() == []
    assert len(server.asked) == 3


def test_it_is_not_asked_for_ever(server: Server) -> None:
    server.answers = [(503, {"message": "the log does not answer"})] * (rest.TRIES + 1)
    with (
        Rest(server.url, "secret") as api,
        pytest.raises(Unavailable, match="PUT /so1/streams/s: the log does not answer"),
    ):
        api.put("so1", "s", {})
    assert len(server.asked) == rest.TRIES


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 412, 413, 429, 500])
def test_what_stays_wrong_is_asked_once(server: Server, status: int) -> None:
    server.answers = [(status, {"status": status, "message": "no"})]
    with Rest(server.url, "secret") as api, pytest.raises(Answered, match=f"{status}: no") as told:
        api.create({})
    assert (told.value.status, told.value.reason) == (status, "no")
    assert (told.value.pointer, told.value.code) == (None, None)
    assert len(server.asked) == 1


def test_the_place_in_a_document_is_told(server: Server) -> None:
    said = {"message": "has to be text", "pointer": "/streams/a", "code": "wrong-type"}
    server.answers = [(400, said)]
    with Rest(server.url, "secret") as api, pytest.raises(Answered, match="/streams/a") as told:
        api.create({})
    assert (told.value.pointer, told.value.code) == ("/streams/a", "wrong-type")


@pytest.mark.parametrize("body", ["a page of a proxy", ["a", "list"], {"message": None}])
def test_an_error_of_somebody_else_is_told_as_it_is(server: Server, body: Any) -> None:
    server.answers = [(404, body)]
    with Rest(server.url, "secret") as api, pytest.raises(Answered) as told:
        api.ids()
    assert told.value.reason == json.dumps(body)


def test_one_request_is_answered_whatever_the_answer_is(server: Server) -> None:
    server.answers = [(503, {"message": "later"})]
    with Rest(server.url, "secret") as api:
        answer = api.request("GET", "/so1", headers={"If-Match": "x"})
    assert (answer.status, answer.headers["etag"]) == (503, '"7"')
    assert answer.json() == {"message": "later"}
    assert len(server.asked) == 1


def test_nobody_there(server: Server) -> None:
    with Rest(f"http://127.0.0.1:{tcp_ports.free()}", "secret") as api:
        with pytest.raises(Unavailable):
            api.request("GET", "/")
        with pytest.raises(Unavailable, match="does not take GET /"):
            api.ids()


def test_a_request_that_cannot_be_sent_is_not_tried_again() -> None:
    with (
        Rest("ftp://127.0.0.1", "secret") as api,
        pytest.raises(ServioticyError, match="cannot be sent") as told,
    ):
        api.ids()
    assert not isinstance(told.value, Unavailable)
