"""One call of the WSGI application: a whole request in, a whole answer or its pages out."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from api.edge.kinds import LARGE, READING, kind
from api.http.listening import LISTENS
from api.http.metrics import NO_ROUTE, ROUTE, UNKNOWN_ROUTE
from api.http.patience import IS_LARGE
from api.http.read_after_write import CALLER, WAITED, WAITS_FOR
from ingest.progress import Awaited
from servioticy.domain.quotas import Exceeded, Quota
from servioticy.http_heads import Head

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

_UNTAGGED = ("CONTENT_TYPE", "CONTENT_LENGTH")


@dataclass(frozen=True, slots=True)
class Request:
    """All that the application gets to know."""

    head: Head
    body: bytes
    remote: str
    listens: Callable[[], bool] = lambda: True
    """tells any thread whether its client still waits for the answer"""
    kind: str = field(init=False)
    """which threads it takes"""

    def __post_init__(self) -> None:
        found = kind(self.head.method, self.head.path, len(self.body))
        object.__setattr__(self, "kind", found)  # asked several times, and always the same


@dataclass(frozen=True, slots=True)
class Answer:
    """What to send. `pages` is set where the body is made while it is sent."""

    status: str
    headers: list[tuple[str, str]]
    body: bytes = b""
    pages: Iterator[bytes] | None = None
    caller: int | None = None
    """the tenant who asked, as authentication found out"""
    route: str = NO_ROUTE
    """the template that its address fits"""
    pool: str = "reads"
    """whose threads make the pages"""


Together = Callable[[list[Request]], list[Answer | None]]
"""Answers requests that came at once; None among its answers: call the application."""


class KnownQuotas(Protocol):
    """What is known of tenants' quotas; nobody is asked, so the event loop may ask it."""

    def beyond(self, tenant: int) -> Exceeded | None:
        """Return what keeps any update of the tenant out now."""

    def beyond_reading(self, tenant: int) -> Exceeded | None:
        """Return what keeps reads of the tenant out now."""

    def has_read(self, tenant: int, seconds: float) -> None:
        """Count what a read took of the processor."""

    def most(self, tenant: int, name: str) -> Quota:
        """Return a quota as it is for the tenant."""


@dataclass(frozen=True, slots=True)
class NotStoredYet:
    """The read has to wait, and is then to be called again."""

    awaited: tuple[Awaited, ...]
    """everything that has to be stored, each once"""
    caller: int | None


@dataclass(frozen=True, slots=True)
class Sent:
    """An answer that its thread has sent, but perhaps for the rest."""

    answer: Answer
    rest: bytes
    keeps_alive: bool
    has_more: Callable[[], bool]
    """whether the client has sent on, or ended, since"""
    at: float
    """when it was sent (monotonic): the loop may hear of it later"""

    @property
    def caller(self) -> int | None:
        """The tenant who asked."""
        return self.answer.caller

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is left to do for the event loop."""
        whole = not self.rest and self.keeps_alive and self.answer.pages is None
        return whole and not self.has_more()


class Application:
    """The application, and what its environment always is."""

    def __init__(
        self,
        app: WSGIApplication,
        host: str,
        port: int,
        together: Together | None = None,
        quotas: KnownQuotas | None = None,
    ) -> None:
        """`together` is for updates; without it each is called for itself."""
        self._app = app
        self.together = together
        self.quotas = quotas
        self._always: dict[str, Any] = {
            "SCRIPT_NAME": "",
            "SERVER_NAME": host,
            "SERVER_PORT": str(port),
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
            "wsgi.input_terminated": True,
        }

    def call(
        self, request: Request, waited: dict[str, str] | None = None
    ) -> Answer | NotStoredYet:
        """Let the application work on it; `waited`: the headers that say how the wait ended.

        What a read takes of the processor is counted, and so is each page of its answer.
        """
        began = time.thread_time()
        found = self._called(request, waited)
        quotas, caller = self.quotas, found.caller
        if quotas is None or caller is None or request.kind not in READING:
            return found
        quotas.has_read(caller, time.thread_time() - began)
        if isinstance(found, Answer) and found.pages is not None:
            return replace(found, pages=_Counted(found.pages, caller, quotas))
        return found

    def _called(self, request: Request, waited: dict[str, str] | None) -> Answer | NotStoredYet:
        environ = self._environ(request)
        waits_for: list[Awaited] = []
        environ[WAITS_FOR] = waits_for
        if waited is not None:
            environ[WAITED] = waited
        began: list[tuple[str, list[tuple[str, str]]]] = []

        def start_response(
            status: str, headers: list[tuple[str, str]], _error: Any = None
        ) -> Callable[[bytes], object]:
            began[:] = [(status, headers)]
            return lambda _: None

        parts = self._app(environ, start_response)
        caller, route = environ.get(CALLER), environ.get(ROUTE, UNKNOWN_ROUTE)
        status, headers = began[0]
        if waits_for or request.head.method == "HEAD" or _is_whole(status, headers):
            try:
                body = b"".join(parts)
            finally:
                close = getattr(parts, "close", None)
                if close is not None:
                    close()
            if waits_for:
                return NotStoredYet(tuple(dict.fromkeys(waits_for)), caller)
            return Answer(status, headers, body, None, caller, route)
        return Answer(status, headers, b"", iter(parts), caller, route, request.kind)

    def _environ(self, request: Request) -> dict[str, Any]:
        head = request.head
        environ = self._always | head.headers
        # Who the client says we are is of no interest to us.
        environ.pop("HTTP_HOST", None)
        for name in _UNTAGGED:
            value = environ.pop(f"HTTP_{name}", None)
            if value is not None:
                environ[name] = value
        if head.chunked:
            del environ["HTTP_TRANSFER_ENCODING"]
            environ["CONTENT_LENGTH"] = str(len(request.body))
        environ["REQUEST_METHOD"] = head.method
        environ["PATH_INFO"] = head.path
        environ["QUERY_STRING"] = head.query
        environ["REMOTE_ADDR"] = request.remote
        environ["SERVER_PROTOCOL"] = "HTTP/1.0" if head.http_1_0 else "HTTP/1.1"
        environ[LISTENS] = request.listens
        environ[IS_LARGE] = request.kind == LARGE
        environ["wsgi.input"] = io.BytesIO(request.body)
        return environ


class _Counted:
    """The pages of an answer to a read: what each takes of the processor counts."""

    def __init__(self, pages: Iterator[bytes], caller: int, quotas: KnownQuotas) -> None:
        self._pages = pages
        self._caller = caller
        self._quotas = quotas

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        began = time.thread_time()
        try:
            return next(self._pages)
        finally:
            self._quotas.has_read(self._caller, time.thread_time() - began)

    def close(self) -> None:
        close = getattr(self._pages, "close", None)
        if close is not None:
            close()


def _is_whole(status: str, headers: list[tuple[str, str]]) -> bool:
    return status.startswith("204") or any(name.lower() == "content-length" for name, _ in headers)
