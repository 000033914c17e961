"""Wires the ports to Postgres and Kafka. Importing a module opens nothing; this does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from servioticy.changes import Changes
from servioticy.domain.log_loss import Present
from servioticy.domain.records import LogRecord
from servioticy.domain.topics import Topics
from servioticy.errors import SettingsError, Unavailable
from servioticy.messaging.admin import topic_id
from servioticy.messaging.consumer import EmittedReader, LogEnds
from servioticy.messaging.producer import Emitter, LogWriter
from servioticy.ports.addresses import Addresses
from servioticy.ports.history import History
from servioticy.ports.log import Log
from servioticy.ports.service_objects import ServiceObjects
from servioticy.ports.stream_graph import StreamGraph
from servioticy.ports.subscriptions import Subscriptions
from servioticy.ports.tenants import Tenants
from servioticy.settings import Settings
from servioticy.storage.addresses import PostgresAddresses
from servioticy.storage.change_store import PostgresChangeStore
from servioticy.storage.database import Database
from servioticy.storage.history import PostgresHistory
from servioticy.storage.service_objects import PostgresServiceObjects
from servioticy.storage.stream_graph import PostgresStreamGraph
from servioticy.storage.subscriptions import PostgresSubscriptions
from servioticy.storage.tenants import PostgresTenants

STATEMENT_SECONDS = 30.0
"""Of a request: a thread that waits longer for Postgres is needed for others."""


class KafkaLog:
    """The Log on Kafka.

    It does not grow while it ends before what is stored of it (`progress`): that would hide
    that a part of it is lost.
    """

    def __init__(
        self, settings: Settings, progress: Callable[[int], int] = lambda _partition: 0
    ) -> None:
        self._progress = progress
        self._whole: set[int] = set()
        topics = Topics(settings.topic_prefix)
        self._writer = LogWriter(
            settings.bootstrap_servers, topics, settings.accept_timeout_seconds
        )
        self._ends = LogEnds(settings.bootstrap_servers, topics)
        self._partitions = 0

    def append(self, partition: int, record: LogRecord) -> int:
        """Append and return the offset once it is safe. Raises Unavailable, Rejected."""
        if partition not in self._whole:
            stored = self._progress(partition)
            if stored > (end := self.end_offset(partition)):
                raise Unavailable(
                    f"partition {partition} of the log ends at {end}, before {stored}, up to "
                    "where it is stored: see `servioticy doctor`"
                )
            self._whole.add(partition)
        try:
            return self._writer.append(partition, record)
        except Unavailable:
            self._whole.discard(partition)  # who knows what the broker comes back with
            raise

    def end_offset(self, partition: int) -> int:
        """The offset the next record will get."""
        return self._ends.end_offset(partition)

    def partitions(self) -> int:
        """How many partitions there are; that does not change while we run."""
        self._partitions = self._partitions or self._ends.partitions()
        return self._partitions


@dataclass(frozen=True, slots=True)
class Ports:
    """What the programs ask of Postgres and of the log."""

    tenants: Tenants
    addresses: Addresses
    service_objects: ServiceObjects
    graph: StreamGraph
    changes: Changes
    subscriptions: Subscriptions
    history: History
    log: Log


def ports(settings: Settings) -> Ports:
    """Connect to the platform's Postgres and Kafka."""
    database = connect(settings, statement_seconds=STATEMENT_SECONDS)
    log = KafkaLog(settings, PostgresHistory(database).progress)
    return ports_on(database, log, settings.change_wait_seconds)


def ports_on(database: Database, log: Log, change_wait_seconds: float = 10.0) -> Ports:
    """The ports on this Postgres and this log."""
    graph = PostgresStreamGraph(database)
    return Ports(
        tenants=PostgresTenants(database),
        addresses=PostgresAddresses(database),
        service_objects=PostgresServiceObjects(database),
        graph=graph,
        changes=Changes(graph, PostgresChangeStore(database, change_wait_seconds), log),
        subscriptions=PostgresSubscriptions(database),
        history=PostgresHistory(database),
        log=log,
    )


def connect(
    settings: Settings, *, durable: bool = True, statement_seconds: float | None = None
) -> Database:
    """Postgres as the settings name it; see Database for the rest."""
    if not settings.dsn:
        raise SettingsError(
            "no Postgres is named: set SERVIOTICY_DSN, or let `servioticy up` start one"
        )
    return Database(settings.dsn, durable=durable, statement_seconds=statement_seconds)


def present_log(settings: Settings) -> Present:
    """The log as the broker has it now. Raises Unavailable."""
    topics = Topics(settings.topic_prefix)
    ends = LogEnds(settings.bootstrap_servers, topics)
    partitions = range(ends.partitions())
    identity = topic_id(settings.bootstrap_servers, topics.updates)
    return Present(topics.updates, identity, {each: ends.bounds(each, 5.0) for each in partitions})


def emitter(settings: Settings, partition: int) -> Emitter:
    """Where the pipeline's task of this partition sends what it stored."""
    return Emitter(settings.bootstrap_servers, Topics(settings.topic_prefix), partition)


def emitted_reader(settings: Settings) -> EmittedReader:
    """What the pipeline emits from now on."""
    return EmittedReader(settings.bootstrap_servers, Topics(settings.topic_prefix))
