"""Where the console is mounted: in front of the API, which sees nothing of it.

`/console/api/...` is the API itself for who has signed in: the same request, with the session's
token in the place of the cookie. Everything else below `/console` is a page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from api.console.assets import assets_of
from api.console.connecting import About
from api.console.guarding import HEADER, SAFE, Guard, Sessions, Signed
from api.console.pages import pages
from api.console.sign_in import Signing
from api.http.metrics import note_route
from servioticy.domain.console import API, Place, is_below
from servioticy.errors import Unavailable
from servioticy.identity.console_sessions import ConsoleSessions
from servioticy.ports.addresses import Addresses

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment
    from flask import Flask
    from werkzeug.routing import Rule

    from servioticy.identity.logins import Login

OF_ANSWERS = [
    ("Cache-Control", "no-store"),
    ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
]


def mounted(
    api: WSGIApplication, addresses: Addresses, sessions: ConsoleSessions, place: Place, own: Own
) -> WSGIApplication:
    """Return the API with the console in front of it."""
    login: Login | None = getattr(addresses, "login", None)  # of those who know an issuer
    guard = Guard(api, _found_by(sessions, login), place)
    signing = Signing(addresses, sessions, own.seconds, login)
    app = pages(guard, signing, assets_of(own.downloaded), About(place, own.mqtt_port))
    app.before_request(note_route)
    return Mount(api, app, guard)


def _found_by(sessions: ConsoleSessions, login: Login | None) -> Sessions:
    if login is None:
        return sessions
    from servioticy.identity.renewing import RenewedSessions  # slow to import

    return RenewedSessions(sessions, login)


class Own(NamedTuple):
    """What the console is told of this installation."""

    seconds: float
    """how long a session is good"""
    downloaded: Path
    """the folder of JavaScript that is not ours"""
    mqtt_port: int
    """0: there is none"""


class Mount:
    """The API with the console in front, as one WSGI application."""

    def __init__(self, api: WSGIApplication, pages: Flask, guard: Guard) -> None:
        self._api = api
        self._pages = pages.wsgi_app
        self._rules = pages.url_map
        self._guard = guard

    def rules(self) -> Iterator[Rule]:
        """Yield the routes of the pages."""
        return self._rules.iter_rules()

    def __call__(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        """Answer a request."""
        path = environ["PATH_INFO"]
        if not is_below(path):
            return self._api(environ, start)
        if not path.startswith(f"{API}/"):
            return self._pages(environ, start)
        try:
            signed = self._guard.signed(environ)
        except Unavailable:
            return _refused(start, 503, "The platform does not answer just now")
        if signed is None:
            return _refused(start, 401, "You are not signed in, or not any more")
        if not self._may(environ, signed):
            return _refused(start, 403, "This did not come from a page of the console")
        return self._api(_as_token(environ, path, signed.token), _private(start))

    def _may(self, environ: WSGIEnvironment, signed: Signed) -> bool:
        if not self._guard.is_ours(environ):
            return False
        is_safe = environ["REQUEST_METHOD"] in SAFE
        return is_safe or signed.has_asked(environ.get(HEADER, ""))


def _as_token(environ: WSGIEnvironment, path: str, token: str) -> WSGIEnvironment:
    """Make the request one of the API's own; what else it carries stays."""
    environ["PATH_INFO"] = path.removeprefix(API)
    environ["HTTP_AUTHORIZATION"] = token
    environ.pop("HTTP_COOKIE", None)
    return environ


def _private(start: StartResponse) -> StartResponse:
    """Let no other page read the answer, and no cache keep it."""
    ours = {name.lower() for name, _ in OF_ANSWERS}

    def begin(status: str, headers: list[tuple[str, str]], *error: Any) -> Any:
        kept = [
            each
            for each in headers
            if not each[0].lower().startswith("access-control-") and each[0].lower() not in ours
        ]
        return start(status, [*kept, *OF_ANSWERS], *error)

    return begin


def _refused(start: StartResponse, status: int, message: str) -> Iterable[bytes]:
    body = orjson.dumps({"status": status, "message": message, "detail": message})
    headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    start(f"{status} {HTTPStatus(status).phrase}", [*headers, *OF_ANSWERS])
    return [body]
