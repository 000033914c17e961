"""An API over the in-memory twins, and a pipeline that only stores what is put."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from sandbox.text import argument_names
from servioticy.domain.records import UpdateRecord
from servioticy.memory import MemoryPlatform
from servioticy.ports import Batch, StoredLast, StoredUpdate

NOW = 1_500_000_000.0
SIMPLE = {"streams": {"a": {"channels": {"x": {"type": "number"}}}}}
UPDATE = b'{"channels":{"x":{"current-value":1}},"lastUpdate":1}'


@dataclass
class Caller:
    """A tenant with a client of its own."""

    client: FlaskClient
    token: str

    def ask(self, method: str, path: str, **more: Any) -> TestResponse:
        headers = {"Authorization": self.token, **more.pop("headers", {})}
        return self.client.open(path, method=method, headers=headers, **more)

    def create(self, document: Any = SIMPLE) -> str:
        answer = self.ask("POST", "/", data=orjson.dumps(document))
        assert answer.status_code == 201, answer.text
        id_: str = answer.get_json()["id"]
        return id_

    def put(self, service_object: str, body: bytes = UPDATE, stream: str = "a") -> TestResponse:
        return self.ask("PUT", f"/{service_object}/streams/{stream}", data=body)


@dataclass
class Served:
    """The API and what stands behind it."""

    app: Flask
    platform: MemoryPlatform

    def tenant(self, name: str) -> Caller:
        return Caller(self.app.test_client(), self.platform.catalog.create_tenant(name))

    def store(self) -> None:
        """Store all updates in the log, as a pipeline without composites."""
        store = self.platform.partition_store(argument_names)
        for partition in range(self.platform.log.partitions()):
            for offset, record in self.platform.records(partition, store.begin(partition)[0]):
                updates, lasts = [], []
                if isinstance(record, UpdateRecord):
                    stream = self.platform.state.streams[record.origin]
                    text = bytes(record.update)
                    updates = [StoredUpdate(1, stream, record.timestamp, text, 1, offset, 0)]
                    lasts = [StoredLast(1, stream, record.timestamp, text, 1)]
                store.store(Batch(partition, offset, offset + 1, offset, updates, lasts))
            store.end(partition)
