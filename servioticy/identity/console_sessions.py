"""Sessions of the console: a token is shown once, and a cookie stands for it from then on.

The store has the token only as sealed with what the cookie holds. So whoever reads the store has
no token, and whoever has the cookie has what the token gives: no less, no more, no longer.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from typing import Any, NamedTuple

from servioticy.domain.tokens import digest
from servioticy.identity.sealing import sealed, unsealed
from servioticy.identity.sign_ins import SignIns
from servioticy.ports.addresses import Address, Addresses, Lookup
from servioticy.ports.statements import Statements

MOST = 100
"""Of a tenant; another one ends the oldest."""
RENEWED_AFTER = 0.7
"""Of the time for which its token is good."""
AGAIN_SECONDS = 20.0
"""After which it is tried again to renew it, whatever has become of who did."""
PREFIX = "console "
"""Of what delivery takes for a token when it is a session: no token has a blank in it."""


class Session(NamedTuple):
    """What a cookie stands for."""

    token: str
    expires_in: float
    """seconds"""
    tenant: int = 0
    is_due: bool = False
    """whether its token is to be renewed"""
    has_ended: bool = False
    """whether it has ended, while there is something for which the issuer gives another one"""


class ConsoleSessions:
    """Begins, finds and ends sessions."""

    def __init__(self, stored: Statements) -> None:
        self._stored = stored
        self.sign_ins = SignIns(stored)
        """By which persons get some."""

    def begin(
        self,
        token: str,
        address: Address,
        seconds: float,
        renewal: str | None = None,
        token_seconds: float = 0.0,
    ) -> str:
        """Return the secret of a new session for who has shown the token. Raises Unavailable.

        `renewal`: for which its issuer gives another token; this one is good for `token_seconds`.
        """
        secret = secrets.token_urlsafe(32)
        self._stored.rows(
            "begin",
            digest=digest(secret),
            tenant=address.caller,
            token=sealed(token, secret),
            known_by=address.known_by,
            seconds=seconds,
            keep=MOST - 1,
            **_renewing(secret, renewal, token_seconds),
        )
        return secret

    def session(self, secret: str) -> Session | None:
        """Return what the secret stands for; None: nothing, or not any more."""
        row = self._stored.row("session", digest=digest(secret)) if secret else None
        token = None if row is None else unsealed(bytes(row[0]), secret)
        return None if row is None or token is None else Session(token, *row[1:])

    def claim(self, secret: str) -> str | None:
        """Return what the token is renewed with, where it is due and nobody else renews it now."""
        row = self._stored.row("claim", digest=digest(secret), again=AGAIN_SECONDS)
        return None if row is None else unsealed(bytes(row[0]), secret)

    def renew(self, secret: str, token: str, renewal: str, token_seconds: float) -> None:
        """Let it go on with this token."""
        values = _renewing(secret, renewal, token_seconds)
        self._stored.rows("renew", digest=digest(secret), token=sealed(token, secret), **values)

    def keep_as_it_is(self, secret: str) -> None:
        """Let it end with its token: its issuer gives no other one."""
        self._stored.rows("keep_as_it_is", digest=digest(secret))

    def end(self, secret: str) -> None:
        """End it, and what was opened with it."""
        self._stored.rows("end", digest=digest(secret))


def _renewing(secret: str, renewal: str | None, token_seconds: float) -> dict[str, Any]:
    if renewal is None:
        return {"renewal": None, "renew_in": None, "token_seconds": None}
    renew_in = max(1.0, token_seconds * RENEWED_AFTER)
    kept = sealed(renewal, secret)
    return {"renewal": kept, "renew_in": renew_in, "token_seconds": token_seconds}


def answer_to_forgeries(secret: str) -> str:
    """Return what each change has to carry: a page of another origin cannot know it."""
    return hmac.new(secret.encode(), b"servioticy: changes", hashlib.sha256).hexdigest()


class AddressesOfSessions:
    """The addresses, for delivery: a session counts as the token that was shown for it."""

    def __init__(self, addresses: Addresses, sessions: ConsoleSessions) -> None:
        self._addresses = addresses
        self._sessions = sessions

    def address(
        self, token: str, service_object: str | None, stream: str | None
    ) -> Address | None:
        """Return who asks, and what they name."""
        if not token.startswith(PREFIX):
            return self._addresses.address(token, service_object, stream)
        session = self._sessions.session(token.removeprefix(PREFIX))
        if session is None:
            return None
        found = self._addresses.address(session.token, service_object, stream)
        return None if found is None else _until(found, session.expires_in)

    def addresses(self, lookups: Sequence[Lookup]) -> list[Address | None]:
        """Return the same for many; sessions, of which there are few, one by one."""
        others = [each for each in lookups if not each.token.startswith(PREFIX)]
        found = iter(self._addresses.addresses(others) if others else [])
        return [
            self.address(*each) if each.token.startswith(PREFIX) else next(found)
            for each in lookups
        ]


def _until(address: Address, seconds: float) -> Address:
    left = seconds if address.expires_in is None else min(seconds, address.expires_in)
    return address._replace(expires_in=left)
