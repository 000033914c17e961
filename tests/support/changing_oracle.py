"""The oracle of what changes in the log: definitions, erasures, deletions, grants, and inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from oracle import Limits, Object, Oracle, Ref, Update

EXTRA = "n"
"""A stream that some versions of an object have and others lack; nobody else reads it."""


@dataclass(frozen=True)
class Shown(Object):
    """An object that may be public."""

    public: bool = False


class Given(NamedTuple):
    """A grant, in the words of the oracle."""

    id: str
    owner: str
    stream: str | None
    tenant: int | None


class Crash(BaseException):
    """The worker is gone."""


@dataclass
class Input:
    """What an object knows of another tenant's stream that a group of it names."""

    is_open: bool
    since: int = 0
    """the change by which it is named"""
    last: Update | None = None
    fed_in: set[int] = field(default_factory=set)
    """partitions in which what comes is for it"""
    awaited: set[int] = field(default_factory=set)
    """partitions that still send on what came there before it moved"""
    told: dict[int, int] = field(default_factory=dict)
    """from each partition of the provider: where the last begin or end was said"""
    left_told: dict[int, int] = field(default_factory=dict)
    """the same of what is sent on, while that is awaited"""


def outside(ref: Ref, reader: str) -> Ref:
    """Return a stream of another tenant as this object knows it."""
    return (*ref[:2], reader)


class ChangingOracle(Oracle):
    """The serial law with definitions that change, at their place among the updates.

    It knows the objects of all tenants, each of which wakes its own tenant's.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        super().__init__([], limits)
        self.declared: dict[str, Shown] = {}
        self.sequences: dict[str, int] = {}
        self.given: dict[str, Given] = {}
        self.version: dict[str, int] = {}
        self.made_by: dict[tuple[Ref, int], int] = {}
        self.inputs: dict[tuple[str, Ref], Input] = {}

    def _copy(self) -> ChangingOracle:
        other = super()._copy()
        other.made_by = dict(self.made_by)
        other.inputs = {key: copy(each) for key, each in self.inputs.items()}
        return other

    # Whom an update wakes.

    def _subscribers(self, source: Ref):
        """Of its tenant; an input from outside wakes composites of the one that knows it."""
        for found in super()._subscribers(source):
            if len(source) == 3 or found[0].tenant == self.declared[source[0]].tenant:
                yield found

    def _arrive(self, source: Ref, update: Update) -> None:
        if len(source) == 2:
            super()._arrive(source, update)
        else:
            self._know(source, update)

    def _know(self, ref: Ref, update: Update) -> None:
        super()._know(ref, update)
        if len(ref) == 3:
            self.inputs[ref[2], ref[:2]].last = self.last[ref]

    def _store(self, ref: Ref, update: Update) -> None:
        super()._store(ref, update)
        self.made_by[ref, update[0]] = self.version[ref[0]]

    # What changes it.

    def define(self, thing: Shown, version: int, snapshot: dict[Ref, Input], change: int) -> None:
        """`snapshot`: what is known at first of inputs that it has not named, or kept, before."""
        before = self.declared.get(thing.id)
        named = self._named_outside(thing)
        kept_before = kept(before) if before else set()
        self.declared[thing.id] = thing
        self.version[thing.id] = version
        for reader, ref in [key for key in self.inputs if key[0] == thing.id]:
            if ref not in named:
                del self.inputs[reader, ref]
        for ref in named:
            known = self.inputs.get((thing.id, ref))
            if known is None:
                found = snapshot[ref]
                self.inputs[thing.id, ref] = Input(found.is_open, change, found.last)
            elif ref in kept(thing) - kept_before:
                known.last = snapshot[ref].last if known.is_open else None
        self.rewire()

    def _named_outside(self, thing: Shown) -> list[Ref]:
        named = [ref for refs in thing.groups.values() for ref in refs]
        return [
            ref for ref in dict.fromkeys(named) if self.owner_of(ref) not in (None, thing.tenant)
        ]

    def owner_of(self, _ref: Ref) -> int | None:
        """Whose the stream is, whether its object is in force or not; None: nobody knows it."""
        raise NotImplementedError

    def rewire(self) -> None:
        """Leave out of groups what may not be read; call the rest of others as it is known."""
        ordered = sorted(self.declared.values(), key=lambda each: self.sequences[each.id])
        self.objects = [
            replace(
                each,
                groups={
                    name: tuple(n for ref in refs if (n := self._called(each, ref)) is not None)
                    for name, refs in each.groups.items()
                },
            )
            for each in ordered
        ]
        self.last = {ref: update for ref, update in self.last.items() if len(ref) == 2}
        for (reader, ref), known in self.inputs.items():
            if known.is_open and known.last is not None:
                self.last[outside(ref, reader)] = known.last

    def _called(self, reader: Shown, ref: Ref) -> Ref | None:
        known = self.inputs.get((reader.id, ref))
        if known is None:
            return ref
        return outside(ref, reader.id) if known.is_open else None

    def close(self, reader: str, refs: Iterable[Ref]) -> None:
        """Its composites may not read these any more, and are told, each once."""
        lost = {ref for ref in refs if self.inputs[reader, ref].is_open}
        for ref in refs:
            known = self.inputs[reader, ref]
            known.is_open, known.last = False, None
        thing = self.declared[reader]
        for each in thing.composites:
            if any(lost & set(thing.groups.get(name, ())) for name in each.reads):
                self.verdicts[(reader, each.name), "revoked"] += 1
        self.rewire()

    def may(self, tenant: int, ref: Ref) -> bool:
        """Whether composites of the tenant may read it."""
        found = self.declared.get(ref[0])
        return found is not None and (
            found.tenant == tenant
            or found.public
            or any(
                each.owner == ref[0]
                and each.stream in (None, ref[1])
                and each.tenant in (None, tenant)
                for each in self.given.values()
            )
        )

    def erase(self, ref: Ref) -> None:
        self.last.pop(ref, None)
        self.uses.pop(ref, None)
        for key in [each for each in self.stored if each[0] == ref]:
            del self.stored[key], self.made_by[key]

    def delete(self, id_: str) -> None:
        del self.declared[id_]
        self.given = {each.id: each for each in self.given.values() if each.owner != id_}
        self.inputs = {key: each for key, each in self.inputs.items() if key[0] != id_}
        for ref in {ref for ref, _ in self.stored if ref[0] == id_}:
            self.erase(ref)
        self.verdicts = Counter({k: n for k, n in self.verdicts.items() if k[0][0] != id_})
        self.rewire()


def kept(thing: Shown) -> set[Ref]:
    """What some composite of it reads while something else has triggered it."""
    found: set[Ref] = set()
    for each in thing.composites:
        read = [n for n in each.reads if thing.members(n) != ((thing.id, each.name),)]
        if len(read) > 1:
            found |= {ref for name in read for ref in thing.groups.get(name, ())}
    return found
