"""The edge on real connections, with an application that does what a test tells it."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from scraped import samples

from api.edge.calls import Application
from api.edge.edge import Edge
from api.metrics import ROUTE
from api.read_after_write import CALLER, WAITED, WAITS_FOR, Awaited, Progress
from api.server import attend
from servioticy.memory import MemoryPlatform
from servioticy.metrics import Registry
from servioticy.settings import Settings, changed

SECONDS = 20.0
"""The longest a test waits for what has to happen."""
QUICK = changed(
    Settings(),
    api_share=0.5,
    api_threads=4,
    api_read_threads=4,
    api_change_threads=2,
    api_queue_of_one=8,
    api_idle_seconds=SECONDS,
    api_body_seconds=SECONDS,
    api_send_seconds=SECONDS,
    max_body_bytes=1_000,
)
PAGE = b"x" * 20_000


class Told:
    """An application; the path says what it does, the token who asks."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.inside: list[str] = []
        self.pages = 0
        self.closed = threading.Event()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        token = environ.get("HTTP_AUTHORIZATION", "")
        if token:
            environ[CALLER] = hash(token)
        name = environ["PATH_INFO"].rpartition("/")[2]
        body = environ["wsgi.input"].read()
        self.inside.append(token)
        if name == "fail":
            raise RuntimeError("a mistake of ours")
        if name == "block":
            self.gate.wait(SECONDS)
        if name == "routed":
            environ[ROUTE] = "/<service_object>"
        if name == "waits" and WAITED not in environ:
            environ[WAITS_FOR].append(Awaited(0, 0))
        if name in ("pages", "broken"):
            start_response("200 OK", [("Content-Type", "text/plain")])
            return self._made(3 if name == "broken" else 1_000, name == "broken")
        shown = body or environ.get("QUERY_STRING", "").encode() or name.encode()
        headers = [("Content-Length", str(len(shown))), *environ.get(WAITED, {}).items()]
        start_response("200 OK", headers)
        return [shown]

    def _made(self, count: int, breaks: bool) -> Iterator[bytes]:
        try:
            for _ in range(count):
                self.pages += 1
                yield PAGE
            if breaks:
                raise RuntimeError("Postgres has gone")
        finally:
            self.closed.set()


class Serving:
    """An edge in a thread of its own."""

    def __init__(self, settings: Settings, app: Told, platform: MemoryPlatform) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = self.listener.getsockname()[1]
        self._loop = asyncio.new_event_loop()
        self._registry = Registry(with_process=False)
        progress = Progress(platform.history, platform.log)
        ready = threading.Event()

        def serve() -> None:
            asyncio.set_event_loop(self._loop)
            application = Application(app, "127.0.0.1", self.port)
            self.edge = Edge(application, progress, settings, self._loop, self._registry)
            attend(self.listener, self.edge, self._loop)
            self._loop.call_soon(ready.set)
            self._loop.run_forever()

        self._thread = threading.Thread(target=serve, daemon=True)
        self._thread.start()
        assert ready.wait(SECONDS)

    def connect(self, receive_buffer: int = 0) -> socket.socket:
        client = socket.socket()
        if receive_buffer:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        client.settimeout(SECONDS)
        client.connect(("127.0.0.1", self.port))
        return client

    def send(self, path: str, token: str = "a", method: str = "GET") -> http.client.HTTPConnection:
        """A request whose answer is not awaited yet."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        connection.request(method, path, headers={"Authorization": token} if token else {})
        return connection

    def ask(self, path: str, token: str = "a", method: str = "GET") -> http.client.HTTPResponse:
        return self.send(path, token, method).getresponse()

    def introduce(self, *tokens: str) -> None:
        """Let their first requests in: from then on each has a share of its own."""
        for count, token in enumerate(tokens, start=len(self.edge._known) + 1):
            self.ask("/hello", token).read()
            until(lambda count=count: len(self.edge._known) == count)

    def metrics(self) -> dict[str, float]:
        """What it has counted, but for the durations."""
        found = samples(self._registry.text())
        return {name: value for name, value in found.items() if "_requests_total" in name}

    def durations(self) -> dict[str, float]:
        """How many durations it has noted."""
        found = samples(self._registry.text())
        return {name: value for name, value in found.items() if "_seconds_count" in name}

    def stop(self) -> None:
        stopping = asyncio.run_coroutine_threadsafe(self.edge.stop(0.0), self._loop)
        stopping.result(SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(SECONDS)
        self.listener.close()


@pytest.fixture
def app() -> Iterator[Told]:
    told = Told()
    yield told
    told.gate.set()


@pytest.fixture
def platform() -> MemoryPlatform:
    return MemoryPlatform(1)


@pytest.fixture
def serve(app: Told, platform: MemoryPlatform) -> Iterator[Callable[..., Serving]]:
    with contextlib.ExitStack() as stack:

        def start(**others: Any) -> Serving:
            serving = Serving(changed(QUICK, **others), app, platform)
            stack.callback(serving.stop)
            return serving

        yield start


def everything(client: socket.socket) -> bytes:
    """What comes until the other side closes."""
    found = []
    while some := client.recv(65_536):
        found.append(some)
    return b"".join(found)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


REQUEST = b"PUT /o/streams/s HTTP/1.1\r\nHost: x\r\nAuthorization: a\r\n"


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


def test_a_head_has_a_largest_size(serve: Callable[..., Serving]) -> None:
    client = serve().connect()
    client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 20_000)

    assert everything(client).startswith(b"HTTP/1.1 431 ")


def test_where_there_is_no_room_the_longest_silent_one_goes(
    serve: Callable[..., Serving],
) -> None:
    serving = serve(api_connections=10)
    silent = [serving.connect() for _ in range(10)]
    until(lambda: len(serving.edge._connections) == 10)

    assert serving.ask("/hello").read() == b"hello"
    with contextlib.suppress(ConnectionResetError):
        assert silent[0].recv(1) == b""
    silent[9].sendall(b"GET /hello HTTP/1.1\r\nHost: x\r\n\r\n")
    assert silent[9].recv(1000).endswith(b"hello")


def test_one_caller_cannot_keep_another_from_a_thread(
    serve: Callable[..., Serving], app: Told
) -> None:
    serving = serve()
    serving.introduce("greedy", "other")
    blocked = [serving.send("/block", "greedy") for _ in range(8)]
    until(lambda: app.inside.count("greedy") == 3)

    assert serving.ask("/hello", "other").read() == b"hello"
    assert app.inside.count("greedy") == 3
    app.gate.set()
    assert [each.getresponse().read() for each in blocked] == [b"block"] * 8


def test_tokens_that_are_made_up_share_one_share(serve: Callable[..., Serving], app: Told) -> None:
    """Else every one of them would be a caller of its own."""
    serving = serve()
    serving.introduce("known")
    app.inside.clear()
    blocked = [serving.send("/block", f"made-up-{n}") for n in range(8)]
    until(lambda: len(app.inside) == 2)

    assert serving.ask("/hello", "known").read() == b"hello"
    assert len(app.inside) == 3
    app.gate.set()
    for each in blocked:
        each.getresponse()


def test_a_caller_who_has_too_much_waiting_is_told_so(
    serve: Callable[..., Serving], app: Told
) -> None:
    serving = serve(api_queue_of_one=2)
    serving.introduce("a")
    blocked = [serving.send("/block") for _ in range(4)]
    until(lambda: serving.edge._pools["reads"]._queued == 2)
    refused = serving.ask("/hello")

    assert (refused.status, refused.headers["Retry-After"]) == (429, "1")
    app.gate.set()
    assert [each.getresponse().status for each in blocked] == [200] * 4


def test_a_request_does_not_wait_for_a_thread_for_ever(
    serve: Callable[..., Serving], app: Told
) -> None:
    serving = serve(api_queue_seconds=0.3)
    serving.introduce("a")
    blocked = [serving.send("/block") for _ in range(2)]
    until(lambda: app.inside.count("a") == 3)

    assert serving.ask("/hello").status == 503
    app.gate.set()
    assert [each.getresponse().status for each in blocked] == [200, 200]


@pytest.mark.parametrize(
    ("method", "path"),
    [("PUT", "/o/streams/s"), ("POST", "/"), ("DELETE", "/o/streams/s"), ("PUT", "/o")],
)
def test_reads_do_not_keep_writes_and_changes_from_their_threads(
    method: str, path: str, serve: Callable[..., Serving], app: Told
) -> None:
    serving = serve()
    blocked = [serving.send("/block", token) for token in "aabbaabb"]
    until(lambda: len(app.inside) >= 2)

    assert serving.ask(path, "a", method).status == 200
    app.gate.set()
    for each in blocked:
        each.getresponse()


def test_reads_that_wait_hold_no_thread(
    serve: Callable[..., Serving], platform: MemoryPlatform, app: Told
) -> None:
    """More of them than there are threads, and a read that need not wait is answered."""
    platform.state.log[0].append(b"not stored yet")
    serving = serve(read_wait_seconds=SECONDS / 2, api_read_threads=1, api_queue_of_one=20)
    waiting = [serving.send("/waits") for _ in range(20)]
    until(lambda: app.inside.count("a") == 20)

    assert serving.ask("/hello").read() == b"hello"
    platform.partition_store(lambda _: ()).begin(0)
    platform.state.progress[0].next_offset = 1
    answers = [each.getresponse() for each in waiting]
    assert [each.read() for each in answers] == [b"waits"] * 20
    assert not any(each.headers["X-Servioticy-Behind"] for each in answers)


def test_a_read_that_has_waited_long_enough_says_how_much_is_missing(
    serve: Callable[..., Serving], platform: MemoryPlatform
) -> None:
    platform.state.log[0] += [b"not", b"stored"]

    answer = serve(read_wait_seconds=0.1).ask("/waits")

    assert (answer.read(), answer.headers["X-Servioticy-Behind"]) == (b"waits", "2")


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

    assert 0 < app.pages < 500
    body = everything(slow).partition(b"\r\n\r\n")[2]
    assert body.count(b"x") == 1_000 * len(PAGE)
    assert app.pages == 1_000


def test_a_client_that_takes_nothing_is_cut_off(serve: Callable[..., Serving], app: Told) -> None:
    serving = serve(api_send_seconds=0.3)
    stuck = serving.connect(receive_buffer=4_096)
    stuck.sendall(b"GET /pages HTTP/1.1\r\nHost: x\r\n\r\n")

    assert app.closed.wait(SECONDS)
    assert app.pages < 1_000


def test_an_answer_that_breaks_off_does_not_look_complete(
    serve: Callable[..., Serving],
) -> None:
    answer = serve().ask("/broken")

    with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
        answer.read()


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


def test_bytes_held_for_one_caller_are_bounded(serve: Callable[..., Serving]) -> None:
    """Of 2,000 bytes a caller may hold 500: the second half body is one too many."""
    serving = serve(api_held_bytes=2_000)
    first, second = serving.connect(), serving.connect()
    for client in (first, second):
        client.sendall(REQUEST + b"Content-Length: 900\r\n\r\n" + b"x" * 400)
    refused = second if second.recv(9, socket.MSG_PEEK) else first

    assert everything(refused).startswith(b"HTTP/1.1 429 ")


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


def counted(method: str, route: str, status: int) -> str:
    """The name of a sample."""
    labels = f'method="{method}",route="{route}",status="{status}"'
    return f"servioticy_http_requests_total{{{labels}}}"


def test_answers_are_counted_by_route_and_status(serve: Callable[..., Serving]) -> None:
    """Neither the address nor the method of a client becomes a label."""
    serving = serve(read_wait_seconds=0.05)
    for path, method in (
        ("/routed", "GET"),
        ("/routed?x=1", "GET"),
        ("/somebody-s/secret", "PUT"),
        ("/fail", "GET"),
        ("/waits", "GET"),
        ("/routed", "BREW"),
        ("/pages", "HEAD"),
    ):
        serving.ask(path, method=method).read()

    expected = {
        counted("GET", "/<service_object>", 200): 2,
        counted("PUT", "unknown", 200): 1,
        counted("GET", "none", 500): 1,
        counted("GET", "unknown", 200): 1,
        counted("other", "/<service_object>", 200): 1,
        counted("HEAD", "unknown", 200): 1,
    }
    until(lambda: serving.metrics() == expected)
    assert sum(serving.durations().values()) == 7


def test_what_is_refused_unread_is_counted_but_took_no_time(
    serve: Callable[..., Serving],
) -> None:
    serving = serve(api_body_seconds=0.1)
    with serving.connect() as malformed, serving.connect() as halfway:
        malformed.sendall(b"nonsense\r\n\r\n")
        everything(malformed)
        halfway.sendall(b"PUT /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf")
        everything(halfway)

    assert serving.metrics() == {counted("other", "none", 400): 1, counted("PUT", "none", 408): 1}
    assert serving.durations() == {}
