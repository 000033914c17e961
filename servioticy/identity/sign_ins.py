"""Sign-ins that have begun in a browser: what it keeps of one is signed, and counts once.

So whoever can write into the cookies of a browser, as a page on another port of its host can,
cannot make up what a sign-in is for, and who has seen a cookie cannot let himself in by it later.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

from servioticy.domain.tokens import digest
from servioticy.errors import Unavailable
from servioticy.ports.statements import Statements

MOST = 1_000
"""That have let somebody in, of a tenant, of which we know that they have."""
_ABOUT = b"servioticy: a sign-in that has begun"


class SignIns:
    """Signs what browsers keep, reads it again, and notes what has been used."""

    def __init__(self, stored: Statements) -> None:
        self._stored = stored
        self._known: bytes | None = None

    def signed(self, content: bytes) -> str:
        """Return it as a cookie may have it. Raises Unavailable."""
        return f"{base64.urlsafe_b64encode(content).decode()}.{self._made(content)}"

    def opened(self, text: str) -> bytes | None:
        """Return what was signed; None: it was not by us. Raises Unavailable."""
        written, _, signature = text.rpartition(".")
        try:
            content = base64.urlsafe_b64decode(written.encode())
        except ValueError:
            return None
        is_ours = hmac.compare_digest(self._made(content).encode(), signature.encode())
        return content if is_ours else None

    def was_used(self, secret: str) -> bool:
        """Return whether the sign-in of this secret has let somebody in. Raises Unavailable."""
        return self._stored.row("was_used", digest=digest(secret)) is not None

    def use(self, secret: str, tenant: int, seconds: float) -> bool:
        """Note that it lets somebody in now; False: it has before. Raises Unavailable.

        `seconds`: so long its cookie may still count.
        """
        found = self._stored.row(
            "use", digest=digest(secret), tenant=tenant, seconds=seconds, keep=MOST - 1
        )
        return found is not None

    def _made(self, content: bytes) -> str:
        return hmac.new(self._key(), _ABOUT + content, hashlib.sha256).hexdigest()

    def _key(self) -> bytes:
        """Return the key, which all processes of the API share; it is made where there is none."""
        if self._known is None:
            if self._stored.row("signing_key") is None:
                self._stored.rows("make_signing_key", content=secrets.token_bytes(32))
            row = self._stored.row("signing_key")
            if row is None:
                raise Unavailable("the key of sign-ins is gone again")
            self._known = bytes(row[0])
        return self._known
