"""Which log progress is a place in, in Postgres."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from servioticy.domain.log_loss import Loss, Stored
from servioticy.domain.places import Numbering, Shortened, rewritten
from servioticy.storage.arrays import blobs, columns, numbers
from servioticy.storage.database import Database
from servioticy.storage.queries import queries

ASIDE = 2**62
"""Further than any offset: there nothing is in the way."""

NAMES_PLACES = (("crossed_put_off", "rewrite_put_off"), ("crossed_crossings", "rewrite_crossings"))
"""What reads the records that name places of the log, and what writes them, by table."""

AT_ONCE = 50
"""Records that are rewritten: of a megabyte each at most."""


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

    def begin_anew(
        self, topic: str, topic_id: str, begins: Mapping[int, int], numbering: Numbering
    ) -> None:
        """Go on in another log, by partition from these offsets on; nothing of it is skipped.

        What is stored is numbered from stored progress down: below zero, and out of the way. So
        will be what stored records name, by this `numbering`.
        """
        with self._database.transaction():
            self._rewrite(numbering)
            for partition in begins:
                values = {"partition": partition, "beyond": 0}
                for name in ("keep_unacknowledged", "forget_superseded"):
                    self._database.rows(self._sql[name], values)
            places = {"partitions": list(begins), "offsets": list(begins.values())}
            for name in ("begin_anew", "begin_forwarded_anew"):
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
        for name in ("renumber_marks", "renumber_places"):
            self._database.rows(self._sql[name], values)
        self._rewrite(Shortened(values["partition"], beyond))

    def _rewrite(self, numbering: Numbering) -> None:
        """Let what has come over borders and waits, and what is to be sent, name other places."""
        for crossed, rewrite in NAMES_PLACES:
            last = (-1, 0, 0, 0)
            while rows := self._database.rows(self._sql[crossed], _behind(last)):
                found = [(*key, rewritten(bytes(record), numbering)) for *key, record in rows]
                changed = [each for each in found if each[-1] is not None]
                partitions, offsets, trees, order, records = columns(changed, 5)
                values = {
                    "partitions": numbers(partitions),
                    "offsets": numbers(offsets),
                    "trees": numbers(trees),
                    "numbers": numbers(order),
                    "records": blobs(records),
                }
                self._database.rows(self._sql[rewrite], values)
                last = rows[-1][:4]


def _behind(key: tuple[int, ...]) -> dict[str, int]:
    names = ("partition", "offset", "tree", "number")
    return dict(zip(names, key, strict=True)) | {"most": AT_ONCE}
