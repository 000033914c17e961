"""What composites keep, in Postgres."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from servioticy.ports.batches import Batch
from servioticy.ports.kept_entries import DueEntry, EntryToAsk, KeptValue
from servioticy.storage.arrays import blobs, columns, numbers
from servioticy.storage.database import Database, Prepared
from servioticy.storage.queries import queries

_SQL = queries("kept_entries")


def kept(
    database: Database, wanted: Iterable[tuple[int, bytes]]
) -> dict[tuple[int, bytes], KeptValue]:
    """What streams keep under these keys."""
    streams, keys = columns(list(wanted), 2)
    values = {"streams": numbers(streams), "keys": blobs(keys)}
    return {
        (stream, bytes(key)): KeptValue(bytes(value), due)
        for stream, key, value, due in database.rows(_SQL["kept"], values)
    }


def due(database: Database, partition: int, now: int, most: int) -> Sequence[DueEntry]:
    """What is due, the oldest first; at most so many of each tenant."""
    values = {"partition": partition, "now": now, "most": most}
    return [
        DueEntry(service_object, stream, bytes(key), at)
        for service_object, stream, key, at in database.rows(_SQL["due"], values)
    ]


def to_ask(database: Database, partition: int, most: int) -> Sequence[EntryToAsk]:
    """For what somebody is to be asked; at most so many of each tenant."""
    values = {"partition": partition, "most": most}
    return [
        EntryToAsk(tenant, service_object, stream, stream_id, bytes(key), bytes(value))
        for tenant, service_object, stream, stream_id, key, value in database.rows(
            _SQL["to_ask"], values
        )
    ]


def next_due(database: Database, partition: int, after: int) -> int | None:
    """When the next entry is due behind this time."""
    row = database.row(_SQL["next_due"], {"partition": partition, "after": after})
    return None if row is None or row[0] is None else int(row[0])


def kept_parts(batch: Batch) -> Iterator[Prepared]:
    """What the batch keeps otherwise than before."""
    changed = [each for each in batch.kept if each.value is not None]
    if changed:
        tenants, streams, keys, values, dues = columns(changed, 5)
        yield Prepared(
            "keep",
            _SQL["keep"],
            {
                "partition": batch.partition,
                "tenants": numbers(tenants),
                "streams": numbers(streams),
                "keys": blobs(keys),
                "values": blobs(values),
                "dues": "{" + ",".join(["NULL" if e is None else str(e) for e in dues]) + "}",
            },
        )
    gone = [each for each in batch.kept if each.value is None]
    if gone:
        tenants, streams, keys, *_ = columns(gone, 5)
        yield Prepared(
            "drop_kept",
            _SQL["drop"],
            {"tenants": numbers(tenants), "streams": numbers(streams), "keys": blobs(keys)},
        )
