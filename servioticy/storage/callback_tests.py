"""The CallbackTests in Postgres."""

from __future__ import annotations

from servioticy.domain.model import LastUpdate, StreamRef
from servioticy.ports.callback_tests import FORGET_SECONDS, CallbackTest
from servioticy.storage.database import Database
from servioticy.storage.dead_deliveries import storable
from servioticy.storage.queries import queries


class PostgresCallbackTests:
    """The tests that are asked for."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = queries("callback_test_runs")

    def take(self, most: int, now_ms: int) -> list[CallbackTest]:
        """Return those that are to be sent now; nobody else gets them, and nobody twice."""
        values = {"most": most, "now": now_ms, "forgotten": now_ms - FORGET_SECONDS * 1000}
        return [
            CallbackTest(
                id_,
                tenant,
                subscription,
                document.encode(),
                StreamRef(name, stream),
                LastUpdate(asked_at, update.encode()),
            )
            for id_, tenant, subscription, document, name, stream, asked_at, update in (
                self._database.rows(self._sql["take"], values)
            )
        ]

    def answered(self, test: CallbackTest, status: int, reason: str, milliseconds: int) -> None:
        """Note what came of it; a newer test in its place stays as it is."""
        values = {
            "id": test.id,
            "tenant": test.tenant,
            "status": status,
            "reason": storable(reason),
            "milliseconds": milliseconds,
        }
        self._database.rows(self._sql["answered"], values)
