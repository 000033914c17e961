"""Atoms that are sent to a receiver: as all callbacks, nobody inside is called."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any

import pytest
from waiting import until
from workflow_builders import a_queue, a_workflow, an_atom

from functions import calling, sinks
from functions.calling import Caller, Outcome
from functions.sinks import Sinks
from functions.steps import Failure, Result, Task
from servioticy.domain.outside_addresses import Rules

WRITTEN = """
    127.0.0.1 127.1 2130706433 0x7f000001 0177.0.0.1 127.0.0.1. localhost localhost. [::1]
    [::ffff:127.0.0.1] [::ffff:7f00:1] 0 [::]
"""


class Server(ThreadingHTTPServer):
    """Answers each request with the next status, and remembers what came."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.statuses: list[int] = []
        self.body = b""
        self.got: list[tuple[str, dict[str, str], bytes]] = []

    def server_bind(self) -> None:
        """Ask no name server who we are."""
        TCPServer.server_bind(self)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/in?a=b"


class _Answers(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, dict(self.headers), body))
        self.send_response(self.server.statuses.pop(0) if self.server.statuses else 204)
        self.send_header("Location", self.server.url)
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as found:
        threading.Thread(target=found.serve_forever, args=(0.01,), daemon=True).start()
        yield found
        found.shutdown()


def worked(server: Server, *ids: int, rules: Rules | None = None, url: str = "") -> Result:
    workflow = a_workflow(sink={"callback": {"url": url or server.url}})
    task = Task(a_queue(step=1), workflow, "1.0")
    caller = Caller(rules or Rules(["127.0.0.0/8"]))
    nothing: Any = None
    return Sinks(nothing, nothing, caller).work(task, [an_atom(each) for each in ids])


def test_each_atom_is_a_request(server: Server) -> None:
    assert worked(server, 7, 8) == Result({7: (), 8: ()})

    path, headers, body = server.got[0]
    assert (path, body) == ("/in?a=b", b"{}")
    assert headers["Content-Type"] == "application/json"
    assert [told["webhook-id"] for _, told, _ in server.got] == ["w.7", "w.8"]


@pytest.mark.parametrize(("status", "is_hopeless"), [(400, False), (500, False), (410, True)])
def test_what_a_receiver_does_not_take_is_tried_again_unless_it_is_gone(
    server: Server, status: int, is_hopeless: bool
) -> None:
    server.statuses = [status]

    result = worked(server, 7, 8)

    assert result.done == {8: ()}
    assert result.failed[7].is_hopeless == is_hopeless
    assert result.failed[7].reason.startswith(f"the receiver: {status} ")


def test_no_redirect_is_followed(server: Server) -> None:
    server.statuses = [302]

    assert worked(server, 7).failed[7].reason == "the receiver: 302 Found"
    assert len(server.got) == 1


def test_whoever_answers_without_end_is_cut_off(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calling, "MAX_ANSWER_BYTES", 1_000)
    server.body = b"x" * 10_000_000

    assert worked(server, 7) == Result({7: ()})


@pytest.mark.parametrize("host", WRITTEN.split())
def test_no_way_of_writing_leads_inside(server: Server, host: str) -> None:
    """However it is written, a server on loopback hears nothing."""
    url = f"http://{host}:{server.server_address[1]}/"

    result = worked(server, 7, rules=Rules(), url=url)

    assert result.failed.keys() == {7}
    assert server.got == []


def test_what_may_not_be_called_is_dead_at_once(server: Server) -> None:
    """And so are the platform's own ports, whatever an operator allows."""
    own = Rules(["127.0.0.0/8"], {server.server_address[1]})

    assert worked(server, 7, rules=Rules()).failed[7].is_hopeless
    found = worked(server, 7, rules=own).failed[7]
    assert (found.is_hopeless, "own" in found.reason) == (True, True)
    assert server.got == []


def test_a_slow_receiver_has_its_time_and_no_more(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was not sent then is given back as it was: others may have the place."""
    monkeypatch.setattr(sinks, "CALLING_SECONDS", -1.0)

    assert worked(server, 7, 8) == Result(later={7: 0, 8: 0})
    assert server.got == []


def test_who_is_not_there_is_told(server: Server) -> None:
    port = server.server_address[1]
    server.shutdown()
    server.server_close()

    found = Caller(Rules(["127.0.0.0/8"])).post(1, f"http://127.0.0.1:{port}/", b"{}", {})

    assert found == Outcome(0, found.reason)
    assert "ConnectionRefused" in found.reason
    assert isinstance(worked(server, 7, url=f"http://127.0.0.1:{port}/").failed[7], Failure)


@pytest.mark.parametrize(
    ("scheme", "again"),
    [
        ("http", b"HTTP/1.1 100 Continue\r\n\r\n"),
        ("http", b"x"),
        ("http", b"HTTP/1.1 200 OK\r\nA: b\r\n"),
        ("https", b"\x16\x03\x03\x40\x00"),
    ],
)
def test_whoever_goes_on_without_an_answer_has_one_deadline(
    monkeypatch: pytest.MonkeyPatch, scheme: str, again: bytes
) -> None:
    """However often something comes: each part in time is not the whole in time."""
    monkeypatch.setattr(calling, "SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        drips = threading.Thread(target=_drip, args=(listening, again), daemon=True)
        drips.start()
        url = f"{scheme}://127.0.0.1:{listening.getsockname()[1]}/"
        found = Caller(Rules(["127.0.0.0/8"])).post(1, url, b"{}", {})
        drips.join(60)

    assert found == Outcome(0, "no answer within 0.5 seconds")
    assert not drips.is_alive()


def _drip(listening: socket.socket, again: bytes) -> None:
    """Say the same until nobody listens: a part of it at once, and a byte now and then."""
    connection, _ = listening.accept()
    with connection, suppress(OSError):
        while True:
            for each in again:
                connection.sendall(bytes([each]))
                if threading.Event().wait(0.001):
                    return


def test_what_has_answered_has_answered_however_its_answer_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It has taken the atom, and would get it twice."""
    monkeypatch.setattr(calling, "SECONDS", 60.0)
    answer = b"HTTP/1.1 200 Fine\r\nTransfer-Encoding: chunked\r\n\r\nno number\r\n"

    def answers() -> None:
        connection, _ = listening.accept()
        with connection, connection.makefile("rb") as request:
            while request.readline().strip():
                pass
            request.read(2)
            connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=answers, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        found = Caller(Rules(["127.0.0.0/8"])).post(1, url, b"{}", {})
        thread.join(60)

    assert found == Outcome(200, "Fine")


def test_names_that_nobody_answers_for_keep_the_places_of_their_tenant_alone(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For as long as they are looked for, though nobody waits for them any more."""
    asked: list[str] = []
    answered = threading.Event()
    real = socket.getaddrinfo

    def getaddrinfo(host: str, *others: Any, **more: Any) -> Any:
        asked.append(host)
        if host == "silent.example":
            answered.wait(60)
            raise OSError("no such name")
        return real(host, *others, **more)

    monkeypatch.setattr(calling.socket, "getaddrinfo", getaddrinfo)
    monkeypatch.setattr(calling, "MAX_OF_A_TENANT", 2)
    monkeypatch.setattr(calling, "MOST_RESOLVING", 3)
    caller = Caller(Rules(["127.0.0.0/8"]))
    with monkeypatch.context() as patch:
        patch.setattr(calling, "SECONDS", 0.1)
        for _ in range(3):
            assert caller.post(1, "http://silent.example/", b"{}", {}).status == 0
        until(lambda: asked == ["silent.example"] * 2)
        assert "no answer" in caller.post(1, server.url, b"{}", {}).reason

    assert caller.post(2, server.url, b"{}", {}).status == 204
    answered.set()
    until(lambda: caller._resolving_of == {})
    assert caller.post(1, server.url, b"{}", {}).status == 204


def test_where_nobody_can_look_for_a_name_its_place_is_given_back(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller = Caller(Rules(["127.0.0.0/8"]))
    real = threading.Thread.start

    def start(thread: threading.Thread) -> None:
        if thread.name == "resolving":
            raise RuntimeError("can't start new thread")
        real(thread)

    monkeypatch.setattr(threading.Thread, "start", start)

    assert "can't start" in caller.post(1, server.url, b"{}", {}).reason
    assert caller._resolving_of == {}
