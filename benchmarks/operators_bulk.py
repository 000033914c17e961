"""A slow model, asked for one event, for all, and for what has come: the chapter's table 9.1.

1,939 events for a web service that takes half a second for a call, and some 2 ms for each event in
it ("Streaming Data to the Cloud", section 9.4). Here the service is a process of its own on this
machine that sleeps so long, and the program that asks it is an operator in Python. So that it ends
in a minute, of those that are asked one by one only the first 40 are, and where events come one
after the other all times are divided by a scale, calls and arrivals; the total is told for all.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from benchmarks.operator_nodes import SECONDS, node_with
from operators.node import Node
from servioticy.errors import Unavailable
from servioticy.ports.programs import Program, Question

EVENTS = 1939
CALL_SECONDS = 0.5
EVENT_SECONDS = 0.0017
"""So that all in one call take 3.75 s."""
ARRIVAL_SECONDS = 0.0825

ONE = """
import json, urllib.request
from servioticy_operator import serve

def classify(events):
    texts = [event.value("abstract") for event in events]
    asked = urllib.request.Request("http://127.0.0.1:PORT/", json.dumps(texts).encode())
    with urllib.request.urlopen(asked) as answer:
        for event, scored in zip(events, json.load(answer)):
            event.outputs.append({"scored": scored})

serve(batch=classify)
"""

PROGRAM = Program(1, "classify", 1)


class Way(NamedTuple):
    """A way to ask."""

    name: str
    most: int
    """events in a call"""
    wait_seconds: float = 0.0
    events: int = EVENTS
    """that are asked for, of all"""
    is_scaled: bool = False


WAYS = (
    Way("one call an event (1,042 s)", 1, events=40),
    Way("all in one call (3.75 s)", 10_000),
    Way("at most 500 in a call", 500),
    Way("what has come, every 82.5 ms (162 s, 578 calls)", 1000, is_scaled=True),
    Way("the same, waited 1 s for more", 1000, 1.0, is_scaled=True),
)


class _Calls:
    """How often the service was called."""

    def __init__(self) -> None:
        self.count = 0


def run(scale: float) -> None:
    """Print a line for each way."""
    print(
        f"{EVENTS} events, in brackets the chapter's; where they come one by one {scale:g} times"
    )
    print("as fast, calls too")
    for way in WAYS:
        factor = scale if way.is_scaled else 1.0
        with _service(factor) as (port, calls):
            said: dict[str, Any] = {
                "batch": {"max": way.most, "wait": f"{round(1000 * way.wait_seconds / factor)}ms"},
                "limits": {"answer": "60s"},
                "network": True,
            }
            main = ONE.replace("PORT", str(port))
            with node_with("python", {"main.py": main}, **said) as node:
                _all_at_once(node, 1, 1)
                calls.count = 0
                began = time.perf_counter()
                if way.is_scaled:
                    _as_they_come(node, ARRIVAL_SECONDS / factor)
                else:
                    _all_at_once(node, way.most, way.events)
                took = time.perf_counter() - began
        of_all = EVENTS / way.events
        print(
            f"  {way.name:48} {took * factor * of_all:9.2f} s in {calls.count * of_all:5,.0f} "
            f"calls ({took:.2f} s here)",
            flush=True,
        )


def _all_at_once(node: Node, each: int, events: int) -> None:
    """Ask all there are, so many in a question, as one composite does: one after the other."""
    for at in range(0, events, each):
        node.ask(_question(at, min(each, events - at)))
        _fetch(node, 1)


def _as_they_come(node: Node, seconds: float) -> None:
    """Each event is of a composite of its own: they come together where they can."""
    began = time.perf_counter()
    answered = 0
    for at in range(EVENTS):
        due = began + at * seconds
        while (left := due - time.perf_counter()) > 0:
            answered += len(node.replies(left))
        node.ask(_question(at, 1))
    _fetch(node, EVENTS - answered)


def _question(number: int, events: int) -> Question:
    event = json.dumps(
        {
            "stream": "documents",
            "timestamp": number,
            "channels": {"abstract": "we show that " * 40},
            "version": 1,
            "correlation": None,
        }
    ).encode()
    return Question(b"%d" % number, PROGRAM, f"so/{number}", None, [event] * events)


def _fetch(node: Node, count: int) -> None:
    until = time.monotonic() + SECONDS
    while count > 0:
        for reply in node.replies(10.0):
            if reply.error:
                raise Unavailable(reply.error)
            count -= 1
        if time.monotonic() > until:
            raise Unavailable("it does not answer")


@contextmanager
def _service(scale: float) -> Iterator[tuple[int, _Calls]]:
    """A classifier that is as slow as the chapter's: its port, and how often it was called."""
    calls = _Calls()

    class Classifier(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            calls.count += 1
            time.sleep((CALL_SECONDS + EVENT_SECONDS * len(texts)) / scale)
            answer = json.dumps([len(each) % 7 for each in texts]).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_about: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Classifier)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port, calls
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
