"""A public device of one tenant, and many tenants that read it, on a platform that runs."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from running_platform import SECONDS_TO_RECOVER, RunningPlatform, until

from benchmarks.border.emitted import emitted
from command import found
from servioticy.domain.model import StreamRef
from servioticy.settings import Settings, load
from servioticy.storage.database import Database
from servioticy.storage.tenants import PostgresTenants

VALUE = '.channels.v["current-value"]'
DEVICE = {
    "version": "0.2.0",
    "public": "true",
    "streams": {
        "data": {"channels": {"v": {"type": "number"}}},
        "double": {
            "channels": {
                "v": {"type": "number", "current-value": f"function(data){{return data{VALUE}*2}}"}
            }
        },
    },
}
READ = (("data", 1), ("double", 2))
"""Streams of the device, and how many times the value that was sent each has."""


def reading(device: str, stream: str) -> dict[str, Any]:
    """A copy of the stream, and one that counts how often it was woken by it."""
    codes = {
        "copy": f"function(g){{return g{VALUE}}}",
        "count": f"function(g,count){{return count===null?1:count{VALUE}+1}}",
    }
    return {
        "version": "0.2.0",
        "groups": {"g": {"soIds": [device], "stream": stream}},
        "streams": {
            name: {"channels": {"v": {"type": "number", "current-value": code}}}
            for name, code in codes.items()
        },
    }


class Reader(NamedTuple):
    """A tenant's Service Object over one of the device's streams."""

    token: str
    id: str
    factor: int
    """of the values that it should have to those that were sent"""


class Readers:
    """So many tenants that read the device, in all partitions; each is fed when this is made."""

    def __init__(self, platform: RunningPlatform, number: int) -> None:
        self._platform = platform
        self.settings: Settings = found.of(load({}, {"data": str(platform.data)}))
        self.device = platform.create(DEVICE)
        self.sent = 0
        with ThreadPoolExecutor(4) as makers:
            self.readers = list(makers.map(self._make, enumerate(self._tokens(number))))
        until(lambda: all(map(self._is_fed, self.readers)), SECONDS_TO_RECOVER)

    def partitions(self) -> set[int]:
        """In which partitions the readers are computed."""
        return self.partitions_of([each.id for each in self.readers])

    def partitions_of(self, service_objects: Sequence[str]) -> set[int]:
        """In which partitions these are computed."""
        database = Database(self.settings.store.dsn)
        try:
            sql = "SELECT owner_partition FROM service_objects WHERE id = ANY(%(ids)s)"
            rows = database.rows(sql, {"ids": [*service_objects]})
        finally:
            database.close()
        return {row[0] for row in rows}

    def send(self, updates: int) -> None:
        """Send so many more, each with its number for timestamp and value."""
        stream = StreamRef(self.device, "data")
        for _ in range(updates):
            self.sent += 1
            self._platform.put(stream, self.sent, v=self.sent)

    def assert_all_have_everything(self, but: Collection[str] = ()) -> None:
        """Every reader, but these, has every value, has computed by each once, in order, and told
        of it so."""
        readers = [each for each in self.readers if each.id not in but]
        for each in readers:
            until(lambda each=each: self._has_all(each), SECONDS_TO_RECOVER)
        numbers = {each.id: self._numbers(each) for each in readers}
        for each in readers:
            had = numbers[each.id]
            assert had == [*range(1, self.sent + 1)], each
            assert self._updates(each, "copy") == [(at, at * each.factor) for at in had], each
            assert self._updates(each, "count") == [(at, n) for n, at in enumerate(had, 1)], each
        told = emitted(
            self.settings,
            [StreamRef(each.id, name) for each in readers for name in ("copy", "count")],
        )
        for ref, timestamps in told.items():
            # After a death some are told again, behind what was told before.
            assert list(dict.fromkeys(timestamps)) == numbers[ref.service_object], ref

    def _numbers(self, reader: Reader) -> list[int]:
        """Those that a reader has computed by, as they are stored, in their order."""
        return [at for at, _ in self._updates(reader, "count")]

    def assert_all_have(self, platform: RunningPlatform, values: Sequence[int]) -> None:
        """On another platform, which has the same readers, and sent these values in order."""
        self._platform = platform
        self.sent = values[-1]
        for each in self.readers:
            until(lambda each=each: self._has_all(each), SECONDS_TO_RECOVER)
            assert self._updates(each, "copy") == [(at, at * each.factor) for at in values]
            assert [count for _, count in self._updates(each, "count")] == [
                *range(1, len(values) + 1)
            ]

    def used_by_others(self) -> dict[str, Any]:
        """What the device's tenant is told of how others have used its streams."""
        _, _, body = self._platform.request("GET", "/usage?side=provided")
        rows: Sequence[Mapping[str, Any]] = json.loads(body)["data"]
        return dict(rows[0]) if rows else {}

    def _tokens(self, number: int) -> list[str]:
        database = Database(self.settings.store.dsn)
        try:
            tenants = PostgresTenants(database)
            return [tenants.create_tenant(f"{self.device} {n}") for n in range(number)]
        finally:
            database.close()

    def _make(self, numbered: tuple[int, str]) -> Reader:
        number, token = numbered
        stream, factor = READ[number % len(READ)]
        wanted = reading(self.device, stream)
        status, _, body = self._platform.request("POST", "/", wanted, token)
        assert status == 201, body
        return Reader(token, json.loads(body)["id"], factor)

    def _is_fed(self, reader: Reader) -> bool:
        path = f"/{reader.id}/streams/copy/status"
        status, _, body = self._platform.request("GET", path, token=reader.token)
        told = json.loads(body).get("fromOutside") if status == 200 else None
        return told is not None and [each["state"] for each in told["inputs"]] == ["open"]

    def _has_all(self, reader: Reader) -> bool:
        path = f"/{reader.id}/streams/count/lastUpdate"
        status, _, body = self._platform.request("GET", path, token=reader.token)
        return status == 200 and json.loads(body)["data"][0]["lastUpdate"] >= self.sent

    def _updates(self, reader: Reader, stream: str) -> list[tuple[int, int]]:
        """Timestamp and value of each."""
        path = f"/{reader.id}/streams/{stream}"
        status, _, body = self._platform.request("GET", path, token=reader.token)
        assert status == 200, body
        return [
            (each["lastUpdate"], each["channels"]["v"]["current-value"])
            for each in json.loads(body)["data"]
        ]
