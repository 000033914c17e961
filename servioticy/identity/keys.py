"""The keys of one issuer: fetched beside all requests, and kept while the issuer is away.

No request waits for an issuer, or makes us ask it more often than every few seconds, whatever
keys its token names.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from servioticy.errors import Unavailable
from servioticy.identity.errors import NoKeys, NotAccepted
from servioticy.identity.signatures import PublicKey

REFRESH_SECONDS = 300.0
"""So long a key that the issuer has withdrawn may count yet."""
PAUSE_SECONDS = 10.0
"""Between two questions at least, whatever happens."""
GOOD_SECONDS = 86_400.0
"""So long keys count though the issuer does not answer any more."""

LATE_SECONDS = 300.0
"""So much older than its keys may be what an issuer, or a cache before it, tells us."""

log = logging.getLogger("servioticy.identity")

Fetch = Callable[[], Sequence[PublicKey]]
"""Asks the issuer for its keys. Raises Unavailable."""


class _Fetched(NamedTuple):
    keys: Sequence[PublicKey] = ()
    at: float | None = None
    """when they were asked for, in seconds since 1970; None: never yet"""
    changes: int = 0


class IssuerKeys:
    """What an issuer has published last. Threads may share it."""

    def __init__(self, issuer: str, fetch: Fetch, clock: Callable[[], float] = time.time) -> None:
        self.issuer = issuer
        self._fetch = fetch
        self._clock = clock
        self._found = _Fetched()
        self._is_wanted = threading.Event()
        self._is_stopped = threading.Event()

    @property
    def changes(self) -> int:
        """How often they were others than before: what an earlier key has signed may not count."""
        return self._found.changes

    def start(self) -> None:
        """Ask for them from now on, in a thread that ends with the program."""
        threading.Thread(target=self._run, name="issuer-keys", daemon=True).start()

    def stop(self) -> None:
        """Ask no more."""
        self._is_stopped.set()
        self._is_wanted.set()

    def refresh(self) -> bool:
        """Ask for them now; what was known stays where the issuer does not answer.

        So it does where the issuer publishes no key: nobody who vouches for persons has none.
        """
        began = self._clock()
        try:
            keys = list(self._fetch())
            if not keys:
                raise Unavailable("it publishes no keys")
        except Unavailable as error:
            log.warning("issuer_away", extra={"issuer": self.issuer, "reason": str(error)})
            return False
        except Exception:  # a thread that ended would be missed when the next key comes
            log.exception("issuer_not_understood", extra={"issuer": self.issuer})
            return False
        before = self._found
        is_same = [each.key for each in keys] == [each.key for each in before.keys]
        self._found = _Fetched(keys, began, before.changes + (not is_same))
        if not is_same:
            log.info("issuer_keys_changed", extra={"issuer": self.issuer, "keys": len(keys)})
        return True

    def of(self, key_id: str | None, issued_at: float) -> list[PublicKey]:
        """Return those that may have signed a token that says it was issued then.

        A token that names none is for an issuer with one key only. Raises NoKeys where it may be
        a new key, which is asked for; NotAccepted where it was none when we asked after the token
        was issued, which we do again where that was not long after.
        """
        found = self._found
        if found.at is None or self._clock() - found.at > GOOD_SECONDS:
            raise NoKeys
        keys = [each for each in found.keys if each.id == key_id]
        if key_id is None and len(found.keys) == 1:
            keys = list(found.keys)
        if keys:
            return keys
        if issued_at >= found.at - LATE_SECONDS:
            self._is_wanted.set()
        if issued_at < found.at:
            raise NotAccepted("its issuer has no such key")
        raise NoKeys

    def _run(self) -> None:
        while not self._is_stopped.is_set():
            self._is_wanted.clear()
            is_fetched = self.refresh()
            self._is_stopped.wait(PAUSE_SECONDS)
            if is_fetched:
                self._is_wanted.wait(REFRESH_SECONDS - PAUSE_SECONDS)
