"""Which log progress is a place in, in Postgres."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from servioticy.domain.log_loss import Loss, Stored
from servioticy.storage.database import Database
from servioticy.storage.queries import queries

ASIDE = 2**62
"""Further than any offset: there nothing is in the way."""


class PostgresLogIdentity:
    """What is kept of the log beside progress."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = queries("log")

    def stored(self) -> Stored:
        """Return which log it is, and how far it is stored."""
        topic, topic_id = self._database.row(self._sql["identity"]) or (None, None)
        return Stored(topic, topic_id, dict(self._database.rows(self._sql["progress"])))

    def note(self, topic: str, topic_id: str) -> None:
        """This is the log, unless it is known which one it is."""
        self._database.rows(self._sql["note"], {"topic": topic, "topic_id": topic_id})

    def accept(self, topic: str, topic_id: str, losses: list[Loss]) -> None:
        """Go on with this log, and keep what was lost; all or nothing."""
        with self._database.transaction():
            self._database.rows(self._sql["wait_for_workers"])
            self._database.rows(self._sql["replace"], {"topic": topic, "topic_id": topic_id})
            for each in losses:
                values = {
                    "partition": each.partition,
                    "topic_id": topic_id,
                    "stored": each.stored,
                    "first": each.bounds.first,
                    "end": each.bounds.end,
                    "next": each.next_offset,
                }
                self._database.rows(self._sql["record_loss"], values)
                if each.next_offset < each.stored:
                    self._renumber(values)
                for name in ("move_progress", "move_forwarded"):
                    self._database.rows(self._sql[name], values)

    def begin_anew(self, topic: str, topic_id: str, begins: Mapping[int, int]) -> None:
        """Go on in another log, by partition from these offsets on; nothing of it is skipped.

        What is stored is numbered from stored progress down: below zero, and out of the way.
        """
        with self._database.transaction():
            for partition in begins:
                # Of the record that comes first some trees may be stored.
                values = {"partition": partition, "stored": 0, "beyond": 1}
                for name in ("keep_unacknowledged", "forget_superseded"):
                    self._database.rows(self._sql[name], values)
            places = {"partitions": list(begins), "offsets": list(begins.values())}
            names = ("begin_anew", "begin_forwarded_anew", "begin_marks_anew", "begin_inputs_anew")
            for name in names:
                self._database.rows(self._sql[name], places)
            self._database.rows(self._sql["replace"], {"topic": topic, "topic_id": topic_id})

    def _renumber(self, values: dict[str, Any]) -> None:
        """Records that wait keep their order, before all that the log has: below zero.

        They were accepted, and are kept here whatever the log has lost; by their old offsets
        they would be taken for others. Of the record that progress stands at some trees may be
        stored.
        """
        beyond = values["stored"] + 1
        values = {**values, "beyond": beyond}
        for name in ("keep_unacknowledged", "forget_superseded", "renumber_updates"):
            self._database.rows(self._sql[name], values)
        for by in (-ASIDE, ASIDE - beyond):
            for name in ("renumber_put_off", "renumber_superseded", "renumber_crossings"):
                self._database.rows(self._sql[name], {**values, "by": by})
        for name in ("forget_marks", "forget_places"):
            self._database.rows(self._sql[name], values)
