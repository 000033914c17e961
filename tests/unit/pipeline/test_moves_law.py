"""A device that sends one update after the other finds all of them computed, wherever it moves."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from changing_law import assert_lawful
from changing_oracle import Shown
from changing_world import World
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracle import Composite
from serial_order import javascript
from support.played_ingest import PlayedIngest
from support.taking_turns import Actor, Turns

from ingest.routes import Routes
from ingest.updates import Offered, Sent, Taken, Unread
from servioticy.changes import Changes
from servioticy.domain.model import ServiceObjectKey, StreamRef
from servioticy.domain.placement import LEAVING_SECONDS, ROUTED_SECONDS, read_route
from servioticy.domain.records import LogRecord, UpdateRecord
from servioticy.errors import Unavailable
from servioticy.ports.addresses import Address, Lookup
from servioticy.ports.change_store import Change

FLOW = StreamRef("pump", "d0")
SENT = 6
WAYS = (1, 0, 1)
"""The partitions to which it moves, one after the other."""

READ = {"c0": ("d0",), "c1": ("c0",)}
PUMP = Shown(
    "pump",
    ("d0", "d1"),
    tuple(Composite(name, read, lambda values: values[0]) for name, read in READ.items()),
)
CODES = {("pump", name): javascript(read, 0, 99, 99) for name, read in READ.items()}


class Sending:
    """A device's way into the log: another may have its turn before and after each question."""

    def __init__(self, world: World, turns: Turns) -> None:
        self.world = world
        self.actor = Actor(turns, self.send)
        routes = Routes(self, turns.clock, self.actor.sleep)  # type: ignore[arg-type]
        self.way = PlayedIngest(self, log=self, routes=routes, updates=10**9)  # type: ignore[arg-type]
        self.way.documents.document = {"streams": {"d0": {"channels": {"v": {"type": "number"}}}}}

    def send(self) -> None:
        for at in range(1, SENT + 1):
            body = b'{"channels":{"v":{"current-value":%d}},"lastUpdate":%d}' % (at, at)
            sent = Sent("", [Offered(FLOW, body)])
            outcome = self.way.ingest.take([sent])[0][0]
            if isinstance(outcome, Unread):
                outcome = self.way.ingest.take([sent], patient=True)[0][0]
            assert isinstance(outcome, Taken)
            self.world.put_there[("pump", "d0"), at, at] += 1
            self.actor.pause()

    def addresses(self, lookups: Sequence[Lookup]) -> list[Address | None]:
        self.actor.pause()
        tenant = self.world.tenant_of("pump")
        route = read_route(self._row().route_partition)
        self.actor.pause()
        found = Address(tenant, "pump", tenant, False, 1, route.partition, 1, leaves=route.leaves)
        return [found] * len(lookups)

    def rows(self, _name: str, *, ids: Collection[str]) -> list[tuple[Any, ...]]:
        found = [(each, self._row().route_partition) for each in ids]
        self.actor.pause_for_less_than(LEAVING_SECONDS - ROUTED_SECONDS)
        return found

    def append_all(self, records: Sequence[tuple[int, LogRecord]]) -> None:
        self.actor.pause_for_less_than(LEAVING_SECONDS - ROUTED_SECONDS)
        self.world.platform.log.append_all(records)

    def _row(self) -> Any:
        return self.world.platform.state.service_objects["pump"]


class Moving:
    """Somebody moves it, and may be killed: then the next one begins with what is unfinished."""

    def __init__(self, world: World, turns: Turns) -> None:
        self._world = world
        self.actor = Actor(turns, self.go_round)
        self._store, self._log = world.platform.change_store, world.platform.log
        self.changes = Changes(world.platform.graph, self, self, self.actor.sleep)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def go_round(self) -> None:
        key = ServiceObjectKey(self._world.tenant_of("pump"), "pump")
        for partition in WAYS:
            while self._row_partition() != partition:
                try:
                    self.changes.move(key, partition)
                except Unavailable:
                    self.actor.pause()

    def _row_partition(self) -> int:
        return self._world.platform.state.service_objects["pump"].route_partition

    def leave(self, change: Change) -> None:
        self.actor.pause()
        self._store.leave(change)

    def finish(self, pending: dict[int, Change]) -> None:
        self.actor.pause()
        self._store.finish(pending)

    def append(self, partition: int, record: LogRecord) -> int:
        self.actor.pause()
        return self._log.append(partition, record)

    def append_all(self, records: Sequence[tuple[int, LogRecord]]) -> None:
        self._log.append_all(records)


LEARNT = ["send"] * 6
"""The first update is in the log, and the document known."""
SENT_BEHIND = ["move", "move", *["send"] * 6]
STEPS = ("send", "send", "send", "move", "move", "time", "work0", "work1", "crash")


@settings.get_profile("changes")
@given(steps=st.lists(st.sampled_from(STEPS), max_size=150))
@example(steps=[*["send"] * 4, *["move"] * 2, *["time"] * 3, *["move"] * 4, *["send"] * 8])
@example(steps=[*["send"] * 3, *["move"] * 6, *["send"] * 12])
@example(steps=[*LEARNT, *["move"] * 2, *["time"] * 2, "send", "send", "time", *SENT_BEHIND])
def test_nothing_derived_is_lost_by_a_move(steps: list[str]) -> None:
    """Whoever has a turn: the device, the one who moves it, or one of the two partitions."""
    world, turns = World(2), Turns()
    world.create(PUMP, CODES)
    world.run([None, None])
    sending, moving = Sending(world, turns), Moving(world, turns)
    for each in steps:
        match each:
            case "send":
                sending.actor.step()
            case "move":
                moving.actor.step()
            case "time":
                turns.pass_(0.4 * LEAVING_SECONDS)
            case "crash":
                world.crash()
            case _:
                world.run([None if each == f"work{n}" else 0 for n in range(2)])
    while not (sending.actor.is_done and moving.actor.is_done):
        sending.actor.step()
        moving.actor.step()
        turns.pass_(0.4 * LEAVING_SECONDS)
        world.run([None, None])
    world.finish()

    records = [each for n in range(2) for _, each in world.platform.records(n)]
    assert not [each for each in records if isinstance(each, UpdateRecord) and each.forwarded]
    oracle = assert_lawful(world)
    for name in READ:
        assert [at for (ref, at) in sorted(oracle.stored) if ref == ("pump", name)] == [
            *range(1, SENT + 1)
        ]
