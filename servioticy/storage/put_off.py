"""What is computed later in Postgres: how its records come there and back, some of a MiB.

Values stand in statements, and psycopg2 writes bytes in hexadecimal: of 1 MiB that is 2 MiB for
Postgres to read as SQL, 20 ms of its processor, in which the partition waits. A record of the log
is a text, which is taken as it is, and comes back in Postgres' binary format.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from struct import Struct
from typing import Any

from servioticy.ports.put_off import PutOff, TreeKey
from servioticy.storage.arrays import columns, numbers
from servioticy.storage.database import Database
from servioticy.storage.queries import queries

LONG_BYTES = 16_384
"""A record of so many comes by itself: an array would copy it several times."""

_SQL = queries("put_off")

_HEADER_BYTES = 19
_ROW = Struct("!hiqiqi?i")
"""Five fields, each after its length, but for the content of the fourth and the fifth."""
_LENGTH = Struct("!i")


def keep(database: Database, partition: int, records: Sequence[PutOff]) -> None:
    """Keep records that are put off, in the transaction of their batch."""
    short = []
    for each in records:
        text = _text(each.record) if len(each.record) >= LONG_BYTES else None
        if text is None:
            short.append(each)
        else:
            values = each._asdict() | {"partition": partition, "record": text}
            database.rows(_SQL["keep_long"], values)
    if short:
        database.rows(_SQL["keep"], _arrays(partition, short))


def oldest(
    database: Database, partition: int, tenant: int, most: int, most_bytes: int
) -> list[PutOff]:
    """Return the tenant's oldest that wait; at most so many, and one whatever its size."""
    values = {"partition": partition, "tenant": tenant, "most": most, "most_bytes": most_bytes}
    rows = io.BytesIO()
    database.copy(_SQL["oldest"], rows, values=values)
    return list(_read(rows.getvalue(), tenant))


def note_taken_up(database: Database, partition: int, keys: Sequence[TreeKey]) -> None:
    """Note that they are computed."""
    database.rows(_SQL["take_up"], _keys(partition, keys))


def forget_emitted(database: Database, partition: int, keys: Sequence[TreeKey]) -> None:
    """Remove those of which all is emitted."""
    database.rows(_SQL["forget_emitted"], _keys(partition, keys))


def taken_up(database: Database, partition: int) -> list[TreeKey]:
    """Return those that are computed, and perhaps not all emitted."""
    rows = database.rows(_SQL["taken_up"], {"partition": partition})
    return [TreeKey(*row) for row in rows]


def waiting(database: Database, partition: int) -> dict[int, int]:
    """Return how many wait, by tenant; not those that are held."""
    return dict(database.rows(_SQL["waiting"], {"partition": partition}))


def begins(database: Database, partition: int) -> list[bytes]:
    """Return those that wait by which somebody is fed."""
    rows = database.rows(_SQL["begins"], {"partition": partition})
    return [bytes(record) for (record,) in rows]


def _keys(partition: int, keys: Sequence[TreeKey]) -> dict[str, Any]:
    offsets, trees = columns(keys, 2)
    return {"partition": partition, "offsets": numbers(offsets), "trees": numbers(trees)}


def _text(record: bytes) -> str | None:
    """Return what it is as a text that Postgres takes, if it is one."""
    try:
        text = record.decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _arrays(partition: int, records: Iterable[PutOff]) -> dict[str, Any]:
    offsets, tenants, service_objects, contents, trees, held, _ = columns([*records], 7)
    return {
        "partition": partition,
        "offsets": numbers(offsets),
        "trees": numbers(trees),
        "tenants": numbers(tenants),
        "service_objects": list(service_objects),
        "records": [memoryview(each) for each in contents],
        "held": list(held),
    }


def _read(rows: bytes, tenant: int) -> Iterator[PutOff]:
    """Yield what a COPY in binary format has."""
    at = _HEADER_BYTES
    while len(rows) - at >= _ROW.size:  # else it is the end, two bytes
        _, _, offset, _, tree, _, was_held, size = _ROW.unpack_from(rows, at)
        at += _ROW.size
        service_object = rows[at : at + size].decode()
        at += size
        (size,) = _LENGTH.unpack_from(rows, at)
        at += _LENGTH.size
        record = rows[at : at + size]
        at += size
        yield PutOff(offset, tenant, service_object, record, tree, False, was_held)
