"""What Addresses tell of a request."""

from __future__ import annotations

import itertools
import time

import pytest
from port_builders import Stored

from ingest.routes import MOST_SECONDS, Routes
from servioticy.domain.access import MemberRole, Resource, scope_of
from servioticy.domain.model import Grant, ServiceObjectKey
from servioticy.domain.persons import Person
from servioticy.domain.tokens import digest
from servioticy.ports.addresses import Address, Lookup, LookupByPerson
from servioticy.ports.change_store import NewGrant
from servioticy.storage.statements import PostgresStatements

pytestmark = pytest.mark.real


def test_an_unknown_token_has_no_address(stored: Stored) -> None:
    stored.create("so1")

    assert stored.addresses.address("nonsense", "so1", "a") is None


def test_an_address_tells_all_a_request_needs(stored: Stored) -> None:
    key, stream = stored.create("so1"), stored.stream("so1")

    address = stored.addresses.address(stored.token, "so1", "a")

    assert address is not None
    assert len(address.token_id) == 32
    assert address._replace(token_id="", known_by=b"") == Address(
        stored.tenant, "so1", stored.tenant, False, 1, 0, stream.stream_id
    )
    assert (address.key, address.stream) == (key, stream)


@pytest.mark.parametrize("name", ["nothing", "", "so1\0", None])
def test_what_does_not_exist_has_no_id_in_an_address(stored: Stored, name: str | None) -> None:
    """What is asked then is about the caller."""
    stored.create("so1")

    address = stored.addresses.address(stored.token, name, "a")

    assert address is not None
    assert address._replace(token_id="", known_by=b"") == Address(
        stored.tenant, None, None, False, 0, 0, None
    )
    assert (address.key, address.stream) == (None, None)
    assert address.resource == Resource((stored.tenant,))


@pytest.mark.parametrize("name", [None, "nothing", "A", "a\0"])
def test_what_is_no_stream_has_no_stream_id(stored: Stored, name: str | None) -> None:
    stored.create("so1")

    address = stored.addresses.address(stored.token, "so1", name)

    assert address is not None
    assert address.stream is None


def test_an_address_tells_whose_and_whether_public(stored: Stored) -> None:
    stored.create("so1", public=True)

    address = stored.addresses.address(stored.other_token, "so1", None)

    assert address is not None
    assert (address.caller, address.owner, address.granted) == (stored.other, stored.tenant, True)
    assert address.key == ServiceObjectKey(stored.tenant, "so1")
    assert address.resource == Resource((stored.tenant,), True)


def test_what_is_deleted_has_no_address(stored: Stored) -> None:
    stored.change_store.delete(stored.create("so1"), None, 2000)

    address = stored.addresses.address(stored.token, "so1", "a")

    assert address is not None
    assert address.key is None


ALICE = Person("https://login.example.org", "alice")
ELSEWHERE = Person("https://evil.example.org", "alice")


def test_a_person_is_known_by_its_issuer_for_the_tenants_it_is_a_member_of(
    stored: Stored,
) -> None:
    key = stored.create("so1")
    stored.add_member("m1", ALICE, "viewer")
    stored.add_member("m2", ALICE, "admin", tenant=stored.other)

    one, other, none, foreign, nothing = stored.addresses.of_members(
        [
            LookupByPerson(ALICE, "acme", "so1", "a"),
            LookupByPerson(ALICE, "umbrella", "so1", "a"),
            LookupByPerson(ALICE, "initech", "so1", "a"),
            LookupByPerson(ELSEWHERE, "acme", "so1", "a"),
            LookupByPerson(ALICE, "acme\0", None, None),
        ]
    )

    assert one is not None and other is not None
    assert (one.caller, one.key, one.token_id) == (stored.tenant, key, "member/m1")
    assert one.scope == scope_of(MemberRole.VIEWER)
    assert (other.caller, other.owner, other.granted) == (stored.other, stored.tenant, False)
    assert (one.known_by, none, foreign, nothing) == (ALICE.digest, None, None, None)


def test_what_a_member_reads_by_a_grant_ends_with_it(stored: Stored) -> None:
    key = stored.create("so1")
    stored.add_member("m", ALICE, "viewer", tenant=stored.other)
    grant = Grant("g", stored.other, None, derived_only=False)
    until = int(time.time() * 1000) + 600_000
    stored.change_store.grant(NewGrant(key, grant, 1000, until), 9)

    (found,) = stored.addresses.of_members([LookupByPerson(ALICE, "umbrella", "so1", "a")])

    assert found is not None
    assert found.granted
    assert 0 < (found.expires_in or 0) <= 600


def test_members_of_a_tenant_that_is_deleted_are_nobody(stored: Stored) -> None:
    stored.add_member("m1", ALICE, "viewer")
    lookups = [LookupByPerson(ALICE, "acme", None, None)]
    assert stored.addresses.of_members(lookups) != [None]

    stored.tenants.delete_tenant("acme")

    assert stored.addresses.of_members(lookups) == [None]
    assert stored.database.rows("SELECT id FROM members") == []


def test_an_address_tells_by_what_its_caller_is_known(stored: Stored) -> None:
    address = stored.addresses.address(stored.token, None, None)
    (again,) = stored.addresses.addresses([Lookup(stored.token, None, None)])

    assert address is not None and again is not None
    assert address.known_by == again.known_by == digest(stored.token)


def test_what_leaves_its_partition_is_told_and_waited_for(stored: Stored) -> None:
    """Until it is routed anew; it is still read from where it is. Others have their routes."""
    keys = [stored.create("so1"), stored.create("so2")]
    here = [stored.graph.nodes([each.id])[each.id].partition for each in keys]
    stored.database.rows("UPDATE service_objects SET active_version = 1")
    stored.database.rows("UPDATE service_objects SET active_change = 2^62::bigint")
    change = stored.change_store.move(keys[0], 1 - here[0], 9)
    assert change is not None
    stored.change_store.leave(change)
    told = [stored.addresses.address(stored.token, each.id, "a") for each in keys]
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            stored.change_store.finish({0: change})

    routes = Routes(PostgresStatements(stored.database, "routes"), sleep=wait)

    assert [(each.partition, each.leaves) for each in told if each] == [
        (here[0], True),
        (here[1], False),
    ]
    assert routes.settled(["so2"]) == {"so2": (here[1], False)} and waits == []
    assert routes.now(["so1"]) == {"so1": (here[0], True)} and waits == []
    assert routes.settled(["so1", "so2"]) == {"so1": (1 - here[0], False), "so2": (here[1], False)}
    assert len(waits) == 3


def test_who_moves_it_may_have_died(stored: Stored) -> None:
    """Then it goes where it was, after a second."""
    key = stored.create("so1")
    stored.database.rows("UPDATE service_objects SET route_partition = ~1")
    now = itertools.count(step=0.25)
    routes = Routes(
        PostgresStatements(stored.database, "routes"), lambda: next(now), lambda _seconds: None
    )

    assert routes.settled([key.id]) == {"so1": (1, True)}
    assert next(now) < 3 * MOST_SECONDS
