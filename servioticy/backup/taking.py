"""Making a back-up of a platform, which goes on meanwhile.

First one moment of Postgres is fixed, and where both topics end then; a change of documents waits
for that, some milliseconds, nothing else does. Then the tables are copied as they were, after
them what the log has of updates beyond stored progress, and what durable subscriptions still have
to get. So a 202 that was answered before the beginning is in it.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from servioticy import bootstrap
from servioticy.backup.about import FORMAT, About
from servioticy.backup.archive import Told, Written, written
from servioticy.backup.framing import write_record
from servioticy.backup.wanted import Wanted, kept, wanted
from servioticy.domain import log_loss
from servioticy.domain.kept import TABLES
from servioticy.domain.log_loss import Bounds, LogLost, Present
from servioticy.errors import ServioticyError
from servioticy.messaging.admin import topic_id
from servioticy.settings import Settings
from servioticy.storage.database import Database
from servioticy.storage.log_identity import PostgresLogIdentity
from servioticy.storage.migrations import known
from servioticy.storage.roles import Role
from servioticy.storage.snapshot import PostgresSnapshot


@dataclass(frozen=True, slots=True)
class Moment:
    """What was looked at in one moment."""

    made_at: str
    log: Present
    progress: Mapping[int, int]
    """By partition of the log, the first offset that is not stored."""
    emitted: Mapping[int, Bounds]


def back_up(file: Path, settings: Settings, told: Told = lambda _done, _what: None) -> About:
    """Write a back-up and return what is in it. Raises ServioticyError, and there is no file."""
    database = Database(settings.store.dsn, role=Role.BACKUP)
    try:
        with written(file, told) as archive:
            about = _Backup(settings, database).write(archive)
            archive.end(about)
            return about
    finally:
        database.close()


class _Backup:
    def __init__(self, settings: Settings, database: Database) -> None:
        self._topics = bootstrap.topics(settings)
        self._settings = settings
        self._database = database
        self._snapshot = PostgresSnapshot(database)
        self._stretches = bootstrap.stretches(settings)
        self._log_ends = bootstrap.log_ends(settings)
        self._emitted_ends = bootstrap.emitted_ends(settings)
        self._pages = bootstrap.emitted_pages(settings)

    def write(self, archive: Written) -> About:
        """Write all parts; return what they are."""
        migrations = self._migrations()
        if not bootstrap.wait_for_topics(self._settings):
            raise ServioticyError(
                f"there is no topic {self._topics.updates}: no platform has run here yet, "
                "or its topic_prefix is another one"
            )
        log_id = topic_id(bootstrap.kafka(self._settings), self._topics.updates)
        with self._snapshot.taken(lambda: self._look(log_id)) as moment:
            for table in TABLES:
                columns = self._snapshot.columns(table)
                with archive.part(f"tables/{table.name}", tuple(columns)) as part:
                    self._snapshot.copy(table, columns, part.file)
            sequences = self._snapshot.sequences()
            still = wanted(self._snapshot, moment.emitted, self._pages.offsets_at)
            server = self._snapshot.server()
        # Postgres is let go: nothing is kept for us there any more.
        self._write_log(archive, moment)
        self._write_emitted(archive, moment, still)
        return About(
            FORMAT,
            moment.made_at,
            metadata.version("servioticy"),
            server,
            moment.log.topic,
            moment.log.topic_id,
            migrations,
            dict(moment.progress),
            sequences,
            tuple(archive.parts),
        )

    def _migrations(self) -> dict[str, str]:
        """Return the files that made the schema. Raises ServioticyError for another schema."""
        ours = known()
        if self._snapshot.migrations() != ours:
            raise ServioticyError(
                "the schema of this database is not that of this release: run `servioticy "
                "migrate` first, or back it up with the release that runs"
            )
        return ours

    def _look(self, log_id: str) -> Moment:
        """Look at the log in the moment of the snapshot. Raises LogLost."""
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        stored = PostgresLogIdentity(self._database).stored()
        present = Present(self._topics.updates, log_id, self._log_ends.all_bounds())
        if found := log_loss.losses(stored, present):
            raise LogLost(log_loss.explained(stored, present, found))
        progress = {
            partition: stored.progress.get(partition, bounds.first)
            for partition, bounds in present.bounds.items()
        }
        return Moment(now, present, progress, self._emitted_ends.all_bounds())

    def _write_log(self, archive: Written, moment: Moment) -> None:
        """Write what is accepted and not stored."""
        for partition, bounds in moment.log.bounds.items():
            with archive.part(f"log/updates-{partition}") as part:
                start = moment.progress[partition]
                read = self._stretches.read(moment.log.topic, partition, start, bounds.end)
                for record in read:
                    write_record(record, part.file)
                    part.count += 1

    def _write_emitted(self, archive: Written, moment: Moment, still: Wanted) -> None:
        """Write what durable subscriptions still have to get."""
        for partition, bounds in moment.emitted.items():
            stored = moment.progress.get(partition, 0)
            with archive.part(f"log/emitted-{partition}") as part:
                start = max(bounds.first, still.start[partition])
                topic = self._topics.emitted
                for record in self._stretches.read(topic, partition, start, bounds.end):
                    found = kept(record, stored) if still.has(partition, record) else None
                    if found is not None:
                        write_record(found, part.file)
                        part.count += 1
