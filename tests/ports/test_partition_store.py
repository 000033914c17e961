"""What every PartitionStore promises, and what a History then shows of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from port_builders import Storage, a_batch, document, documents, everything, key

from servioticy.domain.model import LastUpdate, StreamRef
from servioticy.ports.accounts import Use
from servioticy.ports.batches import Batch, StoredState, StoredUpdate, StoredVerdict

A = StreamRef("so1", "a")


def test_what_takes_the_place_of_something_is_told_with_its_bytes(
    storage: Storage, stream: int
) -> None:
    """Stored before, or in the same batch; what is new takes the place of nothing."""
    other = storage.stream_id("so1", "b")
    assert storage.store.store(a_batch(stream, 0, at=1, value=1)) == {}
    updates = [
        StoredUpdate(1, stream, 1, document(22), 1, 1, 0),
        StoredUpdate(1, stream, 1, document(333), 1, 2, 0),
        StoredUpdate(1, other, 1, document(4), 1, 3, 0, True),
    ]

    replaced = storage.store.store(Batch(0, 1, 4, 1, updates))

    assert replaced == {stream: len(document(1)) + len(document(22))}


def test_who_has_used_up_a_quota_of_the_hour_is_told(storage: Storage, stream: int) -> None:
    tenant = storage.tenants.tenant_of(storage.tenants.create_tenant("acme")) or 0
    store = storage.store
    used = Use(tenant, A, tenant, computations={"emitted": 2, "stale": 1}, microseconds=2_000_000)
    store.account([used])

    def used_up(computations: int, seconds: int, stored: int = 100) -> Mapping[int, str]:
        return store.used_up(
            {"computations": computations, "processor-seconds": seconds, "stored-bytes": stored}
        )

    assert used_up(4, 3) == {}
    assert used_up(3, 3) == {tenant: "computations"}
    assert used_up(4, 2) == {tenant: "processor-seconds"}
    store.account([Use(tenant, A, tenant, rows=1, bytes=99, computations={"emitted": 1})])
    assert used_up(4, 3) == {tenant: "computations"}
    assert used_up(5, 3) == {}
    assert used_up(5, 3, 99) == {tenant: "stored-bytes"}


def test_every_update_tells_the_version_that_made_it(storage: Storage, stream: int) -> None:
    batch = a_batch(stream, 0, at=5, value=1)
    updates = [each._replace(version=3) for each in batch.updates]
    storage.store.store(replace(batch, updates=updates))

    assert [each[1:] for each in everything(storage, stream)] == [(document(1), 3)]
    assert storage.history.last_update(key(stream)) == (5, document(1), 3)


def test_history_is_ascending_whatever_came_first(storage: Storage, stream: int) -> None:
    for offset, at in enumerate((3, 1, 2)):
        storage.store.store(a_batch(stream, offset, at=at, value=at))

    assert documents(storage, stream) == [document(1), document(2), document(3)]


@pytest.mark.parametrize(
    ("second", "last"), [(4, 1), (5, 2), (6, 2)], ids=["older", "equal", "newer"]
)
def test_the_last_update_is_the_newest_and_equal_overwrites(
    storage: Storage, stream: int, second: int, last: int
) -> None:
    storage.store.store(a_batch(stream, 0, at=5, value=1))
    storage.store.store(a_batch(stream, 1, at=second, value=2))

    at = max(5, second)
    found = storage.history.last_update(key(stream))
    assert found is not None and found.document == document(last)
    assert storage.store.last_updates([stream]) == {stream: LastUpdate(at, document(last))}


def test_a_last_update_comes_with_the_state_of_its_stream(storage: Storage, stream: int) -> None:
    """Whatever the state is; a stream without updates has none to tell."""
    other = storage.stream_id("so1", "b")
    storage.store.store(a_batch(stream, 0, at=5, value=1))
    assert storage.store.last_updates([stream])[stream].state is None

    states = [b'{"\\\\":"\'\\u0000\xc3\xa9"}', b"\x00\xff", b""]
    for offset, state in enumerate(states, 1):
        both = [StoredState(1, each, state) for each in (stream, other)]
        storage.store.store(replace(a_batch(stream, offset, at=6, value=2), states=both))

        found = storage.store.last_updates([stream, other])
        assert found == {stream: LastUpdate(6, document(2), state)}

    storage.store.store(a_batch(stream, 4, at=7, value=3))
    assert storage.store.last_updates([stream]) == {stream: LastUpdate(7, document(3), b"")}


def test_the_same_timestamp_overwrites_in_history(storage: Storage, stream: int) -> None:
    storage.store.store(a_batch(stream, 0, at=5, value=1))
    storage.store.store(a_batch(stream, 1, at=5, value=2))

    assert documents(storage, stream) == [document(2)]


def test_the_same_timestamp_twice_in_a_batch_keeps_the_later(
    storage: Storage, stream: int
) -> None:
    first, second = (a_batch(stream, 0, at=5, value=v, position=v) for v in (1, 2))
    storage.store.store(replace(second, updates=[*first.updates, *second.updates]))

    assert documents(storage, stream) == [document(2)]


def test_new_updates_and_repeats_are_stored_together(storage: Storage, stream: int) -> None:
    """Both in one batch: repeats of what is there, and of what the batch itself brings."""
    storage.store.store(a_batch(stream, 0, at=5, value=1))
    rows = [(6, 2, True), (5, 3, False), (7, 4, True), (6, 5, False)]
    updates = [
        StoredUpdate(1, stream, at, document(value), 1, 1, place, is_new)
        for place, (at, value, is_new) in enumerate(rows)
    ]
    storage.store.store(Batch(0, 1, 2, 0, updates=updates))

    assert documents(storage, stream) == [document(each) for each in (3, 5, 4)]
    again = storage.store.not_acknowledged(0, 1, 2)
    assert [bytes(each.update) for each in again] == [document(each) for each in (2, 3, 4, 5)]


@pytest.mark.parametrize("times", [(5, 6), (6, 6), (6, 5, 6)])
def test_what_is_not_new_after_all_overwrites(
    storage: Storage, stream: int, times: tuple[int, ...]
) -> None:
    """It must not stop a partition that somebody is wrong about it."""
    storage.store.store(a_batch(stream, 0, at=5, value=0))
    updates = [
        StoredUpdate(1, stream, at, document(place), 1, 1, place, is_new=True)
        for place, at in enumerate(times)
    ]
    verdicts = [StoredVerdict(1, stream, "emitted", 1, b"{}")]
    storage.store.store(Batch(0, 1, 2, 0, updates=updates, verdicts=verdicts))

    last = {5: 0} | {at: place for place, at in enumerate(times)}
    assert documents(storage, stream) == [document(last[at]) for at in sorted(last)]
    assert len(storage.store.not_acknowledged(0, 1, 2)) == len(times)
    assert storage.history.verdicts(key(stream)) == [("emitted", 1, b"{}")]
    assert storage.store.begin(0) == (2, 0, 0)


def test_a_stream_without_updates_has_nothing(storage: Storage, stream: int) -> None:
    assert documents(storage, stream) == []
    assert storage.history.last_update(key(stream)) is None
    assert storage.store.last_updates([stream, 999]) == {}
    assert storage.store.last_updates([]) == {}
    assert storage.history.verdicts(key(stream)) == []


def test_a_reader_may_go_on_after_a_timestamp(storage: Storage, stream: int) -> None:
    for offset, at in enumerate((3, 1, 2, 4)):
        storage.store.store(a_batch(stream, offset, at=at, value=at))

    assert storage.history.updates_after(key(stream), 1, 2, 10_000) == [
        LastUpdate(2, document(2)),
        LastUpdate(3, document(3)),
    ]
    assert storage.history.updates_after(key(stream), 4, 2, 10_000) == []


def test_a_page_of_updates_ends_before_it_passes_its_bytes(storage: Storage, stream: int) -> None:
    """A reader's page is as long as it may be, and never empty while there is more."""
    for at in range(3):
        storage.store.store(a_batch(stream, at, at=at, value=at))
    size = len(document(0))

    def times(max_bytes: int) -> list[int]:
        page = storage.history.updates_after(key(stream), -1, 500, max_bytes)
        return [update.timestamp for update in page]

    assert times(3 * size) == [0, 1, 2]
    assert times(3 * size - 1) == [0, 1]
    assert times(size) == [0]
    assert times(1) == [0]


@pytest.mark.parametrize("is_new", [False, True])
def test_documents_come_back_untouched(storage: Storage, stream: int, is_new: bool) -> None:
    """Whatever stands in them: one cannot be taken for two, nor for a part of its row."""
    texts = [
        '{"z":1.0,"a":"é\\u0000","n":123456789012345678901234567890}'.encode(),
        rb'{"a":"\\.\n\t","b":"\\"}',
        b'{\t"c":\t1}',
        b'"PGCOPY\\n\\u00ff\\r\\n\\u0000"',
        b'{"x":"%s"}' % (b"x" * 1_000_000),
        b"{\r\n}",
        '{"\U0001f600":[]}'.encode(),
    ]
    updates = [
        StoredUpdate(1, stream, 2**63 - 1 - n, text, 1, 0, n, is_new)
        for n, text in enumerate(reversed(texts))
    ]
    storage.store.store(Batch(0, 0, 1, 0, updates=updates))

    found = storage.history.page(key(stream), (0, 2**63 - 1), 10, 10_000_000)
    assert [each.document for each in found] == texts


def test_verdicts_are_counted_and_the_last_is_kept(storage: Storage, stream: int) -> None:
    def verdicts(*rows: tuple[str, int, bytes]) -> list[StoredVerdict]:
        return [StoredVerdict(1, stream, *row) for row in rows]

    first = verdicts(("stale", 2, document(1)), ("emitted", 1, document(2)))
    storage.store.store(Batch(0, 0, 1, 0, verdicts=first))
    storage.store.store(Batch(0, 1, 2, 0, verdicts=verdicts(("stale", 3, document(3)))))

    assert storage.history.verdicts(key(stream)) == [
        ("emitted", 1, document(2)),
        ("stale", 5, document(3)),
    ]


def test_processor_time_adds_up(storage: Storage, stream: int) -> None:
    assert storage.history.processor_us(key(stream)) == 0
    (tenant,) = {each.tenant for each in storage.store.component("so1")}
    gone = StreamRef("gone", "a")
    storage.store.account([Use(tenant, each, tenant, microseconds=40) for each in (A, gone)])
    storage.store.account([Use(tenant, A, tenant, microseconds=2)])
    storage.store.account([])

    assert storage.history.processor_us(key(stream)) == 42
    assert storage.history.processor_us(key(999_999)) == 0  # no such stream


@pytest.mark.parametrize(
    ("most_rows", "most_bytes", "values"),
    [
        (3, 1_000, [1, 2, 3]),
        (2, 1_000, [1, 2]),
        (9, 2 * len(document(1)), [1, 2]),
        (9, 2 * len(document(1)) + 1, [1, 2, 3]),
        (9, 1, [1]),
    ],
)
def test_a_page_of_the_history_ends_with_what_reaches_its_bounds(
    storage: Storage, stream: int, most_rows: int, most_bytes: int, values: list[int]
) -> None:
    """Bounded in rows and in bytes, and never empty where there is something to read."""
    for value in (1, 2, 3, 4):
        storage.store.store(a_batch(stream, value - 1, value, value))

    page = storage.history.page(key(stream), (1, 3), most_rows, most_bytes)

    assert [(each.timestamp, each.document) for each in page] == [(v, document(v)) for v in values]
    assert storage.history.newest(key(stream)) == 4


def test_a_page_may_begin_with_the_newest(storage: Storage, stream: int) -> None:
    for at in range(1, 6):
        storage.store.store(a_batch(stream, at - 1, at, at))

    def page(first: int, last: int, rows: int, size: int) -> list[int]:
        history, span = storage.history, (first, last)
        found = history.page(key(stream), span, rows, size, newest_first=True)
        return [each.timestamp for each in found]

    assert page(2, 4, 9, 9_999) == [4, 3, 2]
    assert page(1, 5, 2, 9_999) == [5, 4]
    assert page(1, 5, 9, 1) == [5]
    assert page(6, 9, 9, 9_999) == []


def test_pages_follow_each_other_without_a_gap(storage: Storage, stream: int) -> None:
    for value in (1, 2, 3):
        storage.store.store(a_batch(stream, value - 1, value, value))

    assert [e.timestamp for e in storage.history.page(key(stream), (2, 3), 9, 999)] == [2, 3]
    assert storage.history.page(key(stream), (4, 9), 9, 999) == []
    assert storage.history.newest(key(stream + 1)) is None
