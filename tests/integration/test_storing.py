"""Storing a batch in Postgres: what goes wrong leaves nothing, and nothing in the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from sandbox import argument_names
from servioticy.domain.model import StreamKey
from servioticy.errors import Fenced, Unavailable
from servioticy.ports.batches import Batch, StoredUpdate, StoredVerdict
from servioticy.ports.put_off import PutOff, TreeKey
from servioticy.storage.database import Database
from servioticy.storage.history import PostgresHistory
from servioticy.storage.partition_store import _BESIDE, PostgresPartitionStore
from servioticy.storage.queries import queries
from servioticy.storage.roles import Role

STREAM = 7


@pytest.fixture
def database(dsn: str) -> Iterator[Database]:
    made = Database(dsn, role=Role.PIPELINE, durable=False)
    yield made
    made.close()


@pytest.fixture
def store(database: Database) -> PostgresPartitionStore:
    made = PostgresPartitionStore(database, argument_names)
    made.begin(0)
    return made


def an_update(at: int, document: bytes = b"{}", *, is_new: bool = True) -> StoredUpdate:
    return StoredUpdate(1, STREAM, at, document, 1, at, 0, is_new)


def stored(database: Database) -> list[tuple[int, str]]:
    return database.rows('SELECT "timestamp", document::text FROM updates ORDER BY 1')


@pytest.mark.parametrize("late", [(), (PutOff(0, 1, "so", b"{}"),)], ids=["alone", "with more"])
@pytest.mark.parametrize("is_new", [False, True])
def test_what_postgres_refuses_leaves_nothing(
    store: PostgresPartitionStore, database: Database, is_new: bool, late: tuple[PutOff, ...]
) -> None:
    """In whichever part of the message it stands; and the next batch is stored."""
    wrong = [
        Batch(0, 0, 1, 0, [an_update(1), an_update(2, b"{", is_new=is_new)], put_off=late),
        Batch(0, 0, 1, 0, [an_update(1, b'{"\x00":1}', is_new=is_new)], put_off=late),
        Batch(0, 0, 1, 0, [an_update(1)], (), [StoredVerdict(1, STREAM, "emitted", 1, b"{")]),
    ]
    for each in wrong:
        with pytest.raises(Exception, match=r"JSON|json|NUL|encoding"):
            store.store(each)
        assert stored(database) == []
        assert store.begin(0) == (0, 0, 0)

    store.store(Batch(0, 0, 1, 0, [an_update(1, is_new=is_new)], put_off=late))
    assert stored(database) == [(1, "{}")]


def test_a_connection_that_is_lost_is_replaced(
    store: PostgresPartitionStore, database: Database, dsn: str
) -> None:
    """What is prepared on it has to be prepared anew."""
    store.store(Batch(0, 0, 1, 0, [an_update(1)]))
    (pid,) = database.rows("SELECT pg_backend_pid()")[0]
    other = Database(dsn)
    other.rows("SELECT pg_terminate_backend(%(pid)s, 5000)", {"pid": pid})
    other.close()

    with pytest.raises(Unavailable):
        store.store(Batch(0, 1, 2, 0, [an_update(2)]))
    store.store(Batch(0, 1, 2, 0, [an_update(2)]))

    assert stored(database) == [(1, "{}"), (2, "{}")]


@pytest.mark.parametrize("statement", ["newest", "last_update", "page", "updates_after"])
def test_who_reads_does_not_notice_that_a_connection_was_lost(
    store: PostgresPartitionStore, dsn: str, statement: str
) -> None:
    """Servers restart, and each thread finds that out by itself, maybe an hour later."""
    store.store(Batch(0, 0, 1, 0, [an_update(1)]))
    stream = StreamKey(1, STREAM)
    reading = Database(dsn, role=Role.API)
    history = PostgresHistory(reading)
    ask: dict[str, Callable[[], object]] = {
        "newest": lambda: history.newest(stream),
        "last_update": lambda: history.last_update(stream),
        "page": lambda: history.page(stream, (0, 9), 10, 1000),
        "updates_after": lambda: history.updates_after(stream, 0, 10, 1000),
    }
    before = ask[statement]()
    (pid,) = reading.rows("SELECT pg_backend_pid()")[0]
    other = Database(dsn)
    other.rows("SELECT pg_terminate_backend(%(pid)s, 5000)", {"pid": pid})
    other.close()

    assert ask[statement]() == before  # an error where it is not asked again
    reading.close()


def test_it_is_told_where_an_update_was_not_new(
    store: PostgresPartitionStore, caplog: pytest.LogCaptureFixture
) -> None:
    """It costs time, and somebody has counted wrongly."""
    store.store(Batch(0, 0, 1, 0, [an_update(1)]))
    store.store(Batch(0, 1, 2, 0, [an_update(1, is_new=False)]))
    assert caplog.messages == []

    store.store(Batch(0, 2, 3, 0, [an_update(1)]))

    assert caplog.messages == ["update_was_not_new"]


def test_who_is_fenced_is_told_so_though_its_updates_are_stored(
    store: PostgresPartitionStore,
) -> None:
    """By whoever has the partition now: the fence is asked before anything else."""
    store.store(Batch(0, 0, 1, 0, [an_update(1)]))

    with pytest.raises(Fenced):
        store.store(Batch(0, 0, 1, 0, [an_update(1)]))


def test_a_partition_is_not_begun_while_an_earlier_claim_is_storing(
    store: PostgresPartitionStore, database: Database
) -> None:
    """What is stored late would be missing in what the new one reads."""
    lock = {"key": _BESIDE, "partition": 0}
    store.end(0)
    with ThreadPoolExecutor(1) as elsewhere:
        with database.transaction():
            database.rows(queries("partition")["store_beside"], lock)
            with pytest.raises(Unavailable, match="being stored"):
                elsewhere.submit(store.begin, 0).result()

        assert elsewhere.submit(store.begin, 0).result() == (0, 0, 0)


def test_what_is_stored_late_of_one_claim_does_not_wait_for_each_other(
    store: PostgresPartitionStore, database: Database
) -> None:
    """Much of one tenant takes long to store; nobody else is to wait for it."""
    claim = store.claim(0)
    store.store(Batch(0, 0, 2, 0, put_off=[PutOff(0, 1, "so", b"{}"), PutOff(1, 2, "so", b"{}")]))
    with ThreadPoolExecutor(1) as beside, database.transaction():
        database.rows(queries("partition")["store_beside"], {"key": _BESIDE, "partition": 0})
        late = Batch(0, 2, 2, 0, [an_update(1)], taken_up=[TreeKey(1)], claim=claim)
        beside.submit(store.store, late).result(60)

    assert stored(database) == [(1, "{}")]
