"""Who is begun and who is ended, whatever waits of others."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import orjson
import pytest
from waiting import until
from workflow_builders import LIMITS, a_document, an_atom

from functions import dispatcher as dispatcher_module
from functions.accounts import Accounts
from functions.dispatcher import MAX_WORKFLOWS, Dispatcher
from functions.steps import Result, Task
from servioticy.errors import Unavailable
from servioticy.ports.atoms import Atom, Begun, Queue, Waiting

INNOCENT, OTHER = 2, 1
DOCUMENT = orjson.dumps(a_document()).decode()


class Quotas:
    def resting(self) -> Collection[int]:
        return ()

    def full(self, held: Mapping[int, int]) -> Collection[int]:
        return ()

    def brimming(self, atoms: Mapping[int, int]) -> Collection[int]:
        return ()

    def silent(self) -> Collection[int]:
        """Return nobody."""
        return ()


class Store:
    """Of the innocent tenant so many versions have an atom each, of the other all are delayed.

    What is not said here is done, and nothing comes of it.
    """

    def __init__(self, innocents: int, delayed: int) -> None:
        self.read: set[int] = set()
        self.left = {Queue(INNOCENT, f"w{n}", 1, 0): an_atom(n) for n in range(innocents)}
        self._delayed = [Queue(OTHER, f"d{n}", 1, 0) for n in range(delayed)]
        self._numbers = itertools.count()

    def waiting(self, now_ms: int) -> list[Waiting]:
        ready = [Waiting(each, 1, 2, 1, now_ms) for each in list(self.left)]
        later = [Waiting(each, 1, 2, 0, now_ms + 10**6) for each in self._delayed]
        return ready + later

    def gathered(self) -> dict[int, int]:
        return {}

    def document(self, queue: Queue) -> str:
        self.read.add(queue.tenant)
        return DOCUMENT

    def elsewhere(self, *_: object) -> dict[Queue, int]:
        return {}

    def begin(self, queue: Queue, *_: object) -> Begun | None:
        taken = self.take(queue)
        return Begun(next(self._numbers), taken) if taken else None

    def take(self, queue: Queue, *_: object) -> list[Atom]:
        atom = self.left.pop(queue, None)
        return [atom] if atom else []

    def finish(self, _queue: Queue, _instance: int, ids: list[int], *_: object) -> int:
        return len(ids)

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


class Step:
    def work(self, task: Task, atoms: Sequence[Atom]) -> Result:
        return Result({each.id: () for each in atoms})


def test_however_many_versions_wait_everybody_is_served() -> None:
    """More than are remembered, of one and of another; what is only delayed is not read."""
    many = MAX_WORKFLOWS + 50
    store = Store(many, many)
    accounts = Accounts(store, store)
    dispatcher = Dispatcher(store, lambda *_: Step(), LIMITS, accounts, Quotas())

    def look() -> bool:
        dispatcher._look()
        return not store.left

    until(look)

    assert store.read == {INNOCENT}


def test_whoever_stops_waits_so_long_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a step holds up, others see again after its time."""
    monkeypatch.setattr(dispatcher_module, "END_SECONDS", 0.1)
    holds, begun = threading.Event(), threading.Event()

    class Endless(Step):
        def work(self, task: Task, atoms: Sequence[Atom]) -> Result:
            begun.set()
            holds.wait(300)
            return super().work(task, atoms)

    store = Store(1, 0)
    accounts = Accounts(store, store)
    dispatcher = Dispatcher(store, lambda *_: Endless(), LIMITS, accounts, Quotas())
    running = threading.Thread(target=dispatcher.run, daemon=True)
    running.start()
    assert begun.wait(60)
    dispatcher.stop()
    running.join(60)
    has_ended = not running.is_alive()
    holds.set()

    assert has_ended


class Reserving(Store):
    """Ten atoms wait for the first of two procedures; the second has two places reserved."""

    def __init__(self) -> None:
        super().__init__(0, 0)
        self.first, self.second = Queue(INNOCENT, "w", 1, 0), Queue(INNOCENT, "w", 1, 1)
        self.atoms = {self.first: [an_atom(n) for n in range(10)], self.second: list[Atom]()}

    def waiting(self, now_ms: int) -> list[Waiting]:
        found = {each: len(atoms) for each, atoms in self.atoms.items()}
        return [Waiting(each, n, 2 * n, n, now_ms) for each, n in found.items() if n]

    def document(self, queue: Queue) -> str:
        document = a_document("usual", "kept")
        document["procedures"]["kept"]["reserved"] = 2
        return orjson.dumps(document).decode()

    def take(self, queue: Queue, *_: object) -> list[Atom]:
        taken, self.atoms[queue] = self.atoms[queue][:1], self.atoms[queue][1:]
        return taken


def test_reserved_places_are_there_when_something_comes_for_them() -> None:
    """Of a tenant's three the first procedure has one, however much waits and however long it
    takes; who has them reserved works at once, and beside it."""
    store, holds = Reserving(), threading.Event()
    working: list[int] = []

    class Slow(Step):
        def work(self, task: Task, atoms: Sequence[Atom]) -> Result:
            working.append(task.queue.step)
            holds.wait(300)
            return super().work(task, atoms)

    accounts = Accounts(store, store)
    dispatcher = Dispatcher(store, lambda *_: Slow(), LIMITS, accounts, Quotas())
    for _ in range(3):
        dispatcher._look()
    until(lambda: working)
    before = dispatcher.running
    store.atoms[store.second] = [an_atom(n) for n in range(20, 23)]
    for _ in range(3):
        dispatcher._look()
    until(lambda: len(working) == LIMITS.of_a_tenant)
    seen, after = sorted(working), dispatcher.running
    for each in store.atoms.values():
        each.clear()
    holds.set()
    until(lambda: not dispatcher.running)

    assert (before, after, seen) == (1, 3, [0, 1, 1])


@pytest.mark.parametrize("idle_seconds", [0.0, 0.05])
def test_what_is_left_over_is_tidied_up_when_nobody_waits_for_it(idle_seconds: float) -> None:
    """Once at least in a life, however short it is, and not before what came first is done."""
    done: list[str] = []

    class Tidied(Store):
        def finish(self, *_: Any) -> int:
            done.append("atom")
            return 1

        def forget(self, _now_ms: int) -> None:
            done.append("tidied")

    store = Tidied(1, 0)
    limits = LIMITS._replace(idle_seconds=idle_seconds)
    Dispatcher(store, lambda *_: Step(), limits, Accounts(store, store), Quotas()).run()

    assert done == ["atom", "tidied"]


class Elsewhere(Store):
    """Two of the tenant's three places are held on another machine, which may give some back."""

    def __init__(self) -> None:
        super().__init__(9, 0)
        self.places = {Queue(INNOCENT, "w0", 1, 0): 2}
        self.refused = 0
        self.renewed: list[tuple[Collection[int], int]] = []

    def elsewhere(self, *_: object) -> dict[Queue, int]:
        return self.places

    def begin(self, queue: Queue, may: Any = None, *_: object) -> Begun | None:
        if not may(self.places):
            self.refused += 1
            return None
        return super().begin(queue)

    def renew(self, instances: Collection[int], ends_ms: int) -> None:
        self.renewed.append((sorted(instances), ends_ms))


def test_places_that_are_held_on_other_machines_are_no_places_here() -> None:
    store, holds = Elsewhere(), threading.Event()

    class Slow(Step):
        def work(self, task: Task, atoms: Sequence[Atom]) -> Result:
            holds.wait(300)
            return super().work(task, atoms)

    accounts = Accounts(store, store)
    dispatcher = Dispatcher(store, lambda *_: Slow(), LIMITS, accounts, Quotas(), lambda: 1.0)
    dispatcher._look()
    beside_two = dispatcher.running
    store.places = {Queue(INNOCENT, "w0", 1, 0): 1}
    dispatcher._look()
    beside_one = dispatcher.running
    dispatcher._renew(500)
    holds.set()
    until(lambda: not dispatcher.running)

    assert (beside_two, beside_one, store.refused) == (1, 2, 0)
    assert store.renewed == [([0, 1], 1_500)]


def test_who_takes_the_last_place_meanwhile_has_it() -> None:
    """It was free when we looked: whoever begins is told again, while nobody else may."""
    store = Elsewhere()
    dispatcher = Dispatcher(
        store, lambda *_: Step(), LIMITS, Accounts(store, store), Quotas(), lambda: 1.0
    )
    store.places = {Queue(INNOCENT, "w0", 1, 0): 3}
    store.elsewhere = lambda *_: {}  # type: ignore[method-assign]
    again = dispatcher._look()

    assert (dispatcher.running, store.refused) == (0, 3)
    assert again is not None


def test_what_can_be_had_before_is_had_before_and_where_the_store_is_away_later() -> None:
    """Two instances' connections, and one's own: asked of nobody, so nothing is begun."""
    asked: list[str] = []

    class Away(Store):
        is_away = True

        def warm(self) -> None:
            asked.append("instance")
            self._answer()

        def waiting(self, now_ms: int) -> list[Waiting]:
            asked.append("dispatcher")
            self._answer()
            return super().waiting(now_ms)

        def _answer(self) -> None:
            if self.is_away:
                raise Unavailable("away")

    store = Away(1, 0)
    accounts = Accounts(store, store)
    dispatcher = Dispatcher(store, lambda *_: Step(), LIMITS, accounts, Quotas())
    dispatcher.prepare()
    until(lambda: len(asked) == 3)
    before = list(store.left)
    store.is_away = False
    dispatcher.run()

    assert sorted(asked[:3]) == ["dispatcher", "instance", "instance"]
    assert (len(before), len(store.left)) == (1, 0)
