"""Who reads what somebody is about to change or delete: one's own by name, others by number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import orjson

from api.services import Services
from ingest.hints import MOST_NAMED, short
from servioticy.domain.model import Definition, ServiceObjectKey, Stream
from servioticy.ports.service_objects import CurrentVersion

MOST_READERS = 1_000
"""That are counted; a public stream may have any number."""


class _Readers(NamedTuple):
    own: list[str]
    others: int
    complete: bool

    def __str__(self) -> str:
        told = _listed(self.own)
        if self.others:
            plural = "s" if self.others > 1 else ""
            told.append(f"{self.others} Service Object{plural} of other tenants")
        if not self.complete:
            told.append("more")
        return " and ".join(told)


def of_deletion(key: ServiceObjectKey, found: CurrentVersion, services: Services) -> list[str]:
    """Return what to tell whoever deletes this, before it is gone."""
    readers = _readers(key, orjson.loads(found.document)["streams"], services)
    if not (readers.own or readers.others):
        return []
    return [f"it was read by {readers}: their groups go on without it"]


def of_change(
    before: Definition, after: Definition, key: ServiceObjectKey, services: Services
) -> list[str]:
    """Return which channels have another type now, or are gone, and who reads their streams."""
    told = []
    for stream in before.streams:
        now = after.stream(stream.ref.stream)
        changed = list(_changed(stream, now)) if now is not None else []
        if not changed:
            continue
        within = [
            f"stream {short(each.ref.stream)} of this Service Object"
            for each in after.streams
            if each.composite is not None
            and each.ref != stream.ref
            and any(stream.ref in source.members for source in each.composite.inputs)
        ]
        readers = _readers(key, [stream.ref.stream], services)
        if within or readers.own or readers.others:
            who = " and ".join([*_listed(within), *filter(None, [str(readers)])])
            name = short(stream.ref.stream)
            told.append(f"of stream {name} {' and '.join(_listed(changed))}; it is read by {who}")
    return told


def _readers(key: ServiceObjectKey, streams: Iterable[str], services: Services) -> _Readers:
    found = services.ports.graph.readers(key.id, streams, first=key.tenant, most=MOST_READERS + 1)
    own = dict.fromkeys(each.id for each in found if each.tenant == key.tenant)
    others = {each.id for each in found if each.tenant != key.tenant}
    return _Readers([*own], len(others), len(found) <= MOST_READERS)


def _changed(stream: Stream, now: Stream) -> Iterator[str]:
    for channel in stream.channels:
        there = now.channel(channel.name)
        if there is None:
            yield f"channel {short(channel.name)} is gone"
        elif there.type != channel.type:
            yield f"channel {short(channel.name)} was {channel.type} and is {there.type} now"


def _listed(words: list[str]) -> list[str]:
    """Return the first ones, and how many more there are."""
    more = [f"{len(words) - MOST_NAMED} more"] if len(words) > MOST_NAMED else []
    return words[:MOST_NAMED] + more
