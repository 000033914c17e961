"""Threads that share connections: as many as are in use at once, and what a lock needs stays."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from servioticy.errors import Unavailable
from servioticy.storage.database import Database

BACKEND = "SELECT pg_backend_pid()"
LOCK, UNLOCK = "SELECT pg_try_advisory_lock(7002)", "SELECT pg_advisory_unlock(7002)"


@pytest.fixture
def shared(session_dsn: str) -> Iterator[Database]:
    database = Database(session_dsn, shared=True)
    yield database
    database.close()


def backend(database: Database) -> int:
    return int(database.rows(BACKEND)[0][0])


def in_a_thread(database: Database) -> int:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(backend, database).result()


def test_threads_one_after_the_other_have_one_connection(shared: Database) -> None:
    assert len({in_a_thread(shared) for _ in range(5)} | {backend(shared)}) == 1


def test_a_transaction_has_a_connection_of_its_own(shared: Database) -> None:
    with shared.transaction():
        own = backend(shared)

        assert in_a_thread(shared) != own
        assert backend(shared) == own


def test_threads_at_once_do_not_see_each_others_transactions(shared: Database) -> None:
    shared.rows("CREATE TABLE shared_by_threads (number integer)")
    both = threading.Barrier(2, timeout=20)

    def add(number: int) -> int:
        with shared.transaction():
            shared.rows("INSERT INTO shared_by_threads VALUES (%(number)s)", {"number": number})
            both.wait()
            ((count,),) = shared.rows("SELECT count(*) FROM shared_by_threads")
            both.wait()
        return int(count)

    try:
        with ThreadPoolExecutor(2) as pool:
            assert list(pool.map(add, range(2))) == [1, 1]
    finally:
        shared.rows("DROP TABLE shared_by_threads")


def test_a_lock_is_held_by_who_has_it_in_a_session(shared: Database) -> None:
    """Another thread has another connection meanwhile, and does not get it."""
    with shared.session():
        assert shared.rows(LOCK) == [(True,)]
        with ThreadPoolExecutor(1) as pool:

            def ask() -> object:
                with shared.session():
                    return shared.rows(LOCK)

            assert pool.submit(ask).result() == [(False,)]
        assert shared.rows(UNLOCK) == [(True,)]


def test_a_lock_outside_a_session_is_refused(shared: Database) -> None:
    """It would stay with whoever has the connection next, and be given back by nobody."""
    with pytest.raises(RuntimeError, match="a lock of a connection"):
        shared.rows(LOCK)
    with shared.transaction(), pytest.raises(RuntimeError, match="a lock of a connection"):
        shared.rows(LOCK)


def test_who_listens_keeps_the_connection(shared: Database) -> None:
    assert shared.heard("shared_connections", 0.0) is None
    own = backend(shared)

    assert in_a_thread(shared) != own
    shared.rows("NOTIFY shared_connections, 'said'")
    assert shared.heard("shared_connections", 20.0) == ["said"]


def test_connections_that_the_server_has_ended_are_replaced(
    shared: Database, session_dsn: str
) -> None:
    """All at once: else each that waits for somebody would fail one of them."""
    with shared.transaction():
        one, other = backend(shared), in_a_thread(shared)
    owner = Database(session_dsn)
    for each in (one, other):
        owner.rows("SELECT pg_terminate_backend(%(pid)s, 20000)", {"pid": each})
    owner.close()

    assert backend(shared) not in (one, other)
    with shared.transaction():
        assert backend(shared) not in (one, other)


def test_a_transaction_on_a_connection_that_has_ended_fails_once(
    shared: Database, session_dsn: str
) -> None:
    own = backend(shared)
    owner = Database(session_dsn)
    owner.rows("SELECT pg_terminate_backend(%(pid)s, 20000)", {"pid": own})
    owner.close()

    with pytest.raises(Unavailable), shared.transaction():
        shared.rows("SELECT 1")
    with shared.transaction():
        assert backend(shared) != own
