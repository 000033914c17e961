"""Updates of a stream become atoms: acknowledged when they are stored, and not before."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from types import SimpleNamespace
from typing import Any

import orjson
from workflow_builders import a_document

from delivery import workflows as module
from delivery.feeds.deliveries import Delivery
from delivery.workflows import Workflows
from servioticy.domain.model import LastUpdate, StreamRef
from servioticy.domain.quotas import ATOMS, quotas
from servioticy.domain.workflows.model import Workflow
from servioticy.errors import Unavailable
from servioticy.settings import Settings

REF = StreamRef("so", "s")


def a_delivery(at: int, document: bytes = b"{}") -> Delivery:
    return Delivery(REF, LastUpdate(at, document), None)


class Feed:
    """Gives what it is given, and then nothing for ever."""

    tenant = 1

    def __init__(self, *given: Delivery, gives: bool = True) -> None:
        self.subscription = SimpleNamespace(document=orjson.dumps({"destination": "w"}))
        self._given = list(given)
        self._gives = gives
        self.done_: list[Delivery] = []
        self.is_over = asyncio.Event()

    async def take_patiently(self) -> Delivery:
        if not self._given:
            self.is_over.set()
            await asyncio.Event().wait()
        return self._given.pop(0)

    def take_now(self) -> Delivery | None:
        return self._given.pop(0) if self._given else None

    def gives(self, _stream: StreamRef) -> bool:
        return self._gives

    def done(self, delivery: Delivery) -> None:
        self.done_.append(delivery)

    async def settled(self) -> None:
        """All of it is stored."""


class Atoms:
    def __init__(self, held: Sequence[int] = (), away: int = 0, there: bool = True) -> None:
        self._held = list(held)
        self._away = away
        self._there = there
        self.put_: list[bytes] = []
        self.refused: list[tuple[bytes, str]] = []

    def held(self, tenant: int) -> tuple[int, int]:
        return (self._held.pop(0) if self._held else 0), 0

    def in_force(self, tenant: int, workflow: str) -> tuple[int, str] | None:
        if self._away:
            self._away -= 1
            raise Unavailable("away")
        return (1, orjson.dumps(a_document()).decode()) if self._there else None

    def put(
        self,
        tenant: int,
        workflow: str,
        version: int,
        read: Workflow,
        atoms: Sequence[tuple[bytes, int]],
        now_ms: int,
    ) -> bool:
        self.put_ += [body for body, _ in atoms]
        return True

    def refuse(
        self, tenant: int, workflow: str, version: int, atom: bytes, reason: str, now_ms: int
    ) -> None:
        self.refused.append((atom, reason))


def received(feed_of: Callable[[], Feed], atoms: Atoms) -> tuple[Feed, int]:
    """The feed when all of it is taken, and how often was waited for room."""
    waits = 0

    async def sleep(_seconds: float) -> None:
        nonlocal waits
        waits += 1
        assert feed.done_ == []

    async def run() -> None:
        nonlocal feed
        feed = feed_of()
        receiving = Workflows(atoms, quotas(Settings()), lambda _name: {}, sleep, lambda: 5.0)
        receive: Awaitable[Any] = receiving.receive(feed)  # type: ignore[arg-type]
        task = asyncio.ensure_future(receive)
        await asyncio.wait_for(feed.is_over.wait(), 60)
        task.cancel()

    feed: Feed = None  # type: ignore[assignment]
    asyncio.run(run())
    return feed, waits


def test_updates_become_atoms_in_their_order_and_are_acknowledged() -> None:
    given = [a_delivery(1, b'{"n":1}'), a_delivery(2, b'{"n":2}')]
    atoms = Atoms()

    feed, waits = received(lambda: Feed(*given), atoms)

    assert atoms.put_ == [b'{"n":1}', b'{"n":2}']
    assert feed.done_ == given
    assert waits == 0


def test_nothing_is_acknowledged_while_there_is_no_room() -> None:
    """And one atom less than there may be is room."""
    most = quotas(Settings())[ATOMS].most
    atoms = Atoms(held=[most, most, most - 1])

    feed, waits = received(lambda: Feed(a_delivery(1)), atoms)

    assert (waits, len(feed.done_), len(atoms.put_)) == (2, 1, 1)


def test_the_store_may_be_away() -> None:
    atoms = Atoms(away=1)

    feed, _ = received(lambda: Feed(a_delivery(1)), atoms)

    assert (len(feed.done_), len(atoms.put_)) == (1, 1)


def test_what_is_too_large_is_a_dead_letter_that_tells_where_it_is() -> None:
    large = b'"%b"' % (b"x" * (module.MAX_BYTES - 1))
    atoms = Atoms()

    received(lambda: Feed(a_delivery(3, large[:-2] + b'"'), a_delivery(4, large)), atoms)

    assert [len(each) for each in atoms.put_] == [module.MAX_BYTES]
    ((place, reason),) = atoms.refused
    assert orjson.loads(place) == {"service_object": "so", "stream": "s", "lastUpdate": 4}
    assert "no atom" in reason


def test_what_may_not_be_read_any_more_or_has_no_workflow_passes_by() -> None:
    for feed_of, atoms in (
        (lambda: Feed(a_delivery(1), gives=False), Atoms()),
        (lambda: Feed(a_delivery(1)), Atoms(there=False)),
    ):
        feed, _ = received(feed_of, atoms)

        assert len(feed.done_) == 1
        assert atoms.put_ == []
