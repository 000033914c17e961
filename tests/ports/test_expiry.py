"""What is older than it is kept is seen by no reader and goes in pieces; the last one stays."""

from __future__ import annotations

import time
from collections.abc import Iterable

import pytest
from port_builders import PARTITIONS, TAKEN_BACK, Storage, a_service_object, key

from servioticy.domain.model import StreamKey
from servioticy.ports.batches import Batch, StoredUpdate
from servioticy.ports.effects import Activate

DAY = 86_400
ALL = 10**6
NOW = int(time.time())
FOREVER = (-(2**62), 2**62)


def create(storage: Storage, tenant: int, ttl: int | None, id_: str = "so1") -> None:
    """A Service Object in force whose streams are kept for so many seconds."""
    said = b"" if ttl is None else b'"dataTTL":%d,' % ttl
    names = b",".join(b'"%s":{"channels":{}}' % each.encode() for each in "ab")
    document = b'{%s"streams":{%s}}' % (said, names)
    new = a_service_object(tenant, id_, document=document)
    storage.change_store.create(new, PARTITIONS)
    at = storage.store.all_progress()[0]
    storage.store.store(Batch(0, at, at + 1, at, effect=Activate(id_, 1, 1)))


def put(storage: Storage, times: Iterable[int], id_: str = "so1", emitted: bool = True) -> None:
    """Updates with these timestamps; all but the newest are certainly acknowledged."""
    stored_as, at = storage.stored_as(id_), storage.store.all_progress()[0]
    tenant = storage.store.component(id_)[0].tenant
    rows = [
        StoredUpdate(tenant, stored_as, each, b'{"t":%d}' % each, 1, at + n, 0)
        for n, each in enumerate(times)
    ]
    end = at + len(rows)
    storage.store.store(Batch(0, at, end, at, updates=rows))
    storage.store.store(Batch(0, end, end + 1, end if emitted else at))


def seen(storage: Storage, id_: str = "so1") -> list[int]:
    """The timestamps of its history as readers see it, by each way of reading."""
    stream: StreamKey = key(storage.stream_id(id_, "a"), tenant_of(storage, id_))
    history = storage.history
    found = [each.timestamp for each in history.page(stream, FOREVER, ALL, ALL)]
    back = history.page(stream, FOREVER, ALL, ALL, newest_first=True)
    assert [each.timestamp for each in back] == found[::-1]
    after = history.updates_after(stream, -(2**62), ALL, ALL)
    assert [each.timestamp for each in after] == found
    return found


def tenant_of(storage: Storage, id_: str) -> int:
    return storage.store.component(id_)[0].tenant


def expire(storage: Storage, tenant: int, most: int = ALL) -> list[int]:
    """Remove all that has expired; how many updates each piece had."""
    pieces, after = [], 0
    while True:
        done = storage.store.expire(tenant, after, 10, most, ALL)
        if done.reached is None:
            return pieces
        pieces += [done.updates] if done.updates else []
        after = done.reached


@pytest.fixture
def tenant(storage: Storage) -> int:
    storage.store.begin(0)
    return storage.tenant()


@pytest.mark.parametrize("unit", [1, 1000])
def test_what_has_expired_is_not_seen_and_then_it_is_gone(
    storage: Storage, tenant: int, unit: int
) -> None:
    """In seconds and in milliseconds, as the newest update counts."""
    create(storage, tenant, ttl=DAY)
    old = [(NOW - days * DAY) * unit for days in (400, 3, 2)]
    new = [(NOW - hours * 3600) * unit for hours in (20, 1)]
    put(storage, [*old, *new])

    assert seen(storage) == new
    assert storage.rows("updates") == 5
    assert expire(storage, tenant) == [3]
    assert seen(storage) == new
    assert storage.rows("updates") == 2


def test_the_last_update_stays_whatever_its_age(storage: Storage, tenant: int) -> None:
    """Composites compute by it; a history that reaches back a day does not show it."""
    create(storage, tenant, ttl=DAY)
    times = [NOW - days * DAY for days in (9, 8)]
    put(storage, times)
    stream = key(storage.stream_id("so1", "a"), tenant)

    assert expire(storage, tenant) == [1]
    assert seen(storage) == []
    last = storage.history.last_update(stream)
    assert last is not None
    assert last.timestamp == times[-1] == storage.history.newest(stream)


def test_of_what_was_taken_back_nothing_stays_that_is_older_than_the_rest(
    storage: Storage, tenant: int
) -> None:
    """And has expired: else it is computed from, or may be. At the border, and no sooner."""
    create(storage, tenant, ttl=DAY)
    stored_as = storage.stored_as("so1")

    def store(at: int, *, back: bool) -> None:
        begin = storage.store.all_progress()[0]
        update = StoredUpdate(tenant, stored_as, at, b"{}", 1, begin, 0, takes_back=back)
        storage.store.store(Batch(0, begin, begin + 1, begin, updates=[update]))

    store(NOW - 3 * DAY, back=True)
    expire(storage, tenant)
    assert storage.rows(TAKEN_BACK) == 1, "it is the last one"
    store(NOW - 3 * DAY, back=False)
    expire(storage, tenant)
    assert storage.rows(TAKEN_BACK) == 1, "as new as the last one"
    store(NOW - 2 * DAY, back=False)
    expire(storage, tenant)

    assert storage.rows(TAKEN_BACK) == 0
    store(NOW - DAY // 2, back=True)
    store(NOW, back=False)
    expire(storage, tenant)
    assert storage.rows(TAKEN_BACK) == 1, "it has not expired"


@pytest.mark.parametrize(
    ("said", "default", "is_kept"),
    [(None, None, True), (None, DAY, False), (-1, DAY, True), (DAY, None, False), (0, None, True)],
)
def test_the_document_comes_before_the_platform(
    storage: Storage, tenant: int, said: int | None, default: int | None, is_kept: bool
) -> None:
    """And what earlier releases took without any use says nothing."""
    create(storage, tenant, said)
    storage.store.keep_for(default)
    times = [NOW - 2 * DAY, NOW]
    put(storage, times)

    assert seen(storage) == (times if is_kept else times[1:])
    assert sum(expire(storage, tenant)) == (0 if is_kept else 1)


def test_timestamps_that_count_something_else_do_not_get_old(
    storage: Storage, tenant: int
) -> None:
    create(storage, tenant, ttl=1)
    put(storage, range(5))

    assert expire(storage, tenant) == []
    assert seen(storage) == [*range(5)]


def test_it_goes_in_pieces(storage: Storage, tenant: int) -> None:
    create(storage, tenant, ttl=DAY)
    create(storage, tenant, ttl=DAY, id_="so2")
    for id_ in ("so1", "so2"):
        put(storage, [*range(NOW - 3 * DAY, NOW - 3 * DAY + 6), NOW], id_)

    assert expire(storage, tenant, most=4) == [4, 4, 4]
    assert storage.rows("updates") == 2


def test_what_is_perhaps_not_emitted_stays_until_it_is(storage: Storage, tenant: int) -> None:
    """After a crash it is emitted again from here: subscribers get everything."""
    create(storage, tenant, ttl=DAY)
    put(storage, [NOW - 2 * DAY, NOW], emitted=False)
    assert expire(storage, tenant) == []

    at = storage.store.all_progress()[0]
    storage.store.store(Batch(0, at, at + 1, at))
    assert expire(storage, tenant) == [1]


def test_another_tenants_updates_stay(storage: Storage, tenant: int) -> None:
    other = storage.tenant("umbrella")
    create(storage, other, ttl=DAY, id_="other")
    put(storage, [NOW - 2 * DAY, NOW], "other")

    assert expire(storage, tenant) == []
    assert expire(storage, other) == [1]


def test_each_tenant_is_of_one_partitions_turn(storage: Storage, tenant: int) -> None:
    other = storage.tenant("umbrella")
    for number, each in enumerate((tenant, other)):
        create(storage, each, ttl=DAY, id_=f"so{number}")
    storage.other_store.begin(1)
    found = [storage.store.forgetful(partition, 0, 10) for partition in (0, 1)]

    assert sorted([*found[0], *found[1]]) == sorted((tenant, other))
    assert storage.store.forgetful(0, max(tenant, other), 10) == []


def test_a_changed_document_keeps_for_as_long_as_it_says_now(
    storage: Storage, tenant: int
) -> None:
    create(storage, tenant, ttl=None)
    times = [NOW - 2 * DAY, NOW]
    put(storage, times)
    assert seen(storage) == times

    document = b'{"dataTTL":-1,"streams":{"a":{"dataTTL":3600,"channels":{}},"b":{"channels":{}}}}'
    new = a_service_object(tenant, "so1", document=document)
    assert storage.change_store.replace(new, storage.node("so1").revision) is not None

    assert seen(storage) == times[1:]
