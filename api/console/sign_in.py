"""Signing in and out: a token is shown once, and a cookie stands for it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlsplit

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

if TYPE_CHECKING:
    from servioticy.identity.logins import Granted, Login

SIGN_IN = f"{ROOT}/sign-in"
MAX_TOKEN = 8_192
"""Characters: tokens of issuers are long."""
UNKNOWN = "This token is not known, or has ended. Look whether all of it is there."
OF_A_DEVICE = "This is the token of one device. The console needs one of the tenant."
TOO_MANY = "Too many tokens were wrong. Wait a moment, and look what is wrong."
USED = "This sign-in has let somebody in already, and does so once. Begin again."
UNSAFE = (
    "Nobody can sign in here: the token would travel where others can read it. An operator has to "
    "set tls_certificate, or to put TLS in front of the platform and name its https:// address as "
    "public_url."
)


class WrongError(Conflict):
    """Something that opens nothing here."""


class UsedError(WrongError):
    """Something that opens once, and has."""


class Once(NamedTuple):
    """What lets somebody in once alone."""

    secret: str
    seconds: float
    """so long it might be shown again"""


@dataclass(frozen=True, slots=True)
class Signing:
    """What signing in needs."""

    addresses: Addresses
    sessions: ConsoleSessions
    seconds: float
    """how long a session is good"""
    login: Login | None = None
    """where persons sign in by their browser; None: nowhere"""


@dataclass(frozen=True, slots=True)
class Door:
    """Who comes in, and how the page looks before that."""

    signing: Signing
    guard: Guard
    attempts: Attempts = field(default_factory=Attempts)

    def shown(
        self, message: str = "", status: int = 200, wanted: str | None = None
    ) -> tuple[str, int]:
        """Return the page at which one signs in, with what is wrong."""
        login, place = self.signing.login, self.guard.place
        page = render_template(
            "sign_in.html",
            message=message,
            next=next_page(request.values.get("next", "") if wanted is None else wanted),
            tenant=request.values.get("tenant", ""),
            unsafe="" if place.may_sign_in else UNSAFE,
            issuer=urlsplit(login.issuer).netloc if login else "",
            leaving=login.leaving if login and request.args.get("left") else "",
        )
        return page, status

    def counted(self) -> AbstractContextManager[None]:
        """Count what is refused inside by where it comes from. Raises TooMany."""
        return self.attempts.counted(request.environ.get("REMOTE_ADDR", ""))

    def let_in(
        self, response: Any, token: str, granted: Granted | None = None, once: Once | None = None
    ) -> None:
        """Begin a session for who has shown a token. Raises WrongError, TooMany, Unavailable.

        `once`: by which that is; it is used then. Raises UsedError where it was.
        """
        with self.counted():
            found = _known(token, self.signing.addresses)
        sign_ins = self.signing.sessions.sign_ins
        if once is not None and not sign_ins.use(once.secret, found.caller, once.seconds):
            raise UsedError(USED)
        if g.signed is not None:
            self.signing.sessions.end(g.signed.secret)
        more = (granted.renewal, granted.seconds) if granted else ()
        secret = self.signing.sessions.begin(token, found, self.signing.seconds, *more)
        keep(response, self.guard, self.guard.place.cookie, secret)


def address(base: str, wanted: str = "") -> str:
    """Return where to sign in; one gets to the page that was `wanted` from there."""
    query = f"?next={quote(wanted, safe='/')}" if wanted.startswith(f"{ROOT}/") else ""
    return f"{base}{SIGN_IN}{query}"


def add(app: Flask, signing: Signing, guard: Guard) -> Door:
    """`/console/sign-in`, `/console/sign-out` and `/console/session`."""
    door, place = Door(signing, guard), guard.place

    @app.get(SIGN_IN)
    def sign_in() -> Any:
        if g.signed is not None:
            return redirect(f"{place.base}{ROOT}/", 303)
        return door.shown()

    @app.post(SIGN_IN)
    def do_sign_in() -> Any:
        if not place.may_sign_in:
            return door.shown(status=403)
        response = redirect(f"{place.base}{next_page(request.form.get('next', ''))}", 303)
        try:
            door.let_in(response, read_token(request.form.get("token", "").strip()[:MAX_TOKEN]))
        except TooMany:
            return door.shown(TOO_MANY, 429)
        except WrongError as wrong:
            return door.shown(str(wrong), 403)
        return response

    @app.get(f"{ROOT}/session")
    def session() -> Any:
        """Tell a page whether it is still signed in; what is due is renewed by that."""
        return "", HTTPStatus.NO_CONTENT if g.signed is not None else HTTPStatus.UNAUTHORIZED

    @app.post(f"{ROOT}/sign-out")
    def sign_out() -> Any:
        signing.sessions.end(g.signed.secret)
        return forgotten(redirect(f"{address(place.base)}?left=1", 303))

    def forgotten(response: Any) -> Any:
        keep(response, guard, place.cookie, "")
        response.headers["Clear-Site-Data"] = '"cache"'
        return response

    def ended(message: str) -> Any:
        """Show the door to who had signed in with a token that has ended."""
        if g.signed is not None:
            signing.sessions.end(g.signed.secret)
            g.signed = None
        return forgotten(make_response(door.shown(message, 403)))

    app.extensions["signed_out"] = ended
    return door


def signed_out(message: str) -> Any:
    """Return the page for who was signed in, and is no more."""
    ended: Callable[[str], Any] = current_app.extensions["signed_out"]
    return ended(message)


def _known(token: str, addresses: Addresses) -> Address:
    """Return whose token it is. Raises WrongError where it opens nothing here."""
    if not token:
        raise WrongError("Enter your token.")
    try:
        found = addresses.address(token.replace("\0", ""), None, None)
    except Stranger as stranger:
        raise WrongError(str(stranger)) from stranger
    if found is None:
        raise WrongError(UNKNOWN)
    if found.scope.service_object is not None:
        raise WrongError(OF_A_DEVICE)
    return found


def next_page(wanted: str) -> str:
    """Return a page of ours, whatever a link says."""
    is_ours = wanted.startswith(f"{ROOT}/") and not wanted.startswith(f"{ROOT}/sign-")
    return wanted if is_ours and "\\" not in wanted and "//" not in wanted else f"{ROOT}/"


def keep(
    response: Response | Any, guard: Guard, name: str, content: str, *, seconds: int | None = None
) -> None:
    """Have the browser keep a cookie; without content: keep it no more.

    With `seconds` it comes along from a page of others, too, but for changes: the way back from
    an issuer begins there.
    """
    response.set_cookie(
        name,
        content,
        max_age=seconds if content else 0,
        path="/",
        secure=guard.place.is_secure,
        httponly=True,
        samesite="Strict" if seconds is None else "Lax",
    )
