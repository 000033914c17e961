"""The way into the log over stores in memory, and a log that the test can let fail."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import orjson
from quota_builders import Ground

from ingest.accepting import Accepting
from ingest.ingest import Ingest
from ingest.pacing import Pacing
from ingest.parsing.definitions import Definitions
from ingest.parsing.document_parser import DocumentParser
from ingest.routes import Routes
from ingest.updates_waiting import UpdatesWaiting
from sandbox.text import argument_names
from servioticy.domain.model import StreamRef
from servioticy.domain.placement import Route
from servioticy.domain.records import LogRecord, UpdateRecord
from servioticy.errors import Unavailable
from servioticy.ports.addresses import Addresses
from servioticy.ports.log import BatchLog
from servioticy.ports.service_objects import VersionKey
from servioticy.settings import Settings

AWAY = Unavailable("the broker did not acknowledge in time")
DOCUMENT = {"streams": {"flow": {"channels": {"v": {"type": "number"}}}}}


class Came(NamedTuple):
    """An update in the log."""

    stream: StreamRef
    body: bytes


class PlayedLog:
    """Keeps to the protocol `BatchLog`; fails as often as the test says."""

    def __init__(self) -> None:
        self.came: list[Came] = []
        self.faults: list[Exception] = []
        """Raised next, one for each time somebody appends."""
        self.appended = 0
        """How often somebody has appended, in vain too."""
        self.may_answer = threading.Event()
        self.may_answer.set()

    @property
    def updates(self) -> list[bytes]:
        """What came, in its order."""
        return [each.body for each in self.came]

    def append(self, partition: int, record: LogRecord) -> int:
        self.append_all([(partition, record)])
        return len(self.came) - 1

    def append_all(self, records: Sequence[tuple[int, LogRecord]]) -> None:
        self.appended += 1
        self.may_answer.wait(60)
        if self.faults:
            raise self.faults.pop(0)
        for _, record in records:
            assert isinstance(record, UpdateRecord)
            self.came.append(Came(record.origin, bytes(record.update)))

    def forget(self) -> None:
        """As if nothing had been asked yet."""
        self.came.clear()
        self.faults.clear()
        self.appended = 0


class PlayedDocuments:
    """Every Service Object has this document, until the test says another one."""

    def __init__(self) -> None:
        self.document: dict[str, Any] = DOCUMENT
        self.read: list[VersionKey] = []

    def document_of(self, key: VersionKey) -> bytes:
        self.read.append(key)
        return orjson.dumps(self.document)


class StillRoutes(Routes):
    """Nothing moves."""

    def __init__(self) -> None:
        super().__init__(self)  # type: ignore[arg-type]

    def now(self, _service_objects: Collection[str]) -> Mapping[str, Route]:
        return {}


class PlayedIngest:
    """All that is behind it."""

    def __init__(
        self,
        addresses: Addresses,
        pacing: Pacing | None = None,
        log: BatchLog | None = None,
        routes: Routes | None = None,
        **quotas: int,
    ) -> None:
        self.log, self.documents, self.waiting = PlayedLog(), PlayedDocuments(), 0
        self.ground = Ground(**quotas)
        parser = DocumentParser()
        self.definitions = Definitions(self, argument_names, parser, parser)  # type: ignore[arg-type]
        limits = self.ground.quotas
        accepting = Accepting(
            Settings().requests,
            UpdatesWaiting(self, limits, self.ground.clock),  # type: ignore[arg-type]
            limits,
            time.time,
        )
        self.ingest = Ingest(
            addresses,
            log or self.log,
            self.definitions,
            limits,
            accepting,
            routes or StillRoutes(),
            pacing,
        )

    def document(self, key: VersionKey) -> bytes:
        return self.documents.document_of(key)

    def put_off(self, _partition: int, _tenant: int, _most: int) -> int:
        return self.waiting
