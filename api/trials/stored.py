"""Reads what is played: the last updates of what a change reads, and what was there before."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

from api.stepping.step import Step
from api.trials.trial import INPUT_BYTES, STREAMS, Found, Trial, Update
from api.trials.version import Version
from servioticy.domain.access import Right
from servioticy.domain.documents.updates import MAX_TIMESTAMP
from servioticy.domain.model import LastUpdate, StreamKey, StreamRef, Timestamp
from servioticy.ports.history import History
from servioticy.ports.statements import Statements
from servioticy.refusals import Refused

AT_ONCE = 16
"""Documents fetched together, of a megabyte each at worst."""
MOST_READ = 1_000
"""Updates of what wakes others only: read beside those that are played."""
LOOKED_AT_BYTES = 4 * INPUT_BYTES
"""Of all that is read to find the last updates of many streams, as few of them are played."""

R = TypeVar("R")
Reading: TypeAlias = Generator[Step, None, R]
"""After each question to the store others may have their turn."""
ONE = Step(b"")


class Stored:
    """What Postgres has for trials, as far as the caller may read it."""

    def __init__(self, history: History, last_updates: Statements, trials: Statements) -> None:
        self._history = history
        self._last_updates = last_updates
        self._trials = trials

    def found(self, trial: Trial, versions: Iterable[Version]) -> Reading[Found]:
        """Return what is to be played. Raises Refused where it would be too much."""
        versions = list(versions)
        triggers, reads, concerned = (
            frozenset[StreamRef]().union(*some)
            for some in (
                [each.triggers for each in versions],
                [each.reads for each in versions],
                [each.results for each in versions],
            )
        )
        if len(reads | concerned) > STREAMS:
            count = len(reads | concerned)
            raise Refused(f"This concerns {count} streams, and a trial looks at {STREAMS} at most")
        if not trial.last or not triggers:
            return Found([], {}, [], complete=True)
        keys = self._readable(trial, sorted(reads | concerned))
        newest = self._newest(keys)
        last = _Last(self._history, trial.last)
        played = yield from last.of({ref: keys[ref] for ref in triggers & newest.keys()}, newest)
        if not played:
            return Found([], {}, sorted(reads - keys.keys()), complete=True)
        since = played[0].timestamp
        read = {ref: keys[ref] for ref in reads - triggers if newest.get(ref, -1) >= since}
        beside, all_beside = yield from self._since(read, since)
        updates = sorted([*played, *beside], key=lambda each: (each.timestamp, each.played))
        tied = triggers - {each.stream for each in played if each.timestamp == since}
        lasts = yield from self._before({r: k for r, k in keys.items() if r not in tied}, since)
        lasts |= yield from self._before({r: keys[r] for r in tied & keys.keys()}, since + 1)
        into_windows = frozenset[StreamRef]().union(*[each.into_windows for each in versions])
        are_all = len(played) < trial.last and last.complete and not lasts.keys() & reads
        return Found(
            [*_first(lasts, into_windows), *updates],
            lasts,
            sorted(reads - keys.keys()),
            complete=last.complete and all_beside,
            since=None if are_all else since,
            missed=last.missed if all_beside else last.missed | read.keys(),
        )

    def _readable(self, trial: Trial, wanted: Sequence[StreamRef]) -> dict[StreamRef, StreamKey]:
        """Return those that exist, and that the caller may read with this token."""
        reaches = trial.scope.reaches
        named = [each for each in wanted if reaches(*each, Right.READ)]
        rows = self._last_updates.rows(
            "readable",
            tenant=trial.caller,
            service_objects=[each.service_object for each in named],
            streams=[each.stream for each in named],
        )
        return {
            StreamRef(id_, stream): StreamKey(tenant, stream_id)
            for id_, stream, tenant, _granted, _version, _partition, stream_id in rows
        }

    def _newest(self, keys: Mapping[StreamRef, StreamKey]) -> dict[StreamRef, Timestamp]:
        """Return the newest timestamp of each that has updates."""
        names = {key: ref for ref, key in keys.items()}
        rows = self._trials.rows("newest", **_values(keys.values()))
        return {names[StreamKey(tenant, id_)]: at for tenant, id_, at in rows}

    def _since(
        self, keys: Mapping[StreamRef, StreamKey], since: Timestamp
    ) -> Reading[tuple[list[Update], bool]]:
        """Return the updates of these from then on, and whether those are all."""
        found: list[Update] = []
        size = 0
        for ref, key in sorted(keys.items()):
            rows, room = MOST_READ - len(found), INPUT_BYTES - size
            if rows <= 0 or room <= 0:
                return found, False
            page = self._history.page(key, (since, MAX_TIMESTAMP), rows, room)
            found += [Update(ref, each.timestamp, each.document, played=False) for each in page]
            size += sum(len(each.document) for each in page)
            yield ONE
        return found, True

    def _before(
        self, keys: Mapping[StreamRef, StreamKey], since: Timestamp
    ) -> Reading[dict[StreamRef, LastUpdate]]:
        """Return what was the last update of each before then. Raises Refused."""
        found: dict[StreamRef, LastUpdate] = {}
        size = 0
        names = {key: ref for ref, key in keys.items()}
        every = sorted(names)
        for first in range(0, len(every), AT_ONCE):
            values = _values(every[first : first + AT_ONCE])
            for tenant, id_, at, text in self._trials.rows("before", since=since, **values):
                document = text.encode()
                found[names[StreamKey(tenant, id_)]] = LastUpdate(at, document)
                size += len(document)
            if size > INPUT_BYTES:
                raise Refused(
                    f"What this reads is larger than the {INPUT_BYTES >> 20} MiB that a trial "
                    "looks at"
                )
            yield ONE
        return found


def _first(
    lasts: Mapping[StreamRef, LastUpdate], into_windows: Collection[StreamRef]
) -> list[Update]:
    """Return what windows are told of first: the last updates of what they read."""
    found = [
        Update(ref, each.timestamp, each.document, played=False, is_before=True)
        for ref, each in lasts.items()
        if ref in into_windows
    ]
    return sorted(found, key=lambda each: (each.timestamp, each.stream))


class _Values(NamedTuple):
    tenants: list[int]
    stream_ids: list[int]


def _values(keys: Iterable[StreamKey]) -> dict[str, list[int]]:
    every = list(keys)
    values = _Values([each.tenant for each in every], [each.stream_id for each in every])
    return values._asdict()


class _Last:
    """Finds the newest updates of some streams together."""

    def __init__(self, history: History, most: int) -> None:
        self._history = history
        self._most = most
        self.complete = True
        """whether no update was left out for its size, or that of others"""
        self.missed: frozenset[StreamRef] = frozenset()
        """streams that were not asked, though their updates may be among the newest"""

    def of(
        self, keys: Mapping[StreamRef, StreamKey], newest: Mapping[StreamRef, Timestamp]
    ) -> Reading[list[Update]]:
        """Return them, oldest first.

        Streams are asked in the order of their newest updates: as soon as that of the next one
        is older than all that are found, no other has any of them.
        """
        found: list[Update] = []
        left = LOOKED_AT_BYTES
        every = sorted(keys, key=lambda each: (-newest[each], each))
        for number, ref in enumerate(every):
            since = found[-1].timestamp if len(found) == self._most else 0
            if newest[ref] < since:
                break
            if left <= 0:
                self.complete = False
                self.missed = frozenset(every[number:])
                break
            span = since, MAX_TIMESTAMP
            page = self._history.page(keys[ref], span, self._most, INPUT_BYTES, newest_first=True)
            found += [Update(ref, each.timestamp, each.document, played=True) for each in page]
            found.sort(key=lambda each: (-each.timestamp, each.stream))
            found = self._that_fit(found[: self._most])
            left -= sum(len(each.document) for each in page)
            yield ONE
        return found[::-1]

    def _that_fit(self, newest_first: list[Update]) -> list[Update]:
        size = 0
        for number, each in enumerate(newest_first):
            size += len(each.document)
            if size > INPUT_BYTES and number:
                self.complete = False
                self._most = number
                return newest_first[:number]
        return newest_first
