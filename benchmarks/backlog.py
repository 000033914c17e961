"""Devices with composites over them, and updates of them put straight into the log."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

import msgspec
import orjson

from benchmarks import ground
from sandbox import argument_names
from servioticy.bootstrap import connect, emitter, ports
from servioticy.domain.documents import parse_service_object
from servioticy.domain.model import StreamRef
from servioticy.domain.records import UpdateRecord
from servioticy.domain.traces import MAKING
from servioticy.ports.change_store import NewServiceObject
from servioticy.settings import Settings

SHAPES = ("chain", "fan-out", "group", "two-tenants")
"""What computes over the devices: a chain of composites each; 100 composites each over the one
stream; one mean over all of them; a chain of one, and another tenant's composite over that."""

FAN_OUT = 100
TOGETHER = 500
"""Devices that are made in one transaction."""


def device(id_: str, tenant: int, length: int, *, public: bool = False) -> NewServiceObject:
    """Return a Service Object with a stream `s0` and a chain of composites."""
    return new(id_, tenant, ground.chain(length), public=public)


def new(
    id_: str,
    tenant: int,
    document: dict[str, Any],
    sources: Sequence[StreamRef] = (),
    *,
    public: bool = False,
) -> NewServiceObject:
    """Return a Service Object whose group `g`, if there are sources, has these members."""
    document = document | ({"public": "true"} if public else {})
    definition = parse_service_object(document, id_, argument_names)
    streams = tuple(stream.ref.stream for stream in definition.streams)
    groups = tuple(("g", each) for each in sources)
    return NewServiceObject(id_, tenant, public, orjson.dumps(document), streams, groups, 0)


def _over(sources: Sequence[StreamRef], code: str) -> dict[str, Any]:
    """Return a document with a composite over a group of streams of one name."""
    channel = {"type": "number", "current-value": code}
    group = {"soIds": [each.service_object for each in sources], "stream": sources[0].stream}
    streams = {"mean": {"channels": {"v": channel}}}
    return {"version": "0.2.0", "groups": {"g": group}, "streams": streams}


def _wide(width: int) -> dict[str, Any]:
    """Return a document with a simple stream `s0` and so many composites over it."""
    document = ground.chain(1)
    one = document["streams"].pop("s1")
    document["streams"] |= {f"s{n}": one for n in range(1, width + 1)}
    return document


def update(id_: str, at: int) -> UpdateRecord:
    """Return an update of a device's `s0`; value and timestamp are `at`.

    With a trace context where somebody measures here, as `ingest` gives it one.
    """
    body = orjson.dumps({"channels": {"v": {"current-value": at}}, "lastUpdate": at})
    return UpdateRecord(id_, "s0", at, msgspec.Raw(body), trace=MAKING.of(None))


def devices(
    settings: Settings, count: int, length: int, shape: str = "chain"
) -> list[tuple[str, int]]:
    """Make devices, and what computes over them; the id and partition of each device."""
    found = ports(settings)
    ids = [secrets.token_hex(12) for _ in range(count)]
    value = 'channels.v["current-value"]'
    own, other = (
        found.tenants.tenant_of(found.tenants.create_tenant(f"bench-{ids[0]}-{n}")) or 0
        for n in range(2)
    )
    for first in range(0, count, TOGETHER):
        for id_ in ids[first : first + TOGETHER] if shape == "two-tenants" else ():
            found.changes.create(device(id_, own, 1, public=True))
            sources = [StreamRef(id_, "s1")]
            document = _over(sources, f"function(g){{return 2*g.{value}}}")
            found.changes.create(new(secrets.token_hex(12), other, document, sources))
        if shape != "two-tenants":
            some = ids[first : first + TOGETHER]
            found.changes.create_all([_device(each, own, length, shape) for each in some])
    if shape == "group":
        sources = [StreamRef(id_, "s0") for id_ in ids]
        code = (
            f"function(g,mean){{return mean===null?g.{value}:"
            f"mean.{value}+(g.{value}-mean.{value})/{count}}}"
        )
        found.changes.create(new(secrets.token_hex(12), own, _over(sources, code), sources))
    placed = found.graph.nodes(ids)
    return [(id_, placed[id_].partition) for id_ in ids]


def _device(id_: str, tenant: int, length: int, shape: str) -> NewServiceObject:
    if shape == "fan-out":
        return new(id_, tenant, _wide(FAN_OUT))
    return device(id_, tenant, 0 if shape == "group" else length)


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

    def waiting(self) -> bool:
        """Whether some of them have been put off, and are not computed yet."""
        return bool(
            self._database.rows("SELECT EXISTS (SELECT FROM put_off WHERE NOT taken_up)")[0][0]
        )

    def rows(self) -> int:
        """Return the rows of history."""
        return int(self._database.rows("SELECT count(*) FROM updates")[0][0])

    def written_ahead(self) -> int:
        """Return the bytes that Postgres has written to its log."""
        return int(self._database.rows("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn")[0][0])

    def close(self) -> None:
        """Close the connection."""
        self._database.close()
