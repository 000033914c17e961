"""The public API, asked by HTTP without a network: a call of its WSGI application."""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import orjson

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

CALLER = "servioticy.caller"
"""Where the API writes down in a request's environment who asks."""


class ApiRefused(Exception):
    """The API has refused something: status, what it says, and whether it knows who asks."""

    def __init__(
        self, status: int, message: str, *, is_known: bool, told: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.is_known = is_known
        self.told = told or {}
        """The whole body."""


@dataclass(frozen=True, slots=True)
class ApiAnswer:
    """What the API has answered."""

    status: int
    headers: Mapping[str, str]
    """by their names in small letters"""
    body: bytes

    @property
    def value(self) -> Any:
        """The body as JSON; None where there is none."""
        return orjson.loads(self.body) if self.body else None


class Api:
    """Asks with one token, on behalf of one request."""

    def __init__(self, app: WSGIApplication, token: str, environ: dict[str, Any]) -> None:
        """`environ` is that of the request that is answered with what is found."""
        self._app = app
        self._token = token
        self._environ = environ

    def get(self, *names: str, **query: Any) -> Any:
        """Return what stands at `/NAME/NAME`, or None. Raises ApiRefused."""
        return self.ask("GET", *names, query=query).value

    def found(self, *names: str, **query: Any) -> Any:
        """Return the same; None where this token may not ask for it, or it is gone."""
        try:
            return self.get(*names, **query)
        except ApiRefused as refused:
            if not refused.is_known or refused.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                raise
            return None

    def post(self, *names: str, body: Any = None, **query: Any) -> Any:
        """Send it there, and return the answer. Raises ApiRefused."""
        return self.ask("POST", *names, body=body, query=query).value

    def ask(
        self,
        method: str,
        *names: str,
        body: Any = None,
        query: Mapping[str, Any] | None = None,
        if_match: str | None = None,
    ) -> ApiAnswer:
        """Return the answer; text is sent as text. Raises ApiRefused.

        `if_match`: the state to which a change is to be made.
        """
        environ = self._request(method, "/" + "/".join(map(_quoted, names)), body, query or {})
        if if_match is not None:
            environ["HTTP_IF_MATCH"] = if_match
        began: list[tuple[str, list[tuple[str, str]]]] = []

        def start(status: str, headers: list[tuple[str, str]], _error: Any = None) -> Any:
            began[:] = [(status, headers)]

        parts = self._app(environ, start)
        try:
            content = b"".join(parts)
        finally:
            close = getattr(parts, "close", None)
            if close is not None:
                close()
        caller = environ.get(CALLER)
        if caller is not None:
            self._environ[CALLER] = caller
        status, headers = began[0]
        answer = ApiAnswer(
            int(status[:3]), {name.lower(): value for name, value in headers}, content
        )
        if answer.status >= HTTPStatus.BAD_REQUEST:
            known = caller is not None
            raise ApiRefused(answer.status, _message(answer), is_known=known, told=_said(answer))
        return answer

    def _request(
        self, method: str, path: str, body: Any, query: Mapping[str, Any]
    ) -> dict[str, Any]:
        content, kind = _content(body)
        asked = {name.rstrip("_"): value for name, value in query.items() if value is not None}
        return {
            "REQUEST_METHOD": method,
            "SCRIPT_NAME": "",
            "PATH_INFO": path,
            "QUERY_STRING": urlencode(asked),
            "CONTENT_LENGTH": str(len(content)),
            "CONTENT_TYPE": kind,
            "SERVER_NAME": self._environ["SERVER_NAME"],
            "SERVER_PORT": self._environ["SERVER_PORT"],
            "SERVER_PROTOCOL": "HTTP/1.1",
            "REMOTE_ADDR": self._environ.get("REMOTE_ADDR", ""),
            "HTTP_AUTHORIZATION": self._token,
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(content),
            "wsgi.input_terminated": True,
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
        }


def _quoted(name: str) -> str:
    """Return a name as it stands in PATH_INFO, which has no escapes: none may have a slash."""
    if "/" in name or name in (".", ".."):
        raise ApiRefused(HTTPStatus.NOT_FOUND, "There is nothing of this name", is_known=True)
    return name.encode().decode("latin-1")


def _content(body: Any) -> tuple[bytes, str]:
    if body is None:
        return b"", ""
    if isinstance(body, str):
        return body.encode(), "text/plain"
    return orjson.dumps(body), "application/json"


def _said(answer: ApiAnswer) -> dict[str, Any]:
    try:
        said = answer.value
    except orjson.JSONDecodeError:
        said = None
    return said if isinstance(said, dict) else {}


def _message(answer: ApiAnswer) -> str:
    said = _said(answer)
    return str(said.get("detail") or said.get("message") or "The API has answered with an error")


def path_of(*names: str) -> str:
    """Return `/NAME/NAME` as it stands in an address."""
    return "/" + "/".join(quote(name, safe="") for name in names)
