"""Devices with a chain of composites each, and updates of them put straight into the log."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import msgspec
import orjson

from sandbox import argument_names
from servioticy.bootstrap import connect, emitter, ports
from servioticy.domain.documents import parse_service_object
from servioticy.domain.records import UpdateRecord
from servioticy.ports.change_store import NewServiceObject
from servioticy.settings import Settings
from servioticy.tools.bench import ground


def device(id_: str, tenant: int, length: int) -> NewServiceObject:
    """Return a Service Object with a stream `s0` and a chain of composites."""
    document = ground.chain(length)
    definition = parse_service_object(document, id_, argument_names)
    streams = tuple(stream.ref.stream for stream in definition.streams)
    return NewServiceObject(id_, tenant, False, orjson.dumps(document), streams, (), 0)


def update(id_: str, at: int) -> UpdateRecord:
    """Return an update of a device's `s0`; value and timestamp are `at`."""
    body = orjson.dumps({"channels": {"v": {"current-value": at}}, "lastUpdate": at})
    return UpdateRecord(id_, "s0", at, msgspec.Raw(body))


def devices(settings: Settings, count: int, length: int) -> list[tuple[str, int]]:
    """Make devices; the id and partition of each."""
    found = ports(settings)
    tenant = found.tenants.tenant_of(found.tenants.create_tenant("bench")) or 0
    ids = [secrets.token_hex(12) for _ in range(count)]
    for id_ in ids:
        found.changes.create(device(id_, tenant, length))
    placed = found.graph.nodes(ids)
    return [(id_, placed[id_].partition) for id_ in ids]


def fill(settings: Settings, placed: Sequence[tuple[str, int]], first: int, count: int) -> None:
    """Append updates of one device after the other, with timestamps from `first` on."""
    output = emitter(settings, 0)
    for at in range(first, first + count):
        id_, partition = placed[at % len(placed)]
        output.send_to_log(partition, update(id_, at))
    output.flush()


def ends(settings: Settings) -> list[int]:
    """Return how far each partition of the log reaches."""
    log = ports(settings).log
    return [log.end_offset(partition) for partition in range(log.partitions())]


class Progress:
    """How far the pipeline has stored, over all partitions."""

    def __init__(self, settings: Settings) -> None:
        self._database = connect(settings)

    def total(self) -> int:
        """Return the records of the log that are stored."""
        return int(self._database.rows("SELECT sum(next_offset) FROM progress")[0][0] or 0)

    def rows(self) -> int:
        """Return the rows of history."""
        return int(self._database.rows("SELECT count(*) FROM updates")[0][0])

    def close(self) -> None:
        """Close the connection."""
        self._database.close()
