"""A server of REST whose answers are written down beforehand, and clients of it."""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from servioticy.client import (
    AsyncRest,
    Rest,
    Retries,
)

CUT = (0, None)
"""Instead of an answer, the connection ends."""


@dataclass
class Server:
    """What it will answer, and what it was asked."""

    url: str = ""
    answers: list[tuple[int, Any]] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    """more of them, with every answer"""
    links: list[str] = field(default_factory=list)
    asked: list[tuple[str, str, bytes]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    tokens: set[str | None] = field(default_factory=set)
    clients: set[tuple[str, int]] = field(default_factory=set)


@pytest.fixture
def server() -> Iterator[Server]:
    told = Server()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            told.asked.append((self.command, self.path, body))
            told.tokens.add(self.headers.get("Authorization"))
            told.clients.add(self.client_address)
            told.keys.append(self.headers.get("Idempotency-Key"))
            status, document = told.answers.pop(0)
            if (status, document) == CUT:
                self.close_connection = True
                return
            text = b"" if document is None else json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.send_header("ETag", '"7"')
            for name, value in told.headers.items():
                self.send_header(name, value)
            if told.links:
                self.send_header("Link", told.links.pop(0))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_PUT = do_POST = do_DELETE = answer  # noqa: N815

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


QUICK = Retries(first_pause_seconds=0.0)


class Driven:
    """`AsyncRest` as if it were `Rest`: a loop of its own runs each call to its end."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        self._runner = asyncio.Runner()
        self._api = AsyncRest(*arguments, **more)

    def __enter__(self) -> Driven:
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.run(self._api.close())
        self._runner.close()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **more: Any) -> Any:
            found = getattr(self._api, name)(*arguments, **more)
            if inspect.isasyncgen(found):
                return self._runner.run(_listed(found))
            return self._runner.run(found)

        return call


async def _listed(found: Any) -> list[Any]:
    return [each async for each in found]


@pytest.fixture(params=[Rest, Driven], ids=["threads", "asyncio"])
def client(request: pytest.FixtureRequest, server: Server) -> Callable[..., Any]:
    """Makes a client of the server, or of another address."""

    def made(url: str = "", retries: Retries = QUICK) -> Any:
        return request.param(url or server.url, "secret", retries=retries)

    return made


Client = Callable[..., Any]
