"""What every store promises of grants: for the API at once, for composites by the log."""

from __future__ import annotations

import pytest
from port_builders import Storage

from servioticy.domain.model import Grant, ServiceObjectKey
from servioticy.ports.batches import Batch
from servioticy.ports.change_store import Change, NewGrant
from servioticy.ports.effects import Activate, Allow, Delete, Effect, Revoke


@pytest.fixture
def tenant(storage: Storage) -> int:
    """A tenant with the Service Object `so1`, in force, in partition 0."""
    tenant = storage.tenant()
    storage.create(tenant, "so1")
    storage.store.begin(0)
    took_effect(storage, 0, Activate("so1", 1, 1))
    return tenant


@pytest.fixture
def other(storage: Storage, tenant: int) -> int:
    return storage.tenant("other")


def took_effect(storage: Storage, offset: int, effect: Effect) -> None:
    storage.store.store(Batch(0, offset, offset + 1, offset, effect=effect))


def give(
    storage: Storage, tenant: int, grant: Grant, expires_at: int | None = None, most: int = 9
) -> Change | None:
    new = NewGrant(ServiceObjectKey(tenant, "so1"), grant, 1000, expires_at)
    return storage.change_store.grant(new, most)


def active(storage: Storage) -> tuple[Grant, ...]:
    (found,) = storage.store.service_objects(["so1"])
    return found.grants


def in_graph(storage: Storage, other: int) -> tuple[bool, bool]:
    """Whether the other tenant may derive from, and read, the stream `a`."""
    rule = storage.graph.nodes(["so1"])["so1"].granted
    return rule.may_derive(other, "a"), rule.may_read(other, "a")


def test_a_grant_is_in_force_where_the_log_says_so(
    storage: Storage, tenant: int, other: int
) -> None:
    grant = Grant("g", other, "a", derived_only=True)
    change = give(storage, tenant, grant)
    assert change == Change("so1", 1, 0, kind="grant", grant="g")
    assert storage.change_store.pending()[-1][1] == change
    assert storage.graph.grants(["so1", "nothing"]) == {"so1": (grant,)}
    assert in_graph(storage, other) == (True, False)
    assert active(storage) == ()

    took_effect(storage, 1, Allow("g"))

    assert active(storage) == (grant,)


def test_a_revoked_grant_is_read_by_until_the_log_says_so(
    storage: Storage, tenant: int, other: int
) -> None:
    """For the API it has gone at once, also where the pipeline has not come to it yet."""
    grant = Grant("g", other)
    give(storage, tenant, grant)
    change = storage.change_store.revoke(tenant, "g", 2000)

    assert change == Change("so1", 1, 0, kind="revocation", grant="g")
    assert in_graph(storage, other) == (False, False)
    assert storage.graph.grants(["so1"]) == {}
    took_effect(storage, 1, Allow("g"))
    assert active(storage) == (grant,)
    took_effect(storage, 2, Revoke("g"))
    assert active(storage) == ()
    took_effect(storage, 3, Allow("g"))
    assert active(storage) == (), "told again after its end"


def test_only_who_has_given_it_revokes_it_and_once(
    storage: Storage, tenant: int, other: int
) -> None:
    give(storage, tenant, Grant("g", other))

    assert storage.change_store.revoke(other, "g", 2000) is None
    assert storage.change_store.revoke(tenant, "h", 2000) is None
    assert storage.change_store.revoke(tenant, "g", 2000) is not None
    assert storage.change_store.revoke(tenant, "g", 2000) is None


def test_nobody_grants_what_is_not_there_or_not_his(
    storage: Storage, tenant: int, other: int
) -> None:
    assert give(storage, other, Grant("g", tenant)) is None
    assert give(storage, tenant, Grant("g", other, "nothing")) is None
    storage.change_store.delete(ServiceObjectKey(tenant, "so1"), None, 5)
    assert give(storage, tenant, Grant("g", other)) is None
    assert storage.graph.grants(["so1"]) == {}


def test_there_are_so_many_grants_of_a_service_object(
    storage: Storage, tenant: int, other: int
) -> None:
    assert give(storage, tenant, Grant("g", other), most=2) is not None
    assert give(storage, tenant, Grant("h", other, "a"), most=2) is not None
    assert give(storage, tenant, Grant("i", other, "b"), most=2) is None


def test_expired_grants_are_found_until_they_are_revoked(
    storage: Storage, tenant: int, other: int
) -> None:
    for id_, expires_at in (("g", 3000), ("h", 2000), ("i", 9000), ("j", None)):
        give(storage, tenant, Grant(id_, other), expires_at)
    expired = storage.change_store.expired

    assert expired(1999, 9) == []
    assert expired(3000, 9) == [(tenant, "h"), (tenant, "g")]
    assert expired(3000, 1) == [(tenant, "h")]
    storage.change_store.revoke(tenant, "h", 3000)
    assert expired(3000, 9) == [(tenant, "g")]
    storage.change_store.delete(ServiceObjectKey(tenant, "so1"), None, 5)
    assert expired(3000, 9) == []


def test_ends_are_overdue_until_they_are_carried_out(
    storage: Storage, tenant: int, other: int
) -> None:
    """Told again they change nothing that is carried out, as often as the log says it."""
    for id_, owner in (("so2", tenant), ("so3", other)):
        storage.create(owner, id_)
    give(storage, tenant, Grant("g", other, "a", derived_only=True))
    store = storage.change_store
    store.revoke(tenant, "g", 2000)
    for key, at in (
        (ServiceObjectKey(tenant, "so2"), 1500),
        (ServiceObjectKey(other, "so3"), 3000),
    ):
        store.delete(key, None, at)
    revoked = Change("so1", 1, 0, kind="revocation", grant="g")

    ends = store.overdue(3000, 9)

    assert [(who, each.service_object, each.kind) for who, each in ends] == [
        (tenant, "so2", "deletion"),
        (other, "so3", "deletion"),
        (tenant, "so1", "revocation"),
    ]
    assert ends[-1][1] == revoked
    assert store.overdue(3000, 2) == ends[:2]
    assert store.overdue(2999, 9) == [ends[0], ends[2]]
    store.tell_again(ends)
    assert [change for _, change in store.pending()][-3:] == [change for _, change in ends]
    effects = [Delete("so2"), Delete("so3"), Revoke("g")]
    for offset, effect in enumerate(2 * effects, start=1):
        took_effect(storage, offset, effect)
        storage.purge()
    assert store.overdue(3000, 9) == []
    assert (storage.rows("purge"), storage.rows("grants")) == (0, 0)


def test_grants_go_with_their_service_object(storage: Storage, tenant: int, other: int) -> None:
    """At the place in the log, as all else of it."""
    give(storage, tenant, Grant("g", other))
    took_effect(storage, 1, Allow("g"))
    storage.change_store.delete(ServiceObjectKey(tenant, "so1"), None, 5)
    assert active(storage) != ()

    took_effect(storage, 2, Delete("so1"))

    assert storage.rows("grants") == 0


def test_a_definition_shows_what_it_will_be_until_it_is(storage: Storage, tenant: int) -> None:
    again = Activate("so1", 1, 2)
    found = storage.store.changed([again]).get(again.service_object)
    assert found is not None
    assert (found.id, found.tenant, found.version) == ("so1", tenant, 1)

    took_effect(storage, 1, again)

    assert storage.store.changed([again]) == {}
    assert storage.store.changed([Activate("nothing", 1, 9)]) == {}
