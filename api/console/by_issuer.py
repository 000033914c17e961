"""Signing in at an issuer of tokens (OpenID Connect): there and back again.

What has begun and is not finished is in a signed cookie of the browser that has begun it, and
nowhere else: strangers fill nothing here by beginning.
"""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import orjson
from flask import Flask, g, make_response, redirect, render_template, request

from api.console.sign_in import (
    SIGN_IN,
    TOO_MANY,
    USED,
    Door,
    Once,
    UsedError,
    WrongError,
    keep,
    next_page,
)
from servioticy.domain.console import ROOT, Place, secret_in
from servioticy.errors import Stranger, Unavailable
from servioticy.refusals import TooMany

if TYPE_CHECKING:
    from servioticy.identity.logins import Granted
    from servioticy.identity.sign_ins import SignIns

CALLBACK = f"{SIGN_IN}/callback"
"""Where the issuer sends the browser: it has to know this address as `redirect_uri`."""
SECONDS = 600
"""So long a sign-in may take."""
APART = 60
"""Seconds that the clocks of two processes of the API may be apart."""
KEPT = SECONDS + 2 * APART
"""So long it is known that it has let somebody in."""
MAX_TENANT = 200
MAX_NEXT = 500
"""Characters."""
LOST = (
    "This sign-in was not begun in this browser, or more than ten minutes ago, or what the "
    "browser kept of it was changed. Begin again."
)
AWAY = "The issuer does not answer just now. Try again in a moment."


class Begun(NamedTuple):
    """What the browser keeps of a sign-in."""

    secret: str
    tenant: str
    """for which the person asks; empty: the token, or the operator, says it"""
    next: str
    """the page to which it leads"""
    back: str
    """what the issuer was told as `redirect_uri`"""
    at: float


def add(app: Flask, door: Door) -> None:
    """`/console/sign-in/issuer` and `/console/sign-in/callback`, where there is an issuer."""
    login, place = door.signing.login, door.guard.place
    sign_ins = door.signing.sessions.sign_ins
    if login is None:
        return
    # Slow to import, and not needed without an issuer.
    from servioticy.identity.logins import Pending, reason

    name = f"{place.cookie}-sign-in"

    @app.post(f"{SIGN_IN}/issuer")
    def begin_sign_in() -> Any:
        if not place.may_sign_in:
            return door.shown(status=403)
        begun = Begun(
            secrets.token_urlsafe(32),
            request.form.get("tenant", "").strip()[:MAX_TENANT],
            next_page(request.form.get("next", "")[:MAX_NEXT]),
            f"{_ours(place)}{place.base}{CALLBACK}",
            time.time(),
        )
        try:
            there = login.begin(Pending(begun.secret), begun.back)
            kept = sign_ins.signed(orjson.dumps(list(begun)))
        except Unavailable:
            return door.shown(AWAY, 503)
        # Not by a redirection of the form, which the policy of the page allows to ourselves alone.
        response = make_response(_on_the_way("Going to the issuer", there))
        keep(response, door.guard, name, kept, seconds=SECONDS)
        return response

    @app.get(CALLBACK)
    def finish_sign_in() -> Any:
        if g.signed is not None:
            return redirect(f"{place.base}{ROOT}/", 303)
        try:
            begun = _read(secret_in(request.headers.get("Cookie", ""), name), sign_ins)
            answer, status = _finished(begun)
        except Unavailable:
            return door.shown(AWAY, 503)
        response = make_response(answer, status)
        response.headers.extend(g.pop("cookies", []))
        keep(response, door.guard, name, "", seconds=SECONDS)
        return response

    def _finished(begun: Begun | None) -> tuple[str, int]:
        """Return the page to which a way back from the issuer leads."""
        said = request.args
        if begun is None:
            return door.shown(LOST, 400)
        pending = Pending(begun.secret)
        wrong, status = "", 403
        if not secrets.compare_digest(said.get("state", "").encode(), pending.state.encode()):
            wrong, status = LOST, 400
        elif sign_ins.was_used(begun.secret):
            wrong, status = USED, 400
        elif said.get("iss", login.issuer) != login.issuer:
            wrong = "What came back is of another issuer."
        elif "error" in said:
            told = reason(said["error"], said.get("error_description"))
            wrong = f"The issuer has not let you in: {told}"
        else:
            wrong, status = _let_in(begun, pending, said.get("code", ""))
        if wrong:
            return door.shown(wrong, status, begun.next)
        # The session's cookie comes along only from a page of ours, as this one is.
        return _on_the_way("You are signed in", f"{place.base}{begun.next}"), 200

    def _let_in(begun: Begun, pending: Pending, code: str) -> tuple[str, int]:
        """Begin the session; return what is wrong, and its status."""
        kept = make_response()
        try:
            granted = _granted(begun, pending, code)
            before = f"{quote(begun.tenant, safe='')}~" if begun.tenant else ""
            door.let_in(kept, f"{before}{granted.token}", granted, Once(begun.secret, KEPT))
        except TooMany:
            return TOO_MANY, 429
        except UsedError:
            return USED, 400
        except WrongError as wrong:
            return str(wrong), 403
        except Unavailable:
            return AWAY, 503
        g.cookies = [("Set-Cookie", each) for each in kept.headers.getlist("Set-Cookie")]
        return "", 200

    def _granted(begun: Begun, pending: Pending, code: str) -> Granted:
        """Return what the issuer gives for the code. Raises WrongError, Unavailable."""
        try:
            return login.granted(pending, code, begun.back)
        except Stranger as stranger:
            raise WrongError(str(stranger)) from stranger


def _ours(place: Place) -> str:
    """Return the origin at which the browser knows us: on loopback there are several."""
    origin = request.headers.get("Origin", "")
    return origin if origin in place.origins else place.url.removesuffix(place.base)


def _on_the_way(what: str, there: str) -> str:
    return render_template("on_the_way.html", what=what, there=there)


def _read(text: str, sign_ins: SignIns) -> Begun | None:
    """Return what has begun; None: nothing, or too long ago, or it is not signed by us.

    Raises Unavailable.
    """
    content = sign_ins.opened(text) if text else None
    if content is None:
        return None
    begun = Begun(*orjson.loads(content))
    return begun if -APART <= time.time() - begun.at <= SECONDS else None
