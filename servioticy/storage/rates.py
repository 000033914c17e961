"""The Rates in Postgres: notifications, and a lock of each connection that hears them.

A notification is JSON: `from`, a name of chance that the process has, and `let_in`, of each tenant
its number and what was let in of each rate, in microseconds of its quota.
"""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Sequence

from servioticy.errors import Rejected
from servioticy.ports.rates import LetIn
from servioticy.storage.database import Database
from servioticy.storage.queries import queries

CHANNEL = "servioticy_rates"
MOST_AT_ONCE = 100
"""Tenants of one notification, which has room for 8,000 bytes: three numbers of 20 digits each."""
MOST_WAITING = 0.25
"""So full at most may the queue of the server's notifications be that nobody has heard yet. Others
tell there, too: which tokens have ended."""
_HEARS = 1_701_017  # class of our advisory locks: any number that nothing else uses

log = logging.getLogger("servioticy")


class PostgresRates:
    """Tells all processes that are connected to the same database."""

    def __init__(self, database: Database, most_waiting: float = MOST_WAITING) -> None:
        """`database` keeps a connection open that listens, of the thread that asks."""
        self._database = database
        self._most_waiting = most_waiting
        self._sql = queries("rates")
        self._name = secrets.token_hex(8)
        self._is_there = False

    def heard(self, seconds: float) -> list[list[LetIn]] | None:
        """Return what others have told, within so many seconds of silence; see the port."""
        said = self._database.heard(CHANNEL, seconds)
        if said is None or not self._is_there:
            self._is_there = False
            values = {"key": _HEARS, "said": self._text(())}
            self._database.rows(self._sql["come"], values)
            self._is_there = True
            return None
        told = [self._understood(each) for each in said]
        return [each for each in told if each is not None]

    def tell(self, let_in: Sequence[LetIn]) -> None:
        """Tell all that hear, of some tenants in each notification."""
        starts = range(0, len(let_in), MOST_AT_ONCE)
        said = [self._text(let_in[start : start + MOST_AT_ONCE]) for start in starts]
        values = {"said": said, "most_waiting": self._most_waiting}
        if len(self._database.rows(self._sql["tell"], values)) < len(said):
            raise Rejected(
                "Postgres' queue of notifications fills up: "
                "some program listens and has not read for long"
            )

    def processes(self) -> int:
        """Return how many connections hear."""
        ((count,),) = self._database.rows(self._sql["processes"], {"key": _HEARS})
        return int(count)

    def leave(self) -> None:
        """Close the connection that listens."""
        self._is_there = False
        self._database.close()

    def _text(self, let_in: Sequence[LetIn]) -> str:
        rows = [
            [each.tenant, *(round(amount * 1e6) for amount in each.seconds)] for each in let_in
        ]
        return json.dumps({"from": self._name, "let_in": rows}, separators=(",", ":"))

    def _understood(self, text: str) -> list[LetIn] | None:
        """None: it is our own, or of a release that tells something else."""
        try:
            said = json.loads(text)
            if said["from"] == self._name:
                return None
            return [
                LetIn(int(tenant), tuple(int(amount) / 1e6 for amount in amounts))
                for tenant, *amounts in said["let_in"]
            ]
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
            log.warning("rates_not_understood", extra={"why": str(error)[:200]})
            return None
