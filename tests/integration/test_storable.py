"""Whatever the reader of the log accepts, Postgres stores."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as some

from servioticy.domain.records import UnreadableRecord, UpdateRecord, read_record
from servioticy.ports.batches import StoredUpdate
from servioticy.storage.arrays import texts
from servioticy.storage.batches import copied
from servioticy.storage.database import Copied, Database
from servioticy.storage.queries import queries

UPDATE = b'{"kind":"update","service_object":"a","stream":"b","timestamp":1,"update":{"x":%s}}'

PIECES = [b"{", b"}", b"[", b"]", b'"', b":", b",", b"\\", b"\\u0000", b"\\ud800", b"\\udc00"]
PIECES += [b"\xed\xa0\x80", b"\xff", b"1e999", b"1e308", b"-0", b"0.5", b"null", b"x", b"\x00"]
PIECES += [b'"\\ud83d\\ude00"', b"\xf4\x90\x80\x80", b"\xef\xbf\xbf", b"1" * 400, b"\\/", b"\x7f"]
STRINGS = some.lists(some.sampled_from(PIECES)).map(lambda them: b'"' + b"".join(them) + b'"')
VALUES = STRINGS | some.lists(some.sampled_from(PIECES)).map(b"".join) | some.binary()
DEEP = some.integers(1, 2000).map(lambda depth: b"[" * depth + b"]" * depth)


@pytest.fixture(scope="module")
def database(real_postgres) -> Iterator[Database]:
    made = Database(real_postgres.dsn)
    made.rows(
        """
        CREATE TEMPORARY TABLE stored_updates
            (tenant_id bigint, stream_id bigint, "timestamp" bigint, version integer,
             log_partition integer, log_offset bigint, log_position integer, document json)
        """
    )
    yield made
    made.close()


def stored(database: Database, value: bytes) -> bool:
    """Whether the reader accepts the value; if so it was stored as it came."""
    try:
        record = read_record(UPDATE % value)
    except UnreadableRecord:
        return False
    assert isinstance(record, UpdateRecord)
    update = bytes(record.update)
    sql = "SELECT document::json::text FROM unnest(%(documents)s::text[]) AS d (document)"
    assert database.rows(sql, {"documents": texts([update])}) == [(update.decode(),)]
    row = StoredUpdate(1, 2, 3, update, 4, 5, 6)
    database.together([Copied(queries("partition")["copy_updates"], copied([row, row], 7))])
    told = "tenant_id, stream_id, timestamp, document::text, version"
    kept = f"DELETE FROM stored_updates RETURNING {told}"
    assert database.rows(kept) == [(1, 2, 3, update.decode(), 4)] * 2
    return True


@settings(max_examples=examples(3000), deadline=None)
@given(value=VALUES | DEEP)
def test_what_is_accepted_can_be_stored(database: Database, value: bytes) -> None:
    """Else one record would stop its partition for everybody: it would be tried for ever."""
    stored(database, value)


@pytest.mark.parametrize("odd", [b'"\\u0000"', b"1e308", b"[" * 254 + b"]" * 254])
def test_the_odd_that_devices_may_send_is_stored(database: Database, odd: bytes) -> None:
    """The API accepts these: they must not be refused behind its back."""
    assert stored(database, odd)
