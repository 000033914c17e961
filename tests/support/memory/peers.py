"""The Peers in memory: what is told is heard at the next call."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from servioticy.errors import Unavailable
from servioticy.ports.peers import COME, Row, Told


class Company:
    """What several processes tell each other."""

    def __init__(self) -> None:
        self.fences = itertools.count(1)
        self.there: list[MemoryPeers] = []
        self.is_away = False


class MemoryPeers:
    """That of one process."""

    def __init__(self, company: Company, process: int) -> None:
        self.process = process
        self._company = company
        self._told: list[Told] = []

    def heard(self, seconds: float) -> list[Told] | None:
        self._ask()
        if self not in self._company.there:
            self._company.there.append(self)
            self.tell(COME, ())
            return None
        told, self._told = self._told, []
        return told

    def others(self) -> frozenset[int]:
        self._ask()
        return frozenset(each.process for each in self._company.there) - {self.process}

    def tell(self, kind: str, rows: Sequence[Row]) -> int:
        self._ask()
        fence = next(self._company.fences)
        for each in self._company.there:
            if each is not self:
                each._told.append(Told(self.process, fence, kind, [tuple(row) for row in rows]))
        return fence

    def die(self) -> None:
        """Hear nothing any more, and be there no more."""
        self._told.clear()
        if self in self._company.there:
            self._company.there.remove(self)

    def _ask(self) -> None:
        if self._company.is_away:
            self.die()
            raise Unavailable("Postgres is away")
