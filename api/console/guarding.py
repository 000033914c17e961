"""Who a page is for, and what keeps pages of others from acting in that name."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from api.console.asking import Api
from servioticy.domain.console import Place, secret_in
from servioticy.identity.console_sessions import Session, answer_to_forgeries

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
FIELD = "csrf"
"""What a form carries; in other requests the header below."""
HEADER = "HTTP_X_CSRF_TOKEN"


class Sessions(Protocol):
    """Finds the session that a secret stands for."""

    def session(self, secret: str) -> Session | None:
        """Return it; None: there is none, or not any more. May raise Unavailable."""


@dataclass(frozen=True, slots=True)
class Signed:
    """Somebody who has signed in: what a request may do in that name."""

    secret: str
    token: str
    api: Api

    @property
    def csrf(self) -> str:
        """What each change has to carry."""
        return answer_to_forgeries(self.secret)

    def has_asked(self, carried: str) -> bool:
        """Return whether a change comes from one of our pages: it carries what they know."""
        return hmac.compare_digest(self.csrf.encode(), carried.encode())


class Guard:
    """Finds out who has signed in."""

    def __init__(self, app: WSGIApplication, sessions: Sessions, place: Place) -> None:
        self._app = app
        self._sessions = sessions
        self.place = place

    def signed(self, environ: dict[str, Any]) -> Signed | None:
        """Return who a request is of; None: nobody, or not any more. Raises Unavailable."""
        secret = secret_in(environ.get("HTTP_COOKIE", ""), self.place.cookie)
        session = self._sessions.session(secret)
        if session is None:
            return None
        return Signed(secret, session.token, Api(self._app, session.token, environ))

    def is_ours(self, environ: dict[str, Any]) -> bool:
        """Return whether no other page has sent the request, as far as the browser tells."""
        site, origin = environ.get("HTTP_SEC_FETCH_SITE"), environ.get("HTTP_ORIGIN")
        if site is not None:
            return site in ("same-origin", "none")
        return origin is None or origin in self.place.origins


def security_headers(place: Place) -> dict[str, str]:
    """Return what every page says to the browser: it loads from us alone, and runs no text."""
    asked = " ".join(("'self'", *place.sockets))
    return {
        "Content-Security-Policy": (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
            f"connect-src {asked}; "
            "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
        ),
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        # The origin has to be told to ourselves: without it browsers send `Origin: null`.
        "Referrer-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cache-Control": "no-store",
    }
