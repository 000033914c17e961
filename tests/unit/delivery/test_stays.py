"""Who was let in goes when what let him in is no more, whatever is heard of it, and when."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from unittest import mock

import pytest
from support.delivery_stores import Catalog

from delivery import repeating
from delivery.admission import stays as module
from delivery.admission.requests import Admission, Identity, WatchRequest, admit, identify
from delivery.admission.stays import Stays
from delivery.endings import Ending
from servioticy.domain.access import Scope
from servioticy.domain.model import StreamRef
from servioticy.domain.tokens import digest
from servioticy.errors import Unavailable
from servioticy.ports.access_changes import AccessChange
from servioticy.ports.addresses import Address, Lookup

SECONDS = 20.0


class World:
    """A catalog, and those who were let in by it."""

    def __init__(self) -> None:
        self.catalog = Catalog()
        self.stays = Stays(self.catalog)
        self.ended: dict[str, Ending] = {}

    def watch(self, token: str, name: str = "pump") -> Admission:
        request = WatchRequest(StreamRef(name, "flow"), token, None)
        found = admit(request, self.catalog, self.stays.changes)
        assert isinstance(found, Admission)
        return found

    def knows(self, token: str) -> Identity:
        found = identify(token, self.catalog, self.stays.changes)
        assert isinstance(found, Identity)
        return found

    def begin(self, grounds: Admission | Identity, who: str | None = None) -> module.Stay:
        name = who or grounds.token
        return self.stays.begin(grounds, lambda ending: self.ended.update({name: ending}))

    async def until_ended(self, *names: str) -> None:
        async with asyncio.timeout(SECONDS):
            while not set(names) <= self.ended.keys():
                await asyncio.sleep(0.002)

    async def until_asked(self, questions: int) -> None:
        async with asyncio.timeout(SECONDS):
            while self.catalog.questions < questions:
                await asyncio.sleep(0.002)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self.stays.start(self.catalog)
        try:
            yield
        finally:
            await self.stays.stop()


@pytest.fixture(autouse=True)
def _quick() -> object:
    with (
        mock.patch.object(module, "SILENCE_SECONDS", 0.01),
        mock.patch.object(repeating, "RETRY_SECONDS", 0.01),
    ):
        yield


def test_holders_of_a_revoked_token_go_and_nobody_else_is_asked_about() -> None:
    async def run() -> None:
        world = World()
        async with world.running():
            world.begin(world.watch("token-1"))
            world.begin(world.knows("token-1"), "known")
            world.begin(world.watch("token-2"))
            world.catalog.asked.clear()
            world.catalog.revoke("token-1")
            await world.until_ended("token-1", "known")
        assert world.ended == {"token-1": Ending.REVOKED, "known": Ending.REVOKED}
        assert set(world.catalog.asked) == {"token-1"}
        assert len(world.stays) == 1

    asyncio.run(run())


@pytest.mark.parametrize("change", ["hide", "delete"])
def test_who_may_read_an_object_no_more_goes(change: str) -> None:
    async def run() -> None:
        world = World()
        async with world.running():
            world.begin(world.watch("token-1", "open"))
            world.begin(world.watch("token-2"))
            if change == "hide":
                world.catalog.hide("open")
                world.begin(world.watch("token-9", "open"), "owner")
            else:
                world.catalog.delete("open")
            await world.until_ended("token-1")
        assert world.ended == {"token-1": Ending.NOT_READABLE}

    asyncio.run(run())


def test_many_are_looked_up_with_few_questions() -> None:
    async def run() -> None:
        world = World()
        async with world.running():
            for number in range(1, 5_001):
                world.begin(world.watch(f"token-{number}"))
            world.catalog.revoke("token-77")
            world.catalog.tell(AccessChange(everything=True))
            await world.until_ended("token-77")
            await world.until_asked(2)
        assert world.ended == {"token-77": Ending.REVOKED}
        assert world.catalog.questions <= 1 + 5_000 // module.AT_ONCE

    asyncio.run(run())


def test_what_changes_while_somebody_comes_is_about_him_too() -> None:
    """The change may be heard of between the store's answer and his being let in."""

    async def run() -> None:
        world = World()
        async with world.running():
            grounds = world.watch("token-1")
            world.catalog.revoke("token-1")
            async with asyncio.timeout(SECONDS):
                while not world.stays.changes:
                    await asyncio.sleep(0.002)
            world.begin(grounds)
            await world.until_ended("token-1")

    asyncio.run(run())


def test_a_token_that_runs_out_ends_its_holder_though_nothing_is_told() -> None:
    async def run() -> None:
        world = World()
        world.catalog.expires["token-1"] = time.monotonic() + 0.05
        async with world.running():
            world.begin(world.watch("token-1"))
            await world.until_ended("token-1")
        assert world.ended == {"token-1": Ending.REVOKED}

    asyncio.run(run())


def test_who_reads_by_a_grant_goes_when_that_ends_though_nothing_is_told() -> None:
    """No program that ends grants in the store need run."""

    async def run() -> None:
        world = World()
        world.catalog.granted_until["open"] = time.monotonic() + 0.05
        async with world.running():
            world.begin(world.watch("token-1", "open"))
            world.begin(world.watch("token-9", "open"), "owner")
            await world.until_ended("token-1")
        assert world.ended == {"token-1": Ending.NOT_READABLE}

    asyncio.run(run())


def test_one_that_is_to_end_later_than_before_stays_until_then() -> None:
    """By the store's clock: what is asked too early is asked again."""

    async def run() -> None:
        world = World()
        world.catalog.expires["token-1"] = time.monotonic() + 0.05
        async with world.running():
            world.begin(world.watch("token-1"))
            del world.catalog.expires["token-1"]
            await world.until_asked(1)
        assert not world.ended

    asyncio.run(run())


def test_a_token_for_something_else_than_before_ends_who_is_known_by_it() -> None:
    """What he may see was decided by what it was for."""
    world = World()
    known = world.knows("token-1")

    other = Address(1, None, None, False, 0, 0, None, Scope(rights=("send",)))

    assert known.ending(other) is Ending.REVOKED
    assert known.ending(other._replace(scope=Scope())) is None
    assert known.ending(None) is Ending.REVOKED


def test_one_that_loses_the_right_goes() -> None:
    world = World()
    watching = world.watch("token-1")
    found = world.catalog.address(*watching.lookup)
    assert found is not None

    assert watching.ending(found) is None
    assert watching.ending(found._replace(scope=Scope(rights=("send",)))) is Ending.REVOKED
    assert watching.ending(found._replace(scope=Scope("lamp"))) is Ending.REVOKED
    assert watching.ending(found._replace(stream_id=None)) is Ending.NOT_READABLE


def test_nobody_goes_because_the_store_is_silent_and_it_is_asked_again() -> None:
    class Silent(Catalog):
        failures = 3

        def addresses(self, lookups: list[Lookup]) -> list[Address | None]:  # type: ignore[override]
            if self.failures:
                self.failures -= 1
                raise Unavailable("silent")
            return super().addresses(lookups)

    async def run() -> None:
        world = World()
        world.catalog = Silent()
        world.stays = Stays(world.catalog)
        async with world.running():
            world.begin(world.watch("token-2"))
            world.begin(world.watch("token-1"))
            world.catalog.revoke("token-1")
            await world.until_ended("token-1")
        assert world.ended == {"token-1": Ending.REVOKED}

    asyncio.run(run())


def test_what_nobody_heard_of_is_found_now_and_then() -> None:
    async def run() -> None:
        world = World()
        async with world.running():
            world.begin(world.watch("token-1"))
            world.catalog.revoked.add("token-1")
            await world.until_ended("token-1")

    with mock.patch.object(module, "RECHECK_SECONDS", 0.01):
        asyncio.run(run())


def test_who_has_gone_is_not_asked_about_and_leaves_nothing() -> None:
    async def run() -> None:
        world = World()
        async with world.running():
            gone = world.begin(world.watch("token-1", "open"))
            world.stays.leave(gone)
            world.stays.leave(gone)
            world.catalog.asked.clear()
            world.stays.note(AccessChange([digest("token-1")], ["open"], everything=True))
            await asyncio.sleep(0.05)
        assert not world.catalog.asked
        assert len(world.stays) == 0

    asyncio.run(run())
