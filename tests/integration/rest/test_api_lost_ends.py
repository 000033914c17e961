"""Ends that the log has lost: nobody can ask for them again, so they are told again."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from api_builders import NOW, Caller, Served
from granting import alice, bob, give, so

from api.app import SERVICES, create_app
from api.background.departures import Departures
from api.background.lost_ends import LostEnds
from sandbox.text import argument_names
from servioticy.domain.records import ControlRecord, DeletionRecord, RevocationRecord, write
from servioticy.ports.batches import Batch
from servioticy.ports.effects import Delete
from servioticy.ports.put_off import PutOff, TreeKey
from servioticy.settings import Settings

__all__ = ["alice", "bob", "so"]


@dataclass
class Background:
    """An API's work for ends that are lost, its clock, and what the pipeline has stored."""

    served: Served
    seconds: float = 0.0
    work: LostEnds = field(init=False)

    def __post_init__(self) -> None:
        ports = self.served.platform.ports
        app = create_app(ports, Settings(), lambda: NOW + self.seconds, argument_names)
        self.work = LostEnds(app.extensions[SERVICES], lambda: self.seconds)

    def told(self, seconds: float = 60) -> list[ControlRecord]:
        """What the log is told in a turn so much later."""
        ends = self._ends()
        self.seconds += seconds
        self.work.turn()
        return [
            record
            for n, end in enumerate(ends)
            for _, record in self.served.platform.records(n, end)
            if isinstance(record, ControlRecord)
        ]

    def lose(self) -> None:
        """The log loses all that it has acknowledged."""
        for each in self.served.platform.state.log:
            each.clear()

    def store(self, *put_off: PutOff, taken_up: tuple[TreeKey, ...] = ()) -> None:
        """The pipeline passes all that is in the log, and finds no end there."""
        store = self.served.platform.store
        for n, end in enumerate(self._ends()):
            first = store.begin(n)[0]
            if n == 0:
                store.store(Batch(n, first, end, first, put_off=put_off, taken_up=taken_up))
            else:
                store.store(Batch(n, first, end, first))
            store.end(n)

    def _ends(self) -> list[int]:
        return [len(each) for each in self.served.platform.state.log]


@pytest.fixture
def background(served: Served) -> Background:
    return Background(served)


@pytest.fixture
def revoked(alice: Caller, bob: Caller, so: str) -> RevocationRecord:
    """The end of a grant, as the log is told of it."""
    id_ = give(alice, so)
    assert alice.ask("DELETE", f"/grants/{id_}").status_code == 204
    return RevocationRecord(so, id_)


def test_an_end_that_the_pipeline_has_passed_over_is_told_again(
    background: Background, alice: Caller, revoked: RevocationRecord
) -> None:
    """The record was lost, and others have come in its place; lost once more, it comes again."""
    assert alice.ask("DELETE", f"/grants/{revoked.grant}").status_code == 404
    background.store()

    assert background.told(seconds=59) == []
    assert background.told() == []  # overdue: from here on it is known how far the log was
    assert background.told(seconds=59) == []
    assert background.told(seconds=1) == [revoked]
    assert background.told() == []
    background.store()
    assert background.told() == [revoked]
    background.store()
    background.served.platform.database.rows("DELETE FROM grants")
    assert [background.told(), background.told()] == [[], []]


def test_an_end_that_is_never_carried_out_is_told_ever_more_seldom(
    background: Background, revoked: RevocationRecord
) -> None:
    """A bug of ours makes it a dead letter each time; from hour to hour it is tried still."""
    minutes = []
    for minute in range(600):
        background.store()
        if background.told():
            minutes.append(minute)

    pauses = [later - earlier for earlier, later in pairwise(minutes)]
    assert pauses[:5] == [2, 4, 8, 16, 32]
    assert set(pauses[5:]) == {60}


def test_an_end_that_the_pipeline_has_not_reached_is_not_told_again(
    background: Background, revoked: RevocationRecord
) -> None:
    """However late the pipeline is: the record is in the log."""
    assert [background.told(3600) for _ in range(5)] == [[]] * 5


def test_an_end_that_is_put_off_is_not_told_again(
    background: Background, alice: Caller, revoked: RevocationRecord, so: str
) -> None:
    """Progress has passed it, and it is computed later than at its place."""
    tenant = background.served.platform.stream(so).tenant
    records = background.served.platform.records(0)
    (offset,) = [n for n, record in records if record == revoked]
    background.store(PutOff(offset, tenant, so, write(revoked)))

    assert [background.told() for _ in range(4)] == [[]] * 4
    background.store(taken_up=(TreeKey(offset),))
    assert background.told() == [revoked]


def test_what_the_broker_has_lost_is_told_again_though_the_log_ends_before_it(
    background: Background, revoked: RevocationRecord
) -> None:
    """The pipeline can never reach where the log ended."""
    assert [background.told() for _ in range(3)] == [[]] * 3

    background.lose()

    assert background.told() == [revoked]


def test_a_tenant_goes_though_the_log_has_lost_its_deletions(
    background: Background, served: Served, alice: Caller, so: str
) -> None:
    services = served.app.extensions[SERVICES]
    served.platform.ports.tenants.delete_tenant("alice")

    def leave() -> None:
        leaving = Departures(services, lambda: 1e9)
        while leaving.turn():
            pass

    leave()
    background.lose()
    leave()
    assert served.platform.database.rows("SELECT 1 FROM tenants WHERE name = 'alice'")

    assert background.told(seconds=61) == []
    assert background.told() == [DeletionRecord(so)]
    store = served.platform.store
    begin = store.begin(0)[0]
    store.store(Batch(0, begin, begin + 1, begin, effect=Delete(so)))
    while store.purge(0, 100, 10**6) is not None:
        pass
    store.end(0)
    leave()

    assert not served.platform.database.rows("SELECT 1 FROM tenants WHERE name = 'alice'")
