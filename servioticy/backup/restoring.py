"""Restoring a back-up into an empty platform: its Postgres, and topics that are its log from then
on.

Postgres is filled in one transaction, which ends when the log has all that it is to have: so a
restore that is killed leaves nothing in Postgres, and in the log what is passed over, as each of
its partitions begins with a record that says whose it is.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

from servioticy import bootstrap
from servioticy.backup.about import About
from servioticy.backup.archive import Archive, Told
from servioticy.backup.framing import read_records
from servioticy.backup.numbering import NOTHING, LogNumbers, Tail, TopicNumbers, cursor
from servioticy.domain.log_loss import Bounds
from servioticy.errors import ServioticyError, Unavailable
from servioticy.messaging.admin import topic_id
from servioticy.messaging.stretches import Appender
from servioticy.settings import Settings, changed
from servioticy.storage.database import Database
from servioticy.storage.filling import NotEmpty, PostgresFilling

OURS = b"servioticy-restore"
"""The key of the record with which a restored partition begins."""


def restore(archive: Archive, settings: Settings, told: Told = lambda _done, _what: None) -> About:
    """Restore a back-up, checked as a whole before anything is written; return what it was.

    Raises ServioticyError: then nothing is restored, and it may be tried again.
    """
    archive.check(told)
    with contextlib.closing(Database(settings.store.dsn)) as database:
        _Restore(archive, settings, database, told).run()
    return archive.about


class _Restore:
    def __init__(
        self, archive: Archive, settings: Settings, database: Database, told: Told
    ) -> None:
        self._archive = archive
        self._about = archive.about
        self._settings = changed(settings, partitions=max(1, len(self._about.progress)))
        self._topics = bootstrap.topics(settings)
        self._filling = PostgresFilling(database)
        self._told = told
        self._done = archive.size

    def run(self) -> None:
        """Fill both."""
        with self._filling.begun(self._about.migrations):
            updates, emitted = self._empty_log()
            for part in self._about.parts:
                if part.name.startswith("tables/"):
                    with self._archive.part(part.name) as file:
                        self._filling.fill(part.name.removeprefix("tables/"), part.columns, file)
                    self._note(part.name, part.size)
            self._filling.count_on(self._about.sequences)
            # Before the log: what is done there knows this release's schema only.
            self._filling.bring_up_to_date()
            self._fill_log(updates, emitted)

    def _empty_log(self) -> tuple[dict[int, Bounds], dict[int, Bounds]]:
        """Make the topics and return where they are. Raises NotEmpty, ServioticyError."""
        bootstrap.make_topics(self._settings)
        bootstrap.wait_for_topics(self._settings)
        names = (self._topics.updates, self._topics.emitted)
        updates, emitted = self._bounds()
        if not len(updates) == len(emitted) == len(self._about.progress):
            raise ServioticyError(
                f"the topic {names[0]} has {len(updates)} partitions, {names[1]} {len(emitted)}, "
                f"the back-up is of {len(self._about.progress)}: delete these topics, or name "
                "another topic_prefix"
            )
        stretches = bootstrap.stretches(self._settings)
        firsts = {n: stretches.first(names[0], n, each) for n, each in updates.items()}
        of_others = [first for first in firsts.values() if first and first.key != OURS]
        begun = any(firsts.values()) and not of_others
        full = [each for each in emitted.values() if each.first < each.end]
        if of_others or (full and not begun):
            raise NotEmpty(
                f"the topics {' and '.join(names)} are not empty: a back-up is restored into an "
                "empty platform only; name another topic_prefix, or delete them"
            )
        return updates, emitted

    def _bounds(self) -> tuple[dict[int, Bounds], dict[int, Bounds]]:
        """Return where both topics begin and end now."""
        updates = bootstrap.log_ends(self._settings).all_bounds()
        return updates, bootstrap.emitted_ends(self._settings).all_bounds()

    def _fill_log(self, updates: Mapping[int, Bounds], emitted: Mapping[int, Bounds]) -> None:
        """Append what is to come, and let all that names a place in the log name the new one."""
        appender = bootstrap.appender(self._settings)
        for partition in updates:
            appender.append(self._topics.updates, partition, NOTHING, OURS)
        appender.settle()
        begins = {partition: each.end + 1 for partition, each in updates.items()}
        numbers = LogNumbers(self._about.progress, begins, self._filling.begun_trees())
        ends = self._append_emitted(appender, numbers, emitted)
        there = self._append_updates(appender, numbers, begins)
        appender.settle()
        updates_now, emitted_now = self._bounds()
        _check_ends(self._topics.updates, there, updates_now)
        _check_ends(self._topics.emitted, ends, emitted_now)
        identity = topic_id(bootstrap.kafka(self._settings), self._topics.updates)
        self._filling.begin_anew(self._topics.updates, identity, begins, numbers)

    def _append_updates(
        self, appender: Appender, numbers: LogNumbers, begins: Mapping[int, int]
    ) -> dict[int, int]:
        """Append what is accepted and not stored; return where it ends."""
        ends = dict(begins)
        forwarded = self._filling.forwarded()
        for partition, stored in self._about.progress.items():
            sources = {
                source: offset + self._about.progress.get(source, 0)
                for (target, source), offset in forwarded.items()
                if target == partition
            }
            tail = Tail(numbers, sources)
            for offset, value in self._records("updates", partition):
                # The number of each follows from its place: a gap keeps its.
                for _ in range(begins[partition] + offset - stored - ends[partition]):
                    appender.append(self._topics.updates, partition, NOTHING)
                    ends[partition] += 1
                appender.append(self._topics.updates, partition, tail.record(value))
                ends[partition] += 1
        return ends

    def _append_emitted(
        self, appender: Appender, numbers: LogNumbers, emitted: Mapping[int, Bounds]
    ) -> dict[int, int]:
        """Append what is still to be delivered, and let cursors stand there; return the ends."""
        begins = {partition: each.end for partition, each in emitted.items()}
        places: dict[int, set[int]] = {partition: set() for partition in emitted}
        for page in self._filling.cursors():
            for each in page.values():
                for partition, offset in (*each.offsets.items(), *each.before.items()):
                    places.setdefault(partition, set()).add(offset)
        topic = {partition: TopicNumbers(some) for partition, some in places.items()}
        ends = dict(begins)
        for partition in emitted:
            name = f"log/emitted-{partition}"
            with self._archive.part(name) as file:
                for offset, key, value in read_records(file):
                    topic[partition].note(offset)
                    renumbered = numbers.emitted(partition, value)
                    appender.append(self._topics.emitted, partition, renumbered, key)
                    ends[partition] += 1
            topic[partition].end()
            self._note(name, self._size(name))
        for page in self._filling.cursors():
            self._filling.store_cursors(
                {id_: cursor(each, numbers, topic, begins) for id_, each in page.items()}
            )
        return ends

    def _records(self, topic: str, partition: int) -> Iterator[tuple[int, bytes]]:
        name = f"log/{topic}-{partition}"
        with self._archive.part(name) as file:
            yield from ((offset, value) for offset, _key, value in read_records(file))
        self._note(name, self._size(name))

    def _size(self, name: str) -> int:
        part = self._about.part(name)
        return part.size if part else 0

    def _note(self, name: str, size: int) -> None:
        self._done += size
        self._told(self._done, name)


def _check_ends(topic: str, expected: Mapping[int, int], found: Mapping[int, Bounds]) -> None:
    """Raises Unavailable where others have written meanwhile, or something is missing."""
    for partition, end in expected.items():
        if found[partition].end != end:
            raise Unavailable(
                f"partition {partition} of {topic} ends at {found[partition].end}, not at {end}: "
                "somebody else writes there; stop the programs of this platform"
            )
