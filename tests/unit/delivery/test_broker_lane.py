"""What clients publish goes together into the log, by tenants in turn, and none waits for ever."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest
from support.delivery_stores import Catalog
from support.played_ingest import AWAY, PlayedIngest
from support.running_broker import an_update

from broker import lane as lanes
from broker.lane import PATIENT_EACH, Lane
from ingest.updates import LARGE_BYTES, Fault, Offered, Outcome, Sent, Taken, Unread
from servioticy.domain.model import StreamRef
from servioticy.ports.addresses import Address
from servioticy.refusals import Denied

SECONDS = 20
TAKEN = Taken(Address(1, "pump", 1, False, 1, 0, 1), b"{}", ())


def a_part(tenant: int, count: int = 1, stream: str = "flow", at: int = 0) -> Sent:
    updates = [Offered(StreamRef("pump", stream), an_update(at + each)) for each in range(count)]
    return Sent(f"token-{tenant}", updates)


def a_large_part(tenant: int) -> Sent:
    """A small one, and one that is as small as a large one may be."""
    small = a_part(tenant).updates[0]
    return Sent(f"token-{tenant}", [small, small._replace(body=an_update(1).ljust(LARGE_BYTES))])


class Held:
    """Keeps to what a lane asks of `Ingest`; answers when the test says so."""

    def __init__(self) -> None:
        self.calls: list[tuple[list[str], bool]] = []
        """The tokens of those that came together, and whether they waited for documents."""
        self.unread: set[str] = set()
        """Streams whose documents nobody has read."""
        self.goes_on = threading.Event()
        self.reads_on = threading.Event()
        self.reading = 0

    def take(self, sent: Sequence[Sent], *, patient: bool = False) -> list[list[Outcome]]:
        self.calls.append(([each.token for each in sent], patient))
        self.reading += patient
        assert (self.reads_on if patient else self.goes_on).wait(SECONDS)
        unread = set() if patient else self.unread
        return [
            [Unread() if each.stream.stream in unread else TAKEN for each in part.updates]
            for part in sent
        ]


def lane_of(ingest: object) -> Lane:
    return Lane(ingest)  # type: ignore[arg-type]


def run(work: object) -> object:
    async def bounded() -> object:
        async with asyncio.timeout(SECONDS):
            return await work  # type: ignore[misc]

    return asyncio.run(bounded())


async def until(is_so: object) -> None:
    while not is_so():  # type: ignore[operator]
        await asyncio.sleep(0.001)


def test_one_call_has_one_part_of_each_tenant_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """So who sends a lot with many clients makes nobody wait but for a call or two."""
    monkeypatch.setattr(lanes, "MAX_TOGETHER", 3)
    held = Held()

    async def work() -> None:
        lane = lane_of(held)
        first = [asyncio.create_task(lane.take(9, a_part(9))) for _ in range(2)]
        await until(lambda: len(held.calls) == 2)  # all threads are busy
        many = [asyncio.create_task(lane.take(1, a_part(1))) for _ in range(20)]
        await asyncio.sleep(0)
        few = [asyncio.create_task(lane.take(tenant, a_part(tenant))) for tenant in (2, 3)]
        await asyncio.sleep(0)
        held.goes_on.set()
        await asyncio.gather(*first, *many, *few)
        await lane.stop()

    run(work())
    assert held.calls[2][0] == ["token-1", "token-2", "token-3"]
    assert sum(len(each) for each, _ in held.calls) == 24


def test_one_call_has_so_many_bytes_and_one_part_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "MAX_TOGETHER_BYTES", 3 * len(an_update(0)))
    held = Held()

    async def work() -> None:
        lane = lane_of(held)
        takes = [asyncio.create_task(lane.take(tenant, a_part(tenant, 2))) for tenant in range(9)]
        await until(lambda: len(held.calls) == 2)
        held.goes_on.set()
        await asyncio.gather(*takes)
        await lane.stop()

    run(work())
    assert {len(each) for each, _ in held.calls[:-1]} <= {1, 2}


def test_a_document_that_takes_long_is_waited_for_by_those_alone_that_need_it() -> None:
    held = Held()
    held.goes_on.set()
    held.unread.add("slow")

    async def work() -> tuple[list[int], int]:
        lane = lane_of(held)
        slow = [asyncio.create_task(lane.take(1, a_part(1, stream="slow"))) for _ in range(9)]
        await until(lambda: held.reading == PATIENT_EACH)
        quick = await lane.take(1, a_part(1))
        await asyncio.sleep(0.05)
        at_once = held.reading
        held.reads_on.set()
        found = [outcomes[0].status for outcomes in await asyncio.gather(*slow)]
        await lane.stop()
        return [*found, quick[0].status], at_once

    statuses, at_once = run(work())  # type: ignore[misc]
    assert statuses == [202] * 10
    assert at_once == PATIENT_EACH, "others' documents have threads left"


def test_what_is_large_waits_for_its_turn_and_nothing_else_does() -> None:
    """A tenant's large parts have two threads, others' large ones theirs, small ones all."""
    held = Held()
    held.goes_on.set()

    async def work() -> tuple[list[int], list[tuple[list[str], bool]]]:
        lane = lane_of(held)
        large = [asyncio.create_task(lane.take(1, a_large_part(1))) for _ in range(9)]
        await until(lambda: held.reading == PATIENT_EACH)
        large.append(asyncio.create_task(lane.take(2, a_large_part(2))))
        await until(lambda: held.reading == PATIENT_EACH + 1)
        small = [*await lane.take(1, a_part(1)), *await lane.take(2, a_part(2))]
        before = list(held.calls)
        held.reads_on.set()
        found = [outcomes[0].status for outcomes in await asyncio.gather(*large)]
        await lane.stop()
        assert lane.taken == 22
        return found + [each.status for each in small], before

    statuses, before = run(work())  # type: ignore[misc]
    assert statuses == [202] * 12
    assert sorted(before) == [
        (["token-1"], False),
        (["token-1"], True),
        (["token-1"], True),
        (["token-2"], False),
        (["token-2"], True),
    ]


def test_who_leaves_while_it_waits_gives_its_place_to_the_next() -> None:
    held = Held()

    async def work() -> None:
        lane = lane_of(held)
        first = [asyncio.create_task(lane.take(1, a_large_part(1))) for _ in range(PATIENT_EACH)]
        await until(lambda: held.reading == PATIENT_EACH)
        gone, last = (asyncio.create_task(lane.take(1, a_large_part(1))) for _ in range(2))
        await asyncio.sleep(0)
        gone.cancel()
        held.reads_on.set()
        await asyncio.gather(*first, last)
        await lane.stop()

    run(work())
    assert held.reading == PATIENT_EACH + 1


def test_of_one_part_each_update_has_its_own_answer_in_its_place() -> None:
    held = Held()
    held.goes_on.set()
    held.reads_on.set()
    held.unread.add("slow")
    quick, slow = a_part(1).updates[0], a_part(1, stream="slow").updates[0]

    async def work() -> list[int]:
        lane = lane_of(held)
        found = await lane.take(1, Sent("token-1", [slow, quick, slow]))
        assert lane.taken == 3
        await lane.stop()
        return [each.status for each in found]

    assert run(work()) == [202] * 3


@pytest.mark.parametrize(
    ("fault", "status"), [(ZeroDivisionError(), 500), (AWAY, 503), (Denied("no"), 403)]
)
def test_whatever_fails_everybody_is_answered(fault: Exception, status: int) -> None:
    way = PlayedIngest(Catalog())
    way.log.faults = [fault]

    async def work() -> list[int]:
        lane = lane_of(way.ingest)
        found = [*await lane.take(1, a_part(1, 2)), *await lane.take(1, a_part(1))]
        await lane.stop()
        return [each.status for each in found]

    assert run(work()) == [status, status, 202]


def test_a_bug_leaves_nobody_without_an_answer() -> None:
    class Broken:
        def take(self, *_: object, **__: object) -> None:
            raise ZeroDivisionError

    async def work() -> int:
        lane = lane_of(Broken())
        status = (await lane.take(1, a_part(1)))[0].status
        await lane.stop()
        return status

    assert run(work()) == 500


def test_a_fault_tells_nothing_of_itself() -> None:
    told = lanes.of_update(Fault("a secret"))

    assert (told.status, "secret" in told.message) == (500, False)
