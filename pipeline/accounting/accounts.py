"""What streams have used of the platform, counted batch by batch and stored now and then.

What a worker has not stored when it is killed is lost, in favour of who would pay: this is a
measure, not a promise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from pipeline.accounting.splitting import add, named, split, sum_of, wakers
from pipeline.growth import KeptEntry, NewRow, Verdict
from servioticy.domain.known_streams import KnownStream, revision_in
from servioticy.domain.model import StreamRef
from servioticy.domain.verdicts import EMITTED
from servioticy.ports.accounts import UNNAMED, Use, UseKey

MANY = 100_000
"""Entries that are added later, not as soon as they come."""

NOTHING: Mapping[int, int] = MappingProxyType({})


class Accounts:
    """Counts what is stored and computed of each stream since it was last settled."""

    def __init__(self) -> None:
        self._rows: dict[KnownStream, list[int]] = {}
        """Updates from outside, rows, bytes, and bytes that they have taken the place of."""
        self._computations: defaultdict[UseKey, dict[str, int]] = defaultdict(dict)
        """By tenant, stream and which stream of whom woke it: how many ended how."""
        self._others: list[Accounts] = []
        """What is to be added."""

    def note(
        self,
        rows: Iterable[NewRow],
        endings: Iterable[Verdict],
        replaced: Mapping[int, int] = NOTHING,
        gone: Iterable[NewRow] = (),
    ) -> None:
        """Note what a batch has stored, replaced and removed, and how its computations ended."""
        counted, left = self._rows, dict(replaced)
        for stream, _timestamp, document, _key, position, path in rows:
            account = counted.get(stream)
            if account is None:
                account = counted[stream] = [0, 0, 0, 0]
            if not position:
                account[0] += 1
            account[1] += 1
            revision = revision_in(stream, document, path)
            if revision is None or revision.is_row:
                account[2] += len(document)
            if left:
                account[3] += left.pop(stream.stream_id, 0)
        for stream, *_ in gone:
            counted.setdefault(stream, [0, 0, 0, 0])[3] += left.pop(stream.stream_id, 0)
        computations = self._computations
        for composite, kind, trigger, _timestamp, _message, _inputs, times in endings:
            own = trigger.tenant == composite.tenant
            source = UNNAMED if own else StreamRef(*trigger.ref)  # whichever input it is here
            ended = computations[composite.tenant, composite.ref, trigger.tenant, source]
            ended[kind] = ended.get(kind, 0) + times

    def note_kept(self, kept: Iterable[KeptEntry]) -> None:
        """Note the bytes that composites keep otherwise than before."""
        for stream, _key, _value, _due, grows in kept:
            account = self._rows.setdefault(stream, [0, 0, 0, 0])
            account[2 if grows > 0 else 3] += abs(grows)

    def add(self, other: Accounts) -> None:
        """Note all that the other has counted, which counts no more; mostly that takes no time."""
        self._others.append(other)
        if sum(len(each._rows) + len(each._computations) for each in self._others) >= MANY:
            self._add_others()

    def take(self) -> Accounts:
        """Return all that has been counted, and count from nothing again."""
        taken = Accounts()
        taken._rows, self._rows = self._rows, taken._rows
        taken._computations, self._computations = self._computations, taken._computations
        taken._others, self._others = self._others, taken._others
        return taken

    def add_to(self, uses: dict[UseKey, Use]) -> None:
        """Add what has been counted to what is to be stored."""
        self._add_others()
        computations = named(self._computations)
        for key, ended in computations.items():
            before = uses.get(key) or Use(*key)
            uses[key] = before._replace(computations=sum_of(before.computations, ended))
        woken = wakers(computations.items(), frozenset({EMITTED}))
        # Known anew meanwhile, a stream is here twice.
        stored: dict[tuple[int, StreamRef], list[int]] = {}
        for stream, counts in self._rows.items():
            before_it = stored.get((stream.tenant, stream.ref), (0, 0, 0, 0))
            stored[stream.tenant, stream.ref] = _both(before_it, counts)
        for (tenant, ref), (updates, rows, size, replaced) in stored.items():
            of_it, left, left_bytes = woken.get((tenant, ref), {}), rows, size
            # Each computation that emitted is a row.
            for key, part in split(size, of_it, rows):
                add(uses, key, rows=of_it[key], bytes=part)
                left, left_bytes = left - of_it[key], left_bytes - part
            if left or replaced:
                own = tenant, ref, tenant, UNNAMED
                add(uses, own, updates=updates, rows=left, bytes=left_bytes, replaced=replaced)

    def _add_others(self) -> None:
        others, self._others = self._others, []
        for other in others:
            other._add_others()
            for stream, counts in other._rows.items():
                self._rows[stream] = _both(self._rows.get(stream, (0, 0, 0, 0)), counts)
            for key, ended in other._computations.items():
                self._computations[key] = dict(sum_of(self._computations[key], ended))


def _both(counts: Iterable[int], more: Iterable[int]) -> list[int]:
    return [sum(both) for both in zip(counts, more, strict=True)]
