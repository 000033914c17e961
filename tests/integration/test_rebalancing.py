"""What is planned and moved by what was metered, on Postgres."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from memory.log import MemoryLog
from memory.state import State
from port_builders import a_service_object

from command import rebalance
from sandbox.text import argument_names
from servioticy.bootstrap import ports_on
from servioticy.domain.model import StreamRef
from servioticy.domain.records import (
    AcquireRecord,
    DefinitionRecord,
    LogRecord,
    ReleaseRecord,
    read_record,
)
from servioticy.ports.accounts import Use
from servioticy.ports.batches import Batch
from servioticy.ports.effects import Activate
from servioticy.rebalancing import HOUR, Done, Rebalancing, told
from servioticy.storage.database import Database
from servioticy.storage.partition_store import PostgresPartitionStore
from servioticy.storage.roles import Role


class Platform:
    """One partition that is busy, and one that was added; what is told comes into force."""

    def __init__(self, dsn: str) -> None:
        self.owner, self.api = Database(dsn), Database(dsn, role=Role.API)
        self.pipeline = Database(dsn, role=Role.PIPELINE)
        self.state = State(log=[[]])
        self.ports = ports_on(self.api, MemoryLog(self.state), dict)
        self.store = PostgresPartitionStore(self.pipeline, argument_names)
        self.store.begin(0)
        token = self.ports.tenants.create_tenant("acme")
        self.tenant = self.ports.tenants.tenant_of(token) or 0
        self.now = 0
        self.rebalancing = Rebalancing(
            self.ports.loads, self.ports.changes, self.ports.log, lambda: self.now
        )

    def create(self, id_: str, *sources: str) -> None:
        self.ports.changes.create(self._new(id_, *sources))

    def part(self, id_: str, revision: int) -> None:
        """Let it read nobody any more."""
        self.ports.changes.replace(self._new(id_), revision)

    def _new(self, id_: str, *sources: str) -> object:
        groups = tuple((f"g{each}", StreamRef(each, "a")) for each in sources)
        return a_service_object(self.tenant, id_, groups)

    def settle(self) -> None:
        """Let the pipeline take the log."""
        (row,) = self.owner.rows("SELECT next_offset FROM progress WHERE log_partition = 0")
        for offset in range(row[0], len(self.state.log[0])):
            record = read_record(self.state.log[0][offset])
            effect = None
            if isinstance(record, DefinitionRecord):
                effect = Activate(record.service_object, record.version, record.change)
            self.store.store(Batch(0, offset, offset + 1, 0, effect=effect))

    def use(self, **microseconds: int) -> None:
        """Note what streams of these have used, in this hour."""
        self.store.account(
            [
                Use(self.tenant, StreamRef(id_, "a"), self.tenant, microseconds=used)
                for id_, used in microseconds.items()
            ]
        )
        self.now = self.owner.rows("SELECT max(hour) FROM usage_hours")[0][0] + HOUR // 2

    def add_partition(self) -> None:
        self.state.log.append([])

    def close(self) -> None:
        for each in (self.owner, self.api, self.pipeline):
            each.close()


@pytest.fixture
def platform(dsn: str) -> Iterator[Platform]:
    made = Platform(dsn)
    yield made
    made.close()


def moves(done: Done) -> list[tuple[str, int, int, int]]:
    return [
        (each.service_object, each.service_objects, each.from_partition, each.to_partition)
        for each in done.moved
    ]


def test_what_takes_most_goes_to_a_partition_that_was_added(platform: Platform) -> None:
    """What it hangs together with goes along, and the log is told in order."""
    platform.create("so1")
    platform.create("so2", "so1")
    platform.create("so3")
    platform.settle()
    platform.use(so1=3_000_000, so2=3_000_000, so3=5_000_000)
    assert platform.rebalancing.plan().moves == ()

    platform.add_partition()
    planned = platform.rebalancing.plan()
    assert [each.busy for each in planned.partitions] == [pytest.approx(11 / 5400), 0]
    done = platform.rebalancing.carry_out()

    assert done.outlook == planned
    assert moves(done) in ([("so1", 2, 0, 1)], [("so3", 1, 0, 1)])
    released = read_record(platform.state.log[0][-1])
    acquired = read_record(platform.state.log[1][0])
    assert isinstance(released, ReleaseRecord)
    assert isinstance(acquired, AcquireRecord)
    assert acquired.service_objects == released.service_objects
    assert platform.ports.changes._store.pending() == []
    assert platform.rebalancing.plan().moves == ()


def test_what_has_come_apart_goes_apart(platform: Platform) -> None:
    """Not before that is in force; then a component that was too large is none any more."""
    platform.create("so1")
    platform.create("so2", "so1")
    platform.settle()
    platform.use(so1=3_000_000, so2=3_000_000)
    platform.add_partition()
    planned = platform.rebalancing.plan()
    assert planned.largest is not None
    assert (planned.moves, planned.largest.is_bound) == ((), True)
    assert any("cannot be divided" in each for each in rebalance.lines(planned))

    platform.part("so2", 1)
    assert platform.rebalancing.plan().moves == ()
    platform.settle()
    done = platform.rebalancing.carry_out()

    assert moves(done) in ([("so1", 1, 0, 1)], [("so2", 1, 0, 1)])
    rows = platform.owner.rows("SELECT component FROM service_objects ORDER BY id")
    assert rows == [("so1",), ("so2",)]


class Killed(BaseException):
    """Nothing of the process goes on."""


@pytest.mark.parametrize("told", [0, 1, 2])
def test_what_one_that_was_killed_left_undone_is_done_by_whoever_changes_next(
    told: int, platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However much of a move the log has been told by then; what was told is told again."""
    platform.create("so1")
    platform.create("so2")
    platform.settle()
    platform.use(so1=1_000_000, so2=1_000_000)
    platform.add_partition()
    left, append = [told], MemoryLog.append

    def dying(log: MemoryLog, partition: int, record: LogRecord) -> int:
        if not left[0]:
            raise Killed
        left[0] -= 1
        return append(log, partition, record)

    with monkeypatch.context() as killed, pytest.raises(Killed):
        killed.setattr(MemoryLog, "append", dying)
        platform.rebalancing.carry_out(1)
        raise Killed  # after the last one
    platform.create("so3")

    released = [read_record(each) for each in platform.state.log[0]]
    acquired = [read_record(each) for each in platform.state.log[1]]
    assert any(isinstance(each, ReleaseRecord) for each in released)
    assert any(isinstance(each, AcquireRecord) for each in acquired)
    assert platform.ports.changes._store.pending() == []
    (moved,) = platform.owner.rows(
        "SELECT id FROM service_objects WHERE route_partition = 1 AND id <> 'so3'"
    )
    assert moved[0] in ("so1", "so2")
    assert platform.rebalancing.plan().moves == ()


def test_no_more_move_than_are_allowed(platform: Platform) -> None:
    """The others come another time; the plan says what these bring."""
    for number in range(8):
        platform.create(f"so{number}")
    platform.settle()
    platform.use(**{f"so{number}": 1_000_000 for number in range(8)})
    platform.add_partition()

    done = platform.rebalancing.carry_out(3)
    assert len(done.moved) == 3
    shown = told(done)
    assert [round(5400 * each["busyAfter"]) for each in shown["partitions"]] == [5, 3]
    assert len(platform.rebalancing.carry_out(3).moved) == 1
    assert platform.rebalancing.carry_out(3).moved == ()


def test_what_is_used_no_more_does_not_count(platform: Platform) -> None:
    """Who was busy three hours ago stays where it is."""
    platform.create("so1")
    platform.create("so2")
    platform.settle()
    platform.use(so1=1_000_000, so2=1_000_000)
    platform.add_partition()
    platform.now += 2 * HOUR

    assert platform.rebalancing.plan().moves == ()
    assert platform.rebalancing.plan().largest is None
