"""The Peers in Postgres: notifications, and a lock of each connection that hears them.

A notification is a number, the fence, and JSON: `from`, the number of the process, `kind` and
`rows`.
"""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Sequence

from servioticy.errors import Rejected
from servioticy.ports.peers import COME, Row, Told
from servioticy.storage.database import Database
from servioticy.storage.queries import queries

CHANNEL = "servioticy_peers"
MOST_AT_ONCE = 100
"""Rows of one notification, which has room for 8,000 bytes: of two numbers of 20 digits and a
digest of 32, at most."""
MOST_WAITING = 0.25
"""So full at most may the queue of the server's notifications be, as for rates."""
_PEERS = 1_701_022  # class of our advisory locks: any number that nothing else uses

log = logging.getLogger("servioticy")


class PostgresPeers:
    """Tells all processes that are connected to the same database."""

    def __init__(self, database: Database, most_waiting: float = MOST_WAITING) -> None:
        """`database` keeps a connection open that listens, of the thread that asks `heard`."""
        self._database = database
        self._most_waiting = most_waiting
        self._sql = queries("peers")
        self.process = secrets.randbelow(2**31 - 1) + 1
        self._is_there = False

    def heard(self, seconds: float) -> list[Told] | None:
        """Return what others have told, within so many seconds of silence; see the port."""
        said = self._database.heard(CHANNEL, seconds)
        if said is None or not self._is_there:
            self._is_there = False
            come = {"key": _PEERS, "process": self.process, "said": self._text(COME, ())}
            self._database.rows(self._sql["come"], come)
            self._is_there = True
            return None
        told = [_understood(each) for each in said]
        return [each for each in told if each is not None and each.process != self.process]

    def others(self) -> frozenset[int]:
        """Return which other processes hear now."""
        found = self._database.rows(self._sql["processes"], {"key": _PEERS})
        return frozenset(process for (process,) in found) - {self.process}

    def tell(self, kind: str, rows: Sequence[Row]) -> int:
        """Tell all that hear, of some rows in each notification; return the fence."""
        starts = range(0, len(rows), MOST_AT_ONCE)
        said = [self._text(kind, rows[start : start + MOST_AT_ONCE]) for start in starts]
        values = {"said": said, "most_waiting": self._most_waiting}
        found = self._database.rows(self._sql["tell"], values)
        if len(found) < len(said):
            raise Rejected(
                "Postgres' queue of notifications fills up: "
                "some program listens and has not read for long"
            )
        return int(found[0][0]) if found else 0

    def _text(self, kind: str, rows: Sequence[Row]) -> str:
        told = {"from": self.process, "kind": kind, "rows": [[*each] for each in rows]}
        return json.dumps(told, separators=(",", ":"))


def _understood(text: str) -> Told | None:
    """None: it is of a release that tells something else."""
    try:
        fence, _, said = text.partition(" ")
        told = json.loads(said)
        rows = [tuple(each) for each in told["rows"]]
        return Told(int(told["from"]), int(fence), str(told["kind"]), [*rows])
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        log.warning("peers_not_understood", extra={"why": str(error)[:200]})
        return None
