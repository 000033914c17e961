"""Ends that the log has lost: nobody can ask for them again, so they are told again."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from api_builders import NOW, Caller, Served
from granting import alice, bob, give, so

from api.app import SERVICES, create_app
from api.background.departures import Departures
from api.background.lost_ends import LostEnds
from sandbox.text import argument_names
from servioticy.domain.records import ControlRecord, DeletionRecord, RevocationRecord
from servioticy.ports.partition_store import Batch, Delete
from servioticy.settings import Settings

__all__ = ["alice", "bob", "so"]


@dataclass
class Background:
    """An API's work for ends that are lost, and its clock."""

    served: Served
    seconds: float = 0.0
    work: LostEnds = field(init=False)

    def __post_init__(self) -> None:
        ports = self.served.platform.ports
        app = create_app(ports, Settings(), lambda: NOW + self.seconds, argument_names)
        self.work = LostEnds(app.extensions[SERVICES], lambda: self.seconds)

    def told(self, seconds: float) -> list[ControlRecord]:
        """What the log is told in a turn so much later; it loses that as it lost all before."""
        self.seconds += seconds
        self.work.turn()
        return self.lose()

    def lose(self) -> list[ControlRecord]:
        found = [record for n in (0, 1) for _, record in self.served.platform.records(n)]
        for each in self.served.platform.state.log:
            each.clear()
        return [record for record in found if isinstance(record, ControlRecord)]


@pytest.fixture
def background(served: Served) -> Background:
    return Background(served)


def test_a_revocation_that_is_lost_is_told_again(
    background: Background, alice: Caller, bob: Caller, so: str
) -> None:
    """Where nothing carries it out it is told ever more rarely: perhaps that is only away."""
    id_ = give(alice, so)
    alice.ask("DELETE", f"/grants/{id_}")
    assert RevocationRecord(so, id_) in background.lose()

    assert alice.ask("DELETE", f"/grants/{id_}").status_code == 404
    assert background.told(seconds=59) == []
    again = [background.told(seconds=60) for _ in range(8)]

    expected = RevocationRecord(so, id_)
    assert again == [[expected], [], [expected], [], [], [], [expected], []]
    background.served.platform.database.rows("DELETE FROM grants")
    assert background.told(seconds=3600) == []


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
    assert DeletionRecord(so) in background.lose()
    leave()
    assert served.platform.database.rows("SELECT 1 FROM tenants WHERE name = 'alice'")

    records = background.told(seconds=61)
    assert records == [DeletionRecord(so)]
    store = served.platform.store
    begin = store.begin(0)[0]
    store.store(Batch(0, begin, begin + 1, begin, effect=Delete(so)))
    while store.purge(0, 100, 10**6) is not None:
        pass
    store.end(0)
    leave()

    assert not served.platform.database.rows("SELECT 1 FROM tenants WHERE name = 'alice'")
