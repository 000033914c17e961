"""The oracle of what changes in the log: definitions, erasures, deletions and grants."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import NamedTuple

from oracle import Object, Oracle, Ref

from servioticy.domain.records import (
    DefinitionRecord,
    DeletionRecord,
    ErasureRecord,
    GrantRecord,
    RevocationRecord,
)

CONTROL = DefinitionRecord | DeletionRecord | ErasureRecord | GrantRecord | RevocationRecord


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


class ChangingOracle(Oracle):
    """The serial law with definitions that change, at their place among the updates."""

    def __init__(self) -> None:
        super().__init__([])
        self.declared: list[Object] = []
        self.given: dict[str, Given] = {}
        self.version: dict[str, int] = {}
        self.made_by: dict[tuple[Ref, int], int] = {}
        self.dead = 0
        self.emitted_for_good: set[tuple[Ref, int, int]] = set()

    def take(self, origin: Ref, timestamp: int, value: int) -> None:
        if any(origin[1] in self._names(each) for each in self.objects if each.id == origin[0]):
            super().take(origin, timestamp, value)
        else:
            self.dead += 1

    def _copy(self) -> ChangingOracle:
        other = super()._copy()
        other.made_by = dict(self.made_by)
        return other

    def define(self, thing: Object, version: int) -> None:
        before = self._reading()
        places = [n for n, each in enumerate(self.declared) if each.id == thing.id]
        if places:
            self.declared[places[0]] = thing
        else:
            self.declared.append(thing)
        self.version[thing.id] = version
        self._changed(before, thing.id)

    def grant(self, given: Given) -> None:
        self.given[given.id] = given
        self._changed({}, given.owner)

    def revoke(self, id_: str) -> None:
        before = self._reading()
        given = self.given.pop(id_)
        self._changed(before, given.owner)

    def _changed(self, before: dict[Ref, set[Ref]], id_: str) -> None:
        """Leave out of groups what may not be read; whoever reads less of this is told."""
        after = self._reading()
        alike = {each.id: each for each in self.objects if each.id != id_}
        for owner in self.declared:
            for each in owner.composites if owner.id in alike else ():
                reader = (owner.id, each.name)
                lost = before.get(reader, set()) - after[reader]
                if any(ref[0] == id_ for ref in lost):
                    self.verdicts[reader, "revoked"] += 1
        self.objects = [
            replace(
                each,
                groups={
                    name: tuple(ref for ref in refs if self._may(each.tenant, ref))
                    for name, refs in each.groups.items()
                },
            )
            for each in self.declared
        ]

    def _reading(self) -> dict[Ref, set[Ref]]:
        """What each composite may read of others' objects, by its groups."""
        return {
            (owner.id, each.name): {
                ref
                for name in each.reads
                for ref in owner.groups.get(name, ())
                if self._may(owner.tenant, ref)
            }
            for owner in self.declared
            for each in owner.composites
        }

    def _may(self, tenant: int, ref: Ref) -> bool:
        found = [each for each in self.declared if each.id == ref[0]]
        if not found:
            return True
        return (
            found[0].tenant == tenant
            or getattr(found[0], "public", False)
            or any(
                each.owner == ref[0]
                and each.stream in (None, ref[1])
                and each.tenant in (None, tenant)
                for each in self.given.values()
            )
        )

    def erase(self, ref: Ref) -> None:
        self.last.pop(ref, None)
        for key in [each for each in self.stored if each[0] == ref]:
            self.emitted_for_good.add((ref, key[1], self.stored.pop(key)))
            del self.made_by[key]

    def delete(self, id_: str) -> None:
        """Composites of others that could read it are told; of its own tenant's none is."""
        before = self._reading()
        (gone,) = [each for each in self.declared if each.id == id_]
        for owner in self.declared:
            for each in owner.composites if owner.tenant != gone.tenant else ():
                reader = (owner.id, each.name)
                if any(ref[0] == id_ for ref in before[reader]):
                    self.verdicts[reader, "revoked"] += 1
        self.declared = [each for each in self.declared if each.id != id_]
        self.given = {each.id: each for each in self.given.values() if each.owner != id_}
        self._changed({}, id_)
        for ref in {ref for ref, _ in self.stored if ref[0] == id_}:
            self.erase(ref)
        self.verdicts = Counter({k: n for k, n in self.verdicts.items() if k[0][0] != id_})

    def _store(self, ref: Ref, update: tuple[int, int]) -> None:
        super()._store(ref, update)
        self.made_by[ref, update[0]] = self.version[ref[0]]

    @staticmethod
    def _names(owner: Object) -> list[str]:
        return Oracle._names(owner)
