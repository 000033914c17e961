"""What is stored of an update's tree: what was made at a timestamp, and how computations ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import orjson

from servioticy.domain.model import StreamKey, StreamRef, Timestamp
from servioticy.ports.statements import Statements

UPDATE_BYTES = 4_096
"""A longer update is told by its size alone."""
ANSWER_BYTES = 1_048_576
"""Of all updates of a trace; what comes beyond is told by its size, too."""

At = tuple[StreamRef, Timestamp]


class Made(NamedTuple):
    """An update that is stored."""

    version: int
    size: int
    """in bytes"""
    channels: Mapping[str, Any] | None
    """None where it is too long to be told"""
    partition: int
    offset: int
    """of the record of the log that it was made from"""
    stored_at: int | None
    """ms since 1970; None where the server does not keep that, or not any more"""


class Noted(NamedTuple):
    """The last computation of a composite that ended in some way."""

    verdict: str
    last: Mapping[str, Any]
    """trigger, timestamp, version, message, inputs; an old one may have fewer"""

    def is_of(self, trigger: StreamRef, timestamp: Timestamp) -> bool:
        """Tell whether it was this update that made it compute."""
        return (self.last.get("trigger"), self.last.get("timestamp")) == (str(trigger), timestamp)


class TracedStore:
    """What Postgres has of streams that the caller may read; others have nothing."""

    def __init__(
        self,
        caller: int,
        reaches: Callable[[StreamRef], bool],
        last_updates: Statements,
        traces: Statements,
    ) -> None:
        """`reaches` says of a stream whether the caller's token is for it."""
        self._caller = caller
        self._reaches = reaches
        self._last_updates = last_updates
        self._traces = traces
        self._keys: dict[StreamRef, StreamKey | None] = {}
        self._left = ANSWER_BYTES

    def can_read(self, streams: Iterable[StreamRef]) -> set[StreamRef]:
        """Return those that exist, and that the caller may read with this token."""
        found = list(streams)
        self._learn(found)
        return {each for each in found if self._keys[each] is not None}

    def made(self, wanted: Iterable[At]) -> dict[At, Made]:
        """Return those of the updates that are stored."""
        names, values = self._asked(wanted)
        found = {}
        for stream_id, at, version, size, document, *when in self._traces.rows(
            "at", **values, bytes=UPDATE_BYTES
        ):
            shown = None
            if document is not None and size <= self._left:
                shown = orjson.loads(document)["channels"]
                self._left -= size
            found[names[stream_id], at] = Made(version, size, shown, *when)
        return found

    def newest_until(self, wanted: Iterable[At]) -> dict[At, Timestamp]:
        """Return the newest timestamp of each stream up to that one, where it has any."""
        names, values = self._asked(wanted)
        rows = self._traces.rows("until", **values)
        return {(names[stream_id], until): at for stream_id, until, at in rows}

    def noted(self, composites: Iterable[StreamRef]) -> dict[StreamRef, list[Noted]]:
        """Return how computations of those of the caller's own ended: the last of each kind."""
        found = list(composites)
        self._learn(found)
        names = {
            key.stream_id: ref
            for ref in found
            if (key := self._keys[ref]) is not None and key.tenant == self._caller
        }
        told: dict[StreamRef, list[Noted]] = {ref: [] for ref in names.values()}
        rows = self._traces.rows("verdicts", tenant=self._caller, stream_ids=list(names))
        for stream_id, verdict, last in rows:
            told[names[stream_id]].append(Noted(verdict, orjson.loads(last)))
        return told

    def _asked(self, wanted: Iterable[At]) -> tuple[dict[int, StreamRef], dict[str, list[int]]]:
        """Return the streams by their numbers in the store, and what a statement is told."""
        found = list(wanted)
        self._learn([ref for ref, _ in found])
        pairs = [(key, at) for ref, at in found if (key := self._keys[ref]) is not None]
        names = {key.stream_id: ref for ref, _ in found if (key := self._keys[ref]) is not None}
        return names, {
            "tenants": [key.tenant for key, _ in pairs],
            "stream_ids": [key.stream_id for key, _ in pairs],
            "timestamps": [at for _, at in pairs],
        }

    def _learn(self, streams: Iterable[StreamRef]) -> None:
        wanted = [each for each in dict.fromkeys(streams) if each not in self._keys]
        self._keys |= dict.fromkeys(wanted)
        named = [each for each in wanted if self._reaches(each)]
        if not named:
            return
        rows = self._last_updates.rows(
            "readable",
            tenant=self._caller,
            service_objects=[each.service_object for each in named],
            streams=[each.stream for each in named],
        )
        for id_, stream, tenant, _granted, _version, _partition, stream_id in rows:
            self._keys[StreamRef(id_, stream)] = StreamKey(tenant, stream_id)
