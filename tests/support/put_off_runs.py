"""Tasks one after the other over one log, put off by whim, each until it dies."""

from __future__ import annotations

import json

import msgspec
from hypothesis import strategies as st
from memory import MemoryPlatform
from oracle import Object
from serial_order import AT_ONCE, graphs

from pipeline.engine import Engine
from pipeline.sharing.fairness import Fairness
from pipeline.task import Task
from pipeline.work import Row
from sandbox import argument_names
from servioticy.domain.records import UpdateRecord

CODE = 'd0=>d0.channels.v["current-value"]'


class Crash(BaseException):
    """The worker dies here."""


class Whims:
    """Shares that say at random who is over them; at last nobody is."""

    def __init__(self, answers: list[set[int]]) -> None:
        self._answers = iter(answers)
        self.contested = True
        self.always: set[int] = set()

    def saw(self, _tenants: object) -> None:
        """It does not matter."""

    def charge(self, _seconds: object) -> None:
        """It does not matter."""

    def learn(self, _tenant: int, _each: float) -> None:
        """It does not matter."""

    def each(self, _tenant: int) -> float:
        return 0.0001

    def knows(self, _tenant: int) -> bool:
        return False

    def over(self) -> set[int]:
        return next(self._answers, self.always)

    def debts(self) -> dict[int, float]:
        return dict.fromkeys(self.over(), 0.5)


class Store:
    """The twin, noting which raw updates it has stored in which order, and dying at times."""

    def __init__(self, store, taken: list, deaths: dict[int, str]) -> None:
        self._store = store
        self._taken = taken
        self._deaths = deaths
        self._calls = 0

    def __getattr__(self, name: str):
        return getattr(self._store, name)

    def store(self, batch):
        self._calls += 1
        death = self._deaths.pop(self._calls, "")
        if death == "before":
            raise Crash
        replaced = self._store.store(batch)
        self._taken += [(each.offset) for each in batch.updates if each.position == 0]
        if death == "after":
            raise Crash
        return replaced


@st.composite
def two_tenants(draw):
    """Objects of two tenants who read nothing of each other."""
    first, first_codes = draw(graphs(cycles=True))
    second, second_codes = draw(graphs(cycles=True))
    renamed = {each.id: f"other{each.id}" for each in second}
    second = [
        Object(
            renamed[each.id],
            each.simple,
            each.composites,
            {
                name: tuple((renamed[owner], stream) for owner, stream in members)
                for name, members in each.groups.items()
            },
            tenant=1,
        )
        for each in second
    ]
    codes = first_codes | {(renamed[so], name): code for (so, name), code in second_codes.items()}
    return [*first, *second], codes


def append(platform: MemoryPlatform, history) -> None:
    for (owner, name), timestamp, value in history:
        body = {"channels": {"v": {"current-value": value}}, "lastUpdate": timestamp}
        update = msgspec.Raw(json.dumps(body, separators=(",", ":")).encode())
        platform.log.append(0, UpdateRecord(owner, name, timestamp, update))


class Runs:
    """Tasks one after the other over one log, each until it dies."""

    def __init__(
        self, platform: MemoryPlatform, evaluators, shares: Whims, deaths, most=10, **means
    ) -> None:
        self.platform, self.shares, self.deaths = platform, shares, deaths
        self.evaluators = evaluators
        self.taken: list[int] = []
        self.most, self.means = most, means
        self.task = self._new()

    def _new(self) -> Task:
        self.platform.state.claims.clear()
        store = Store(self.platform.partition_store(argument_names), self.taken, self.deaths)
        engine = Engine(self.evaluators, self.most, 10**6, **self.means, idle_seconds=AT_ONCE)
        return Task(0, store, lambda: self.platform.output(0), engine, Fairness(self.shares))

    def take(self, first: int, end: int) -> None:
        log = self.platform.state.log[0]
        while True:
            try:
                self.task.take([Row(at, log[at]) for at in range(first, end)])
                return
            except Crash:
                self.task = self._new()

    def rest(self) -> None:
        """While nothing comes: times that composites have set themselves come."""
        try:
            self.task.rest()
        except Crash:
            self.task = self._new()
            self.rest()

    def finish(self) -> None:
        """Until nothing waits; a component may need some dozens of slices until it is known."""
        end = len(self.platform.state.log[0])
        for _ in range(50 * end + 200):
            self.take(end, end)
            if not self.platform.state.put_off.keys() - self.platform.state.taken_up:
                return
        raise AssertionError(self.platform.state.put_off)


def owner(ref, objects) -> int:
    return next(each.tenant for each in objects if each.id == ref[0])
