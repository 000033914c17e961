"""Grants that end: revoked, expired, and what was read by them."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from api_builders import NOW, Caller, Served
from granting import (
    TWO,
    alice,
    bob,
    derives,
    give,
    reader,
    reads,
    so,
)

from api.app import create_app
from api.background.worker import _WORK, ending, worker
from sandbox.text import argument_names
from servioticy.domain.records import GrantRecord, RevocationRecord
from servioticy.errors import Unavailable
from servioticy.settings import Settings
from servioticy.storage.cursors import PostgresCursors
from servioticy.storage.database import Database

__all__ = ["alice", "bob", "so"]


def test_a_revoked_grant_is_good_for_nothing_from_then_on(
    served: Served, alice: Caller, bob: Caller, so: str
) -> None:
    id_ = give(alice, so)
    own = bob.create(reader(so))
    wanted = {"callback": "pull"}
    made = bob.ask("POST", f"/{so}/streams/a/subscriptions", json=wanted).get_json()["id"]
    cursors = PostgresCursors(served.platform.database)
    before = set(cursors.changes())

    assert bob.ask("DELETE", f"/grants/{id_}").status_code == 404
    assert alice.ask("DELETE", f"/grants/{id_}").status_code == 204

    assert alice.ask("DELETE", f"/grants/{id_}").status_code == 404
    assert reads(served, bob, so) == {False}
    assert not derives(bob, so)
    assert (before, set(cursors.changes())) == ({made}, set())
    assert bob.ask("GET", "/grants").get_json()["grants"] == []
    assert bob.ask("PUT", f"/{own}", json=reader(so)).status_code == 200, "it named it before"
    records = [record for n in (0, 1) for _, record in served.platform.records(n)]
    assert GrantRecord(so, id_) in records
    assert RevocationRecord(so, id_) in records


def test_another_grant_beside_a_revoked_one_stays(
    served: Served, alice: Caller, bob: Caller, so: str
) -> None:
    first, _second = give(alice, so), give(alice, so, use="derive")

    alice.ask("DELETE", f"/grants/{first}")

    assert reads(served, bob, so) == {False}
    assert derives(bob, so)


@dataclass
class Late:
    """A clock."""

    now: float = NOW

    def __call__(self) -> float:
        return self.now


def test_an_expired_grant_ends_by_itself_and_the_log_is_told(
    served: Served, alice: Caller, bob: Caller, so: str
) -> None:
    """For reads at once, by the clock of the store; for composites where the record stands."""
    id_, clock = give(alice, so, expiresIn=60), Late()
    app = create_app(served.platform.ports, Settings(), clock, argument_names)
    background = ending(app.extensions["servioticy"])
    told = len(served.platform.log.records(0)) + len(served.platform.log.records(1))
    while background.turn():
        pass
    early = len(served.platform.log.records(0)) + len(served.platform.log.records(1))
    clock.now += 60
    while background.turn():
        pass
    records = [record for n in (0, 1) for _, record in served.platform.records(n)]

    assert early == told
    assert records.count(RevocationRecord(so, id_)) == 1
    assert reads(served, bob, so) == {False}


def test_other_work_is_not_in_the_way_of_its_end(
    served: Served, alice: Caller, bob: Caller, so: str, session_dsn: str
) -> None:
    """Another process may be at other tenants' groups and jobs for long."""
    id_ = give(alice, so, expiresIn=60)
    app = create_app(served.platform.ports, Settings(), Late(NOW + 60), argument_names)
    services = app.extensions["servioticy"]

    busy = Database(session_dsn)
    busy.rows("SELECT pg_advisory_lock(%(key)s)", {"key": _WORK})

    assert not worker(services).turn()
    assert ending(services).turn()
    busy.close()
    records = [record for n in (0, 1) for _, record in served.platform.records(n)]
    assert RevocationRecord(so, id_) in records


def test_what_is_read_by_a_grant_holds_until_the_last_one_ends(
    served: Served, alice: Caller, bob: Caller, so: str
) -> None:
    """By the clock of the store, which delivery is told with the answer."""

    def holds_for(who: Caller) -> float | None:
        found = served.platform.ports.addresses.address(who.token, so, "a")
        assert found is not None
        return found.expires_in

    sql = (
        "UPDATE grants SET expires_at = extract(epoch FROM now()) * 1000 + %(ms)s"
        " WHERE id = %(id)s"
    )
    for ms, stream, use in ((5e5, "a", "read"), (9e5, None, "read"), (9e6, "a", "derive")):
        values = {"ms": ms, "id": give(alice, so, stream, use=use)}
        served.platform.database.rows(sql, values)

    assert 800 < (holds_for(bob) or 0) <= 900
    assert holds_for(alice) is None
    give(alice, so)
    assert holds_for(bob) is None


def test_readers_hold_a_stream_until_their_grant_ends(alice: Caller, bob: Caller, so: str) -> None:
    """As for readers of what is public: a stream that others compute from stays."""
    id_ = give(alice, so, use="derive")
    bob.create(reader(so))
    without = {"streams": {"b": TWO["streams"]["b"]}}

    assert alice.ask("PUT", f"/{so}", json=without).status_code == 409
    alice.ask("DELETE", f"/grants/{id_}")
    assert alice.ask("PUT", f"/{so}", json=without).status_code == 200


def test_an_end_that_did_not_reach_the_log_is_finished_by_itself(
    served: Served, alice: Caller, bob: Caller, so: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker was away, or the program was killed: no client asks for this end again."""
    assert bob.token  # the grant is for him
    id_ = give(alice, so, expiresIn=60)
    changes = served.platform.ports.changes
    later = int(NOW * 1000) + 61_000

    def away(*_: object) -> int:
        raise Unavailable("the broker does not answer")

    with monkeypatch.context() as patch:
        for name in ("append", "append_all"):
            patch.setattr(changes._log, name, away)
        with pytest.raises(Unavailable):
            changes.end_expired(later)
    changes.end_expired(later)

    records = [record for n in (0, 1) for _, record in served.platform.records(n)]
    assert records.count(RevocationRecord(so, id_)) == 1
