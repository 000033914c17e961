"""Sessions of persons go on though their tokens end after minutes: these are renewed in time.

One request of a session renews, whichever process it comes to; until then the others go on with
what there is, or wait for it where that has ended.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from servioticy.errors import Unavailable
from servioticy.identity.addresses import BEFORE
from servioticy.identity.console_sessions import ConsoleSessions, Session
from servioticy.identity.errors import NotGranted
from servioticy.identity.logins import Login

WAIT_SECONDS = 3.0
"""So long a request waits for another one that renews its session."""
PAUSE_SECONDS = 0.1

log = logging.getLogger("servioticy.identity")


class RenewedSessions:
    """Finds sessions, each with a token that is good. Threads may share it."""

    def __init__(
        self,
        sessions: ConsoleSessions,
        login: Login,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._sessions = sessions
        self._login = login
        self._sleep = sleep

    def session(self, secret: str) -> Session | None:
        """Return what the secret stands for; None: nothing, or not any more.

        Raises Unavailable, and where its token has ended while the issuer is away.
        """
        found = self._sessions.session(secret)
        if found is None or not found.is_due:
            return found if found is None or not found.has_ended else self._awaited(secret)
        renewal = self._sessions.claim(secret)
        if renewal is None:
            return self._awaited(secret) if found.has_ended else found
        return self._renewed(secret, found, renewal)

    def _renewed(self, secret: str, found: Session, renewal: str) -> Session | None:
        try:
            granted = self._login.renewed(renewal, found.token.rpartition(BEFORE)[2], found.tenant)
        except Unavailable as error:
            log.warning("session_not_renewed", extra={"reason": str(error)})
            if found.has_ended:
                raise
            return found
        except NotGranted as error:
            log.info("session_ended", extra={"reason": str(error)})
            if found.has_ended:
                self._sessions.end(secret)
                return None
            self._sessions.keep_as_it_is(secret)
            return found
        before, tilde, _ = found.token.rpartition(BEFORE)
        token = f"{before}{tilde}{granted.token}"
        self._sessions.renew(secret, token, granted.renewal or renewal, granted.seconds)
        return found._replace(token=token, is_due=False, has_ended=False)

    def _awaited(self, secret: str) -> Session | None:
        """Return it as soon as another request has renewed it. Raises Unavailable."""
        for _ in range(int(WAIT_SECONDS / PAUSE_SECONDS)):
            found = self._sessions.session(secret)
            if found is None or not found.has_ended:
                return found
            self._sleep(PAUSE_SECONDS)
        raise Unavailable("the issuer has not renewed the session yet")
