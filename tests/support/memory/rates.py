"""The Rates in memory: what is told is heard when its time has come."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from servioticy.errors import Unavailable
from servioticy.ports.rates import LetIn


class Exchange:
    """What several processes tell each other; `delay` of what is told, by the same clock."""

    def __init__(
        self, clock: Callable[[], float] = lambda: 0.0, delay: Callable[[], float] = lambda: 0.0
    ) -> None:
        self.clock, self.delay = clock, delay
        self.there: list[MemoryRates] = []
        self.is_away = False

    def send(self, sender: MemoryRates, let_in: Sequence[LetIn]) -> None:
        at = self.clock() + self.delay()
        for each in self.there:
            if each is not sender:
                each.told.append((at, list(let_in)))


class MemoryRates:
    """That of one process."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self.told: list[tuple[float, list[LetIn]]] = []
        self.tellings = 0
        self.countings = 0

    def heard(self, seconds: float) -> list[list[LetIn]] | None:
        self._ask()
        if self not in self._exchange.there:
            self._exchange.there.append(self)
            self._exchange.send(self, ())
            return None
        now = self._exchange.clock()
        due = [let_in for at, let_in in self.told if at <= now]
        self.told = [each for each in self.told if each[0] > now]
        return due

    def tell(self, let_in: Sequence[LetIn]) -> None:
        self._ask()
        self.tellings += 1
        self._exchange.send(self, let_in)

    def processes(self) -> int:
        self._ask()
        self.countings += 1
        return len(self._exchange.there)

    def leave(self) -> None:
        self.die()

    def die(self) -> None:
        """Hear nothing any more, and be counted no more."""
        self.told.clear()
        if self in self._exchange.there:
            self._exchange.there.remove(self)

    def _ask(self) -> None:
        if self._exchange.is_away:
            self.die()
            raise Unavailable("Postgres is away")
