"""A receiver of HTTP callbacks on loopback that fails at times, for whole platforms."""

from __future__ import annotations

import json
import random
import socketserver
import threading
from collections import defaultdict
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple, Self

MAX_IN_A_ROW = 2
"""Each failure doubles the time until the next attempt: a test has not so much of it."""


class Taken(NamedTuple):
    """A request that was answered with success."""

    id: str
    """its `webhook-id`"""
    timestamp: int
    trace: str = ""
    """its `traceparent`, if it has one"""


class FlakyReceiver:
    """Takes what comes, at a path for each subscription; a share of it only later."""

    def __init__(
        self, failing: float = 0.0, number: Callable[[Any], int] = lambda said: said["lastUpdate"]
    ) -> None:
        """`number` finds in the JSON of a request what tells it from others: its timestamp."""
        self.failing = failing
        self._number = number
        self.taken: defaultdict[str, list[Taken]] = defaultdict(list)
        self.failed = 0
        self.is_away = False
        """Takes nothing for now."""
        self.away = HTTPStatus.SERVICE_UNAVAILABLE
        """What it says then."""
        self._chance = random.Random(7)
        self._row: defaultdict[str, int] = defaultdict(int)
        self._lock = threading.Lock()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                trace = self.headers.get("traceparent", "")
                id_ = str(self.headers["webhook-id"])
                status = receiver._take(self.path, id_, body, trace)
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            allow_reuse_address = True
            request_queue_size = 1000

            def handle_error(self, *_: object) -> None:
                """Who calls may be killed at any moment."""

        self._server = Server(("0.0.0.0", 0), Handler)
        self.port = int(self._server.server_address[1])

    def _take(self, path: str, id_: str, body: bytes, trace: str) -> int:
        with self._lock:
            if self.is_away:
                return self.away
            if self._row[path] < MAX_IN_A_ROW and self._chance.random() < self.failing:
                self._row[path] += 1
                self.failed += 1
                return HTTPStatus.SERVICE_UNAVAILABLE
            self._row[path] = 0
            self.taken[path].append(Taken(id_, self._number(json.loads(body)), trace))
            return HTTPStatus.OK

    def count(self) -> int:
        """Return how many different updates were taken, over all paths."""
        with self._lock:
            return sum(len(set(each)) for each in self.taken.values())

    def repeats(self, path: str) -> int:
        """Return how many were taken more than once; with another id, it is another one."""
        taken = self.taken[path]
        return len(taken) - len(set(taken))

    def first_times(self, path: str) -> list[int]:
        """Return the timestamps in the order in which each was taken first."""
        return list(dict.fromkeys(each.timestamp for each in self.taken[path]))

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.shutdown()
        self._server.server_close()
