"""Signing in and out: a token is shown once, and a cookie stands for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from flask import (
    Flask,
    Response,
    current_app,
    g,
    make_response,
    redirect,
    render_template,
    request,
)

from api.console.guarding import Guard
from api.http.attempts import Attempts
from servioticy.domain.console import ROOT
from servioticy.domain.tokens import read_token
from servioticy.errors import Stranger
from servioticy.identity.console_sessions import ConsoleSessions
from servioticy.ports.addresses import Address, Addresses
from servioticy.refusals import Conflict, TooMany

MAX_TOKEN = 8_192
"""Characters: tokens of issuers are long."""
UNKNOWN = "This token is not known, or has ended. Look whether all of it is there."
OF_A_DEVICE = "This is the token of one device. The console needs one of the tenant."
TOO_MANY = "Too many tokens were wrong. Wait a moment, and look what is wrong."
UNSAFE = (
    "Nobody can sign in here: the token would travel where others can read it. An operator has to "
    "set tls_certificate, or to put TLS in front of the platform and name its https:// address as "
    "public_url."
)


class _WrongError(Conflict):
    """A token that opens nothing here."""


@dataclass(frozen=True, slots=True)
class Signing:
    """What signing in needs."""

    addresses: Addresses
    sessions: ConsoleSessions
    seconds: float
    """how long a session is good"""


def address(base: str, wanted: str = "") -> str:
    """Return where to sign in; one gets to the page that was `wanted` from there."""
    query = f"?next={quote(wanted, safe='/')}" if wanted.startswith(f"{ROOT}/") else ""
    return f"{base}{ROOT}/sign-in{query}"


def add(app: Flask, signing: Signing, guard: Guard) -> None:
    """`/console/sign-in` and `/console/sign-out`."""
    attempts, place = Attempts(), guard.place

    def shown(message: str = "", status: int = 200) -> tuple[str, int]:
        wanted = _next(request.values.get("next", ""))
        unsafe = "" if place.may_sign_in else UNSAFE
        page = render_template("sign_in.html", message=message, next=wanted, unsafe=unsafe)
        return page, status

    @app.get(f"{ROOT}/sign-in")
    def sign_in() -> Any:
        if g.signed is not None:
            return redirect(f"{place.base}{ROOT}/", 303)
        return shown()

    @app.post(f"{ROOT}/sign-in")
    def do_sign_in() -> Any:
        if not place.may_sign_in:
            return shown(status=403)
        token = read_token(request.form.get("token", "").strip()[:MAX_TOKEN])
        try:
            with attempts.counted(request.environ.get("REMOTE_ADDR", "")):
                found = _known(token, signing.addresses)
        except TooMany:
            return shown(TOO_MANY, 429)
        except _WrongError as wrong:
            return shown(str(wrong), 403)
        if g.signed is not None:
            signing.sessions.end(g.signed.secret)
        secret = signing.sessions.begin(token, found, signing.seconds)
        response = redirect(f"{place.base}{_next(request.form.get('next', ''))}", 303)
        _set(response, secret, guard)
        return response

    @app.post(f"{ROOT}/sign-out")
    def sign_out() -> Any:
        signing.sessions.end(g.signed.secret)
        return forgotten(redirect(address(place.base), 303))

    def forgotten(response: Any) -> Any:
        _set(response, "", guard)
        response.headers["Clear-Site-Data"] = '"cache"'
        return response

    def ended(message: str) -> Any:
        """Show the door to who had signed in with a token that has ended."""
        if g.signed is not None:
            signing.sessions.end(g.signed.secret)
            g.signed = None
        return forgotten(make_response(shown(message, 403)))

    app.extensions["signed_out"] = ended


def signed_out(message: str) -> Any:
    """Return the page for who was signed in, and is no more."""
    ended: Callable[[str], Any] = current_app.extensions["signed_out"]
    return ended(message)


def _known(token: str, addresses: Addresses) -> Address:
    """Return whose token it is. Raises Conflict where it opens nothing here."""
    if not token:
        raise _WrongError("Enter your token.")
    try:
        found = addresses.address(token.replace("\0", ""), None, None)
    except Stranger as stranger:
        raise _WrongError(str(stranger)) from stranger
    if found is None:
        raise _WrongError(UNKNOWN)
    if found.scope.service_object is not None:
        raise _WrongError(OF_A_DEVICE)
    return found


def _next(wanted: str) -> str:
    """Return a page of ours, whatever a link says."""
    is_ours = wanted.startswith(f"{ROOT}/") and not wanted.startswith(f"{ROOT}/sign-")
    return wanted if is_ours and "\\" not in wanted and "//" not in wanted else f"{ROOT}/"


def _set(response: Response | Any, secret: str, guard: Guard) -> None:
    response.set_cookie(
        guard.place.cookie,
        secret,
        max_age=None if secret else 0,
        path="/",
        secure=guard.place.is_secure,
        httponly=True,
        samesite="Strict",
    )
