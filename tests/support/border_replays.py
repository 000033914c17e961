"""A history that crosses borders, for a pipeline alone, and what it leaves to each tenant."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from typing import Any

import msgspec
import orjson
from lone_pipeline import SECONDS, Emitted, Ground
from new_service_objects import new_service_object
from running_platform import until

from servioticy.domain.records import UpdateRecord
from servioticy.storage.tenants import PostgresTenants

READERS = 4
"""Tenants: more than one transaction has trees."""
QUIET_SECONDS = 2.0
VALUE = '.channels.v["current-value"]'


def _composite(code: str) -> dict[str, Any]:
    return {"channels": {"v": {"type": "number", "current-value": code}}}


_DEVICE = {
    "version": "0.2.0",
    "public": "true",
    "streams": {
        "data": {"channels": {"v": {"type": "number"}}},
        "double": _composite(f"function(data){{return data{VALUE}*2}}"),
    },
}


def _reading(device: str) -> dict[str, Any]:
    """Two streams of one record, the second only read or stale; and a memory of one's own."""
    groups = {name: {"soIds": [device], "stream": name} for name in ("data", "double")}
    return {
        "version": "0.2.0",
        "groups": groups,
        "streams": {
            "pair": _composite(f"function(data,double){{return data{VALUE}+double{VALUE}}}"),
            "count": _composite(f"function(double,count){{return count===null?1:count{VALUE}+1}}"),
        },
    }


def is_over(ground: Ground) -> bool:
    """Whether all of the log is stored and emitted, and nothing is on its way over a border.

    Of what is computed late nothing tells that it was sent: so it has been so for a while.
    """
    sql = "SELECT EXISTS (SELECT FROM put_off WHERE NOT taken_up)"
    end = ground.log.end_offset(0)
    if ground.progress() != (end, end) or ground.database.rows(sql)[0][0]:
        return False
    time.sleep(QUIET_SECONDS)
    return ground.log.end_offset(0) == end


@dataclass
class BorderReplay:
    """A public device, tenants that read it, and a history of updates."""

    ground: Ground

    def __post_init__(self) -> None:
        self._mark = secrets.token_hex(6)
        self.device = f"{self._mark}-device"
        tenants = PostgresTenants(self.ground.database)
        self._create(self.ground.tenant, self.device, _DEVICE)
        self.readers = [f"{self._mark}-{number}" for number in range(READERS)]
        for each in self.readers:
            tenant = tenants.tenant_of(tenants.create_tenant(each)) or 0
            self._create(tenant, each, _reading(self.device))
        self.finish()

    def send(self, updates: int, first: int = 0) -> None:
        """Append a part of the history; timestamps count from 1."""
        for timestamp in range(first + 1, first + updates + 1):
            body = {"channels": {"v": {"current-value": timestamp}}, "lastUpdate": timestamp}
            raw = msgspec.Raw(orjson.dumps(body))
            self.ground.log.append(0, UpdateRecord(self.device, "data", timestamp, raw))

    def finish(self) -> None:
        """Wait until everything is stored, emitted and over its borders."""
        until(lambda: is_over(self.ground), SECONDS)

    def stored(self) -> dict[str, list[Any]]:
        """All that is stored of it, with names that other replays share."""
        ids = {"ids": [self.device, *self.readers]}
        return {
            name: [self._plain(row) for row in self.ground.database.rows(sql, ids)]
            for name, sql in _STORED.items()
        }

    def emitted(self, emitted: Emitted) -> dict[str, list[tuple[Any, ...]]]:
        """What subscribers see of each stream, each update once; proves repeats are repeats."""
        found: dict[str, dict[int, bytes]] = {}
        for each in emitted.read():
            if each.service_object in (self.device, *self.readers):
                stream = f"{each.service_object}/{each.stream}".replace(self._mark, "")
                text = bytes(each.update)
                assert found.setdefault(stream, {}).setdefault(each.timestamp, text) == text
        return {stream: list(seen.items()) for stream, seen in sorted(found.items())}

    def _plain(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(
            each.replace(self._mark, "") if isinstance(each, str) else each for each in row
        )

    def _create(self, tenant: int, id_: str, document: dict[str, Any]) -> None:
        self.ground.changes.create(new_service_object(tenant, id_, document))


_STORED = {
    "updates": """
        SELECT service_object, name, "timestamp", document::text, version
          FROM updates JOIN streams ON streams.id = stream_id
         WHERE service_object = ANY(%(ids)s) ORDER BY service_object, name, "timestamp" """,
    "verdicts": """
        SELECT service_object, name, verdict, count, last::text
          FROM verdicts JOIN streams ON streams.id = stream_id
         WHERE service_object = ANY(%(ids)s) ORDER BY service_object, name, verdict""",
    "inputs": """
        SELECT reader, stream, kept, is_open, "timestamp", document::text
          FROM inputs_from_outside
         WHERE reader = ANY(%(ids)s) ORDER BY reader, stream""",
    "outside_readers": """
        SELECT reader, stream, is_open FROM outside_readers
         WHERE reader = ANY(%(ids)s) ORDER BY reader, stream""",
}
