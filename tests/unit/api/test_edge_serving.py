"""Requests and answers of the edge, on real connections."""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import time
from collections.abc import Callable

import pytest
from edge_builders import PAGE, REQUEST, SECONDS, Serving, Told, everything
from waiting import until

from api.http import while_allowed
from servioticy.http_heads import MAX_HEAD


def test_requests_sent_ahead_are_answered_in_order(serve: Callable[..., Serving]) -> None:
    client = serve().connect()
    client.sendall(
        b"".join(
            b"GET /?%d HTTP/1.1\r\nHost: x\r\n%b\r\n" % (n, b"Connection: close\r\n" * (n == 29))
            for n in range(30)
        )
    )

    parts = everything(client).split(b"\r\n\r\n")[1:]

    assert [int(part.partition(b"HTTP")[0]) for part in parts] == list(range(30))


def test_a_request_may_come_byte_by_byte(serve: Callable[..., Serving]) -> None:
    client = serve().connect()
    for byte in REQUEST + b"Content-Length: 3\r\nConnection: close\r\n\r\nabc":
        client.sendall(bytes([byte]))

    assert everything(client).endswith(b"\r\n\r\nabc")


def test_a_body_in_chunks_arrives_whole(serve: Callable[..., Serving]) -> None:
    client = serve().connect()
    client.sendall(REQUEST + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n")
    client.sendall(b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")

    assert everything(client).endswith(b"\r\n\r\nabcde")


def test_who_asks_first_is_told_to_go_on(serve: Callable[..., Serving]) -> None:
    client = serve().connect()
    client.sendall(REQUEST + b"Content-Length: 3\r\nExpect: 100-continue\r\n\r\n")
    assert client.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
    client.sendall(b"abc")

    assert client.recv(1000).startswith(b"HTTP/1.1 200 OK")


def test_a_client_that_ends_after_its_request_still_gets_the_answer(
    serve: Callable[..., Serving],
) -> None:
    client = serve().connect()
    client.sendall(b"GET /hello HTTP/1.1\r\nHost: x\r\n\r\n")
    client.shutdown(socket.SHUT_WR)

    assert everything(client).endswith(b"hello")


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"])
def test_a_connection_that_stays_silent_is_closed(
    sent: bytes, serve: Callable[..., Serving]
) -> None:
    """Before its first head, in the middle of one, and after an answer."""
    client = serve(api_idle_seconds=0.3).connect()
    client.sendall(sent)

    with contextlib.suppress(ConnectionResetError):
        everything(client)


def test_half_a_body_is_answered_with_408(serve: Callable[..., Serving], app: Told) -> None:
    client = serve(api_body_seconds=0.3).connect()
    client.sendall(REQUEST + b"Content-Length: 10\r\n\r\nhalf")

    answer = everything(client)

    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"X-Content-Type-Options: nosniff\r\n" in answer
    assert app.inside == []


@pytest.mark.parametrize(
    ("size", "status"), [(1_000, b"HTTP/1.1 200 "), (1_001, b"HTTP/1.1 413 ")]
)
@pytest.mark.parametrize("chunked", [False, True])
def test_too_large_a_body_is_refused_before_it_has_come(
    size: int, status: bytes, chunked: bool, serve: Callable[..., Serving]
) -> None:
    client = serve().connect()
    head = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % size
    client.sendall(REQUEST + head + b"\r\nConnection: close\r\n\r\n")
    if chunked:
        client.sendall(b"%x\r\n" % size)
    if status.endswith(b"200 "):
        client.sendall(b"x" * size + (b"\r\n0\r\n\r\n" if chunked else b""))

    assert everything(client).startswith(status)


@pytest.mark.parametrize(
    ("size", "status"), [(MAX_HEAD, b"HTTP/1.1 200 "), (MAX_HEAD + 1, b"HTTP/1.1 431 ")]
)
def test_a_head_has_a_largest_size(
    size: int, status: bytes, serve: Callable[..., Serving]
) -> None:
    """Also where its end comes later."""
    client = serve().connect()
    head = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX: "
    head += b"a" * (size - len(head))
    client.sendall(head + b"\r")
    time.sleep(0.05)
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        client.sendall(b"\n\r\n")

    assert everything(client).startswith(status)


def test_pages_are_made_as_they_are_taken(serve: Callable[..., Serving], app: Told) -> None:
    """A slow reader costs the memory of a few pages and no thread."""
    serving = serve(api_read_threads=1)
    slow = serving.connect(receive_buffer=4_096)
    slow.sendall(b"GET /pages HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    made = -1
    while made != app.pages:
        made = app.pages
        assert serving.ask("/hello", "b").read() == b"hello"
        time.sleep(0.1)

    assert 0 < app.pages < 50
    body = everything(slow).partition(b"\r\n\r\n")[2]
    assert body.count(b"x") == 1_000 * len(PAGE)
    assert app.pages == 1_000


def test_a_client_that_takes_nothing_is_cut_off(serve: Callable[..., Serving], app: Told) -> None:
    serving = serve(api_send_seconds=0.3)
    stuck = serving.connect(receive_buffer=4_096)
    stuck.sendall(b"GET /pages HTTP/1.1\r\nHost: x\r\n\r\n")

    assert app.closed.wait(SECONDS)
    assert app.pages < 1_000


@pytest.mark.parametrize(("path", "level"), [("/broken", "ERROR"), ("/ended", "INFO")])
def test_an_answer_that_breaks_off_does_not_look_complete(
    serve: Callable[..., Serving], caplog: pytest.LogCaptureFixture, path: str, level: str
) -> None:
    """That somebody's right has ended is no fault of ours."""
    caplog.set_level("INFO", "api")
    answer = serve().ask(path)

    with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
        answer.read()
    assert [(each.message, each.levelname) for each in caplog.records] == [
        ("answer_broken_off", level)
    ]


def test_who_has_lost_the_right_gets_nothing_more_of_what_is_written(
    serve: Callable[..., Serving], app: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However slowly it reads: it is not written far ahead, and what is, is not sent."""
    monkeypatch.setattr(while_allowed, "ASK_AGAIN_SECONDS", 0.0)
    slow = serve().connect(receive_buffer=4_096)
    slow.sendall(b"GET /allowed HTTP/1.1\r\nHost: x\r\n\r\n")
    assert slow.recv(100)
    before = -1
    while before != app.pages:
        before = app.pages
        time.sleep(0.1)

    app.gate.set()
    got = 0
    with contextlib.suppress(ConnectionResetError):
        while piece := slow.recv(4_096):
            got += len(piece)

    assert app.pages == before
    assert got < 10 * len(PAGE)
    assert before < 50


def test_without_chunks_the_end_of_the_connection_ends_the_answer(
    serve: Callable[..., Serving],
) -> None:
    client = serve().connect()
    client.sendall(b"GET /pages HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")

    head, _, body = everything(client).partition(b"\r\n\r\n")

    assert b"chunked" not in head
    assert body == PAGE * 1_000


def test_head_has_no_body(serve: Callable[..., Serving]) -> None:
    client = serve().connect()
    client.sendall(b"HEAD /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")

    head, _, body = everything(client).partition(b"\r\n\r\n")

    assert b"Content-Length: 5" in head
    assert body == b""


def test_a_mistake_of_ours_is_500_and_the_thread_lives_on(serve: Callable[..., Serving]) -> None:
    serving = serve(api_read_threads=1)

    assert [serving.ask("/fail").status for _ in range(3)] == [500, 500, 500]
    assert serving.ask("/hello").read() == b"hello"


@pytest.mark.slow
def test_clients_that_leave_leave_nothing(serve: Callable[..., Serving], app: Told) -> None:
    """Whether they go before, while or after they are worked on."""
    serving = serve()
    serving.ask("/hello").read()
    before = len(os.listdir("/proc/self/fd"))
    clients = []
    for number in range(40):
        client = serving.connect()
        path = (b"/block", b"/pages", b"/hello", b"/waits")[number % 4]
        client.sendall(b"GET " + path + b" HTTP/1.1\r\nHost: x\r\nAuthorization: a\r\n\r\n")
        clients.append(client)
    until(lambda: len(app.inside) > 2)
    for client in clients:
        client.close()
    app.gate.set()

    until(lambda: not serving.edge._connections)
    until(lambda: len(os.listdir("/proc/self/fd")) <= before)
