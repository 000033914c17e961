"""A history of updates for a pipeline alone, and what it leaves: the same after every death."""

from __future__ import annotations

import random
import secrets
from dataclasses import dataclass
from typing import Any

import msgspec
import orjson
from lone_pipeline import SECONDS, Emitted, Ground
from new_service_objects import new_service_object
from running_platform import until

from servioticy.domain.records import UpdateRecord

UPDATES = 240


def _history() -> list[int]:
    """Timestamps, all different; one in ten comes late."""
    chance = random.Random(4)
    late = [
        chance.randrange(1, 9) if n > 9 and chance.random() < 0.1 else 0 for n in range(UPDATES)
    ]
    return [1000 * (n - back) + (n if back else 0) for n, back in enumerate(late)]


HISTORY = _history()


@dataclass
class Replay:
    """Two devices, what is derived from them, and one history of updates.

    A filter, a chain, a memory of its own and a group over both; some updates come late,
    some make a script throw.
    """

    ground: Ground
    slow: bool = False
    """Whether its scripts take some milliseconds each, and belong to another tenant."""
    share: int = 1
    """One of so many records of the log, from its first one on, is of this replay."""

    def __post_init__(self) -> None:
        mark = secrets.token_hex(6)
        self.devices = [f"{mark}-first", f"{mark}-second"]
        self.derived = f"{mark}-derived"
        for id_ in self.devices:
            self._create(id_, _DEVICE)
        busy = BUSY if self.slow else ""
        self._create(self.derived, _derived(*self.devices, busy))
        self.first_offset = self.ground.log.end_offset(0)

    def send(self, updates: int = UPDATES, first: int = 0) -> None:
        """Append the history, or a part of it."""
        for number, timestamp in list(enumerate(HISTORY))[first : first + updates]:
            body = {
                "channels": {"v": {"current-value": number * 37 % 100}},
                "lastUpdate": timestamp,
            }
            record = UpdateRecord(
                self.devices[number % 2], "data", timestamp, msgspec.Raw(orjson.dumps(body))
            )
            self.ground.log.append(0, record)

    def finish(self) -> None:
        """Wait until everything is stored, emitted, and known to be."""
        end = self.ground.log.end_offset(0)
        until(lambda: not self.is_put_off() and self.ground.progress() == (end, end), SECONDS)

    def is_put_off(self) -> bool:
        """Whether something waits to be computed later."""
        sql = "SELECT EXISTS (SELECT FROM put_off WHERE NOT taken_up)"
        return bool(self.ground.database.rows(sql)[0][0])

    def stored(self) -> dict[str, list[Any]]:
        """All that is stored of it, with names and offsets that other replays share."""
        ids = {"ids": [*self.devices, self.derived]}
        tables = {name: self.ground.database.rows(sql, ids) for name, sql in _STORED.items()}
        tables["updates"] = [
            (*row[:5], (row[5] - self.first_offset) // self.share, row[6])
            for row in tables["updates"]
        ]
        return {name: [self._plain(row) for row in rows] for name, rows in tables.items()}

    def emitted(self, emitted: Emitted) -> list[tuple[Any, ...]]:
        """What subscribers see of it, each update once; proves that repeats are repeats."""
        seen: dict[tuple[Any, ...], bytes] = {}
        for each in emitted.read():
            if each.service_object in (*self.devices, self.derived):
                key = (each.service_object, each.stream, each.timestamp, each.version)
                text = bytes(each.update)
                assert seen.setdefault(key, text) == text
        return [self._plain((*key, text.decode())) for key, text in seen.items()]

    def _plain(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        mark = self.derived.removesuffix("derived")
        return tuple(each.replace(mark, "") if isinstance(each, str) else each for each in row)

    def _create(self, id_: str, document: dict[str, Any]) -> None:
        tenant = self.ground.slow_tenant if self.slow else self.ground.tenant
        self.ground.changes.create(new_service_object(tenant, id_, document))


_STORED = {
    "updates": """
        SELECT service_object, name, "timestamp", document::text, version, log_offset, log_position
          FROM updates JOIN streams ON streams.id = stream_id
         WHERE service_object = ANY(%(ids)s) ORDER BY log_offset, log_position""",
    "last_updates": """
        SELECT DISTINCT ON (service_object, name)
               service_object, name, "timestamp", document::text, version
          FROM updates JOIN streams ON streams.id = stream_id
         WHERE service_object = ANY(%(ids)s) ORDER BY service_object, name, "timestamp" DESC""",
    "states": """
        SELECT service_object, name, convert_from(state, 'UTF8')
          FROM states JOIN streams ON streams.id = stream_id
         WHERE service_object = ANY(%(ids)s) ORDER BY service_object, name""",
    "verdicts": """
        SELECT service_object, name, verdict, count, last::text
          FROM verdicts JOIN streams ON streams.id = stream_id
         WHERE service_object = ANY(%(ids)s) ORDER BY service_object, name, verdict""",
}

_DEVICE = {"version": "0.2.0", "streams": {"data": {"channels": {"v": {"type": "number"}}}}}


BUSY = "for(var i=0;i<200000;i++);"
"""Some four milliseconds."""


def _derived(first: str, second: str, busy: str) -> dict[str, Any]:
    value = '.channels.v["current-value"]'
    return {
        "version": "0.2.0",
        "groups": {
            "first": {"soIds": [first], "stream": "data"},
            "both": {"soIds": [first, second], "stream": "data"},
        },
        "streams": {
            "some": _stream(
                f"function(first){{{busy}return first{value}<20?null:first{value}+1}}"
            ),
            "next": _stream(
                f"function(some){{if(some{value}===51)throw new Error('no');{busy}"
                f"return some{value}*2}}"
            ),
            "mean": _stream(
                f"function(both, mean){{{busy}return mean===null?both{value}:"
                f"mean{value}+(both{value}-mean{value})/8}}"
            ),
        },
    }


def _stream(code: str) -> dict[str, Any]:
    return {"channels": {"v": {"type": "number", "current-value": code}}}
