"""The salesman as composite streams: their code is allowed, and finds what the salesman finds."""

from __future__ import annotations

import importlib
import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest
from sandbox_pools import a_pool
from sandbox_trees import a_call

from benchmarks import packages, travelling
from benchmarks.salesman import salesman
from sandbox import ChannelCode, Program, SandboxPool
from sandbox.trees import Event, Last

PARTS, VERTICES = 3, 7
STREAMS: dict[str, Any] = travelling.document(PARTS)["streams"]


@pytest.fixture(scope="module")
def pool() -> Iterator[SandboxPool]:
    made = a_pool(allow_list=True)
    yield made
    made.close()


def program(stream: str) -> Program:
    ((channel, code),) = STREAMS[stream]["channels"].items()
    text = code["current-value"]
    arguments = text[text.index("(") + 1 : text.index(")")].split(", ")
    channels = (ChannelCode(channel, text, code["type"]),)
    return Program(stream, "function", tuple(arguments), channels)


def computed(pool: SandboxPool, stream: str, *values: Any) -> Any:
    """What a stream makes of the values of its inputs."""
    updates = [
        json.dumps({"channels": {"v": {"current-value": each}}, "lastUpdate": 2}).encode()
        for each in values
    ]
    *lasts, trigger = [Last(number, 2, each) for number, each in enumerate(updates)]
    event = Event(trigger.node, 2, updates[-1])
    (grown,) = pool.grow("tenant", [a_call(program(stream), event, lasts=lasts)])
    ((made,),) = grown.made
    ((channel, found),) = json.loads(made.document)["channels"].items()
    assert channel in STREAMS[stream]["channels"]
    return found["current-value"]


def test_its_code_is_allowed(pool: SandboxPool) -> None:
    composites = [each for each in STREAMS if each != "input"]

    assert pool.check_all([program(each) for each in composites]) == [[]] * len(composites)
    assert all(STREAMS[each]["diamonds"] == "settle" for each in composites)


def test_streams_find_what_the_salesman_finds(pool: SandboxPool) -> None:
    """At the size to which an input is scaled: what the body of a request has room for."""
    given = salesman.create("run-1", VERTICES, travelling.CHARACTERS)
    extracted = salesman.extract(given)
    shares = [salesman.distance(each) for each in salesman.paths(extracted, PARTS)]
    nodes = computed(pool, "extraction", given["text"])
    paths = [computed(pool, f"paths{part}", nodes) for part in range(PARTS)]
    least = [computed(pool, f"distance{part}", each) for part, each in enumerate(paths)]

    assert json.loads(nodes) == extracted["nodes"]
    assert least == [pytest.approx(each["least"]) for each in shares]
    told = computed(pool, "summary", *least)
    assert told == pytest.approx(salesman.summarize(shares)["least"])
    assert len(given["text"]) < 1 << 20


class Platform(BaseHTTPRequestHandler):
    """Answers as the API does; is busy once."""

    updates: ClassVar[list[tuple[str, str, dict[str, Any]]]] = []
    is_busy = True

    def do_PUT(self) -> None:
        update = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if Platform.is_busy:
            Platform.is_busy = False
            self.answer(429, {})
            return
        Platform.updates.append((self.path, self.headers["traceparent"], update))
        self.answer(202, {})

    def do_GET(self) -> None:
        at = Platform.updates[-1][2]["lastUpdate"]
        assert self.path == "/so/streams/summary/lastUpdate"
        self.answer(200, {"data": [{"channels": {}, "lastUpdate": at}]})

    def answer(self, status: int, told: Any) -> None:
        text = json.dumps(told).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_inputs_are_sent_each_in_a_trace_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Again where the platform is busy; and the last one's summary is waited for."""
    monkeypatch.syspath_prepend(str(packages.SALESMAN))
    streams = importlib.import_module("streams")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Platform)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    traces = travelling.fresh_traces()
    words = ["streams", "--address", f"127.0.0.1:{server.server_address[1]}", "--begin", "1000"]
    words += ["--service-object", "so", "--traces", traces, "--runs", "2", "--pause", "0"]
    monkeypatch.setattr(sys, "argv", [*words, "--vertices", "3", "--characters", "100"])
    monkeypatch.setenv(travelling.TOKEN, "token")
    try:
        streams.main()
    finally:
        server.shutdown()
        server.server_close()
        for name in ("streams", "salesman"):
            sys.modules.pop(name, None)

    sent = [(path, trace[:35], each["lastUpdate"]) for path, trace, each in Platform.updates]
    assert sent == [
        ("/so/streams/input", f"00-{traces}{number:08x}", 1_000 + number) for number in range(2)
    ]
    texts = [each[2]["channels"]["text"]["current-value"] for each in Platform.updates]
    assert texts == [salesman.create(f"run-{number}", 3, 100)["text"] for number in range(2)]
