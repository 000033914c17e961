"""Builds what programs share from the settings. Importing a module opens nothing; this does."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from sandbox import argument_names
from servioticy import trust
from servioticy.changes import Changes
from servioticy.domain import log_loss
from servioticy.domain.console import Place
from servioticy.domain.log_loss import Present
from servioticy.domain.records import LogRecord
from servioticy.domain.topics import Topics
from servioticy.doors.certificate import Certificate, Files
from servioticy.errors import SettingsError, Unavailable
from servioticy.identity.console_sessions import ConsoleSessions
from servioticy.identity.issuers import with_persons
from servioticy.messaging.admin import Replicas, ensure_topics, topic_id
from servioticy.messaging.connection import KafkaConnection
from servioticy.messaging.consumer import EmittedReader, LogEnds, wait_until_led
from servioticy.messaging.emitted_pages import KafkaEmittedPages
from servioticy.messaging.emitter import Emitter
from servioticy.messaging.log_records import LogRecords
from servioticy.messaging.log_writer import LogWriter
from servioticy.messaging.stretches import Appender, Stretches
from servioticy.parts import connect as connect
from servioticy.parts import sandbox_pool as sandbox_pool
from servioticy.ports.actuations import ActuationRecords
from servioticy.ports.addresses import Addresses
from servioticy.ports.atoms import Atoms
from servioticy.ports.cursors import Sources
from servioticy.ports.history import History
from servioticy.ports.loads import Loads
from servioticy.ports.log import SharedLog
from servioticy.ports.service_objects import ServiceObjects
from servioticy.ports.statements import Statements
from servioticy.ports.stored_programs import StoredPrograms
from servioticy.ports.stream_graph import StreamGraph
from servioticy.ports.tenants import Tenants
from servioticy.settings import Settings
from servioticy.settings.places import EVERYWHERE, api_url
from servioticy.storage.actuations import PostgresActuations
from servioticy.storage.addresses import PostgresAddresses
from servioticy.storage.atoms import PostgresAtoms
from servioticy.storage.change_store import PostgresChangeStore
from servioticy.storage.database import Database
from servioticy.storage.history import PostgresHistory
from servioticy.storage.loads import PostgresLoads
from servioticy.storage.log_identity import PostgresLogIdentity
from servioticy.storage.partition_store import PostgresPartitionStore
from servioticy.storage.programs import PostgresPrograms
from servioticy.storage.roles import Role
from servioticy.storage.service_objects import PostgresServiceObjects
from servioticy.storage.sources import PostgresSources
from servioticy.storage.statements import PostgresStatements
from servioticy.storage.stream_graph import PostgresStreamGraph
from servioticy.storage.tenants import PostgresTenants

STATEMENT_SECONDS = 30.0
"""Of a request: a thread that waits longer for Postgres is needed for others."""
SEARCH_SECONDS = 10.0
"""Of a statement of a search: of a page, or of a block; or of a trial."""
PARTITIONS_SECONDS = 1.0
"""So old may be what is known of how many partitions there are."""


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
        seconds = settings.log.accept_timeout_seconds
        self._writer = LogWriter(kafka(settings), topics(settings), seconds)
        self._ends = log_ends(settings)
        self._records = LogRecords(kafka(settings), topics(settings))
        self._partitions, self._asked_at = 0, 0.0

    def append(self, partition: int, record: LogRecord) -> int:
        """Append and return the offset once it is safe. Raises Unavailable, Rejected."""
        with self._whole_before((partition,)):
            return self._writer.append(partition, record)

    def append_all(self, records: Sequence[tuple[int, LogRecord]]) -> None:
        """Append each to its partition, in this order. Raises Unavailable, Rejected."""
        with self._whole_before({partition for partition, _ in records}):
            self._writer.append_all(records)

    def others_at(self, partition: int) -> float:
        """Return when a record of another writer was last met there; by the monotonic clock."""
        return self._writer.others_at(partition)

    def record(self, caller: int, partition: int, offset: int) -> LogRecord | None:
        """Return what stands there; None where nothing does. Raises Unavailable."""
        return self._records.record(caller, partition, offset)

    @contextmanager
    def _whole_before(self, partitions: Collection[int]) -> Iterator[None]:
        """Raises Unavailable where one of them ends before what is stored of it."""
        for partition in set(partitions) - self._whole:
            stored = self._progress(partition)
            if stored > (end := self.end_offset(partition)):
                raise Unavailable(
                    f"partition {partition} of the log ends at {end}, before {stored}, up to "
                    "where it is stored: see `servioticy doctor`"
                )
            self._whole.add(partition)
        try:
            yield
        except Unavailable:
            # Who knows what the broker comes back with.
            self._whole.difference_update(partitions)
            raise

    def end_offset(self, partition: int) -> int:
        """Return the offset the next record will get."""
        return self._ends.end_offset(partition)

    def partitions(self) -> int:
        """Return how many partitions there are: some may be added while we run."""
        now = time.monotonic()
        if not self._partitions or now - self._asked_at >= PARTITIONS_SECONDS:
            self._partitions, self._asked_at = self._ends.partitions(), now
        return self._partitions


@dataclass(frozen=True, slots=True)
class Ports:
    """What the programs ask of Postgres and of the log.

    `statements` gives those of a resource by the name of its file of SQL.
    """

    tenants: Tenants
    addresses: Addresses
    service_objects: ServiceObjects
    graph: StreamGraph
    changes: Changes
    statements: Callable[[str], Statements]
    actuations: ActuationRecords
    sources: Sources
    history: History
    atoms: Atoms
    log: SharedLog
    emitted_ends: Callable[[], Mapping[int, int]]
    """Tells by partition how far the topic of what is emitted reaches. May raise Unavailable."""
    programs: StoredPrograms
    loads: Loads


def ports(settings: Settings) -> Ports:
    """Connect to the platform's Postgres and Kafka."""
    database = connect(settings, Role.API, statement_seconds=STATEMENT_SECONDS, shared=True)
    emitted = emitted_ends(settings)
    wait_seconds = settings.requests.change_wait_seconds
    found = ports_on(database, log(settings, database), emitted.ends, wait_seconds)
    return replace(found, addresses=addresses(settings, database))


def log(settings: Settings, database: Database) -> KafkaLog:
    """Return the log, for whoever appends to it; what is stored of it the database tells."""
    return KafkaLog(settings, PostgresHistory(database).progress)


def certificate(settings: Settings, client_ca: str = "") -> Certificate | None:
    """Return what clients are shown, looked after from now on; None: they speak plain text.

    Raises SettingsError, SetupError.
    """
    own = settings.tls
    if not own.certificate and not own.key:
        return None
    made = Certificate(Files(own.certificate, own.key, own.key_password, client_ca))
    made.start()
    return made


def trust_in_api(settings: Settings, shown: Certificate | None) -> ssl.SSLContext | bool:
    """Return whom programs believe that ask the API: on this machine the certificate itself."""
    if settings.mqtt.api_url or shown is None:
        return trust.authorities(settings.tls.ca) if settings.tls.ca else True
    known = trust.Known(settings.tls.certificate)
    shown.renewed = known.add
    return known.context


def console_place(settings: Settings) -> Place:
    """Return where browsers find us: never as a request calls us.

    Where we listen on all addresses and have not been told our name, nobody knows.
    """
    url = settings.requests.public_url.rstrip("/")
    if not url and settings.host not in EVERYWHERE:
        url = api_url(settings)
    return Place(url, settings.delivery.public_url.rstrip("/"), settings.delivery.port)


def console_sessions(database: Database) -> ConsoleSessions:
    """Return the sessions of the console."""
    return ConsoleSessions(PostgresStatements(database, "console_sessions"))


def addresses(settings: Settings, database: Database) -> Addresses:
    """Return what knows who asks, and what they name; persons, too, where issuers are set."""
    return with_persons(PostgresAddresses(database), settings.identity)


def searched(settings: Settings) -> tuple[History, Statements]:
    """Return what a process that only searches asks of Postgres; it connects when it asks."""
    database = connect(settings, Role.API, statement_seconds=SEARCH_SECONDS)
    return PostgresHistory(database), PostgresStatements(database, "search")


def tried(settings: Settings) -> tuple[History, Statements, Statements]:
    """Return what a process that tries changes asks of Postgres; it connects when it asks."""
    database = connect(settings, Role.API, statement_seconds=SEARCH_SECONDS)
    readable, trials = (PostgresStatements(database, each) for each in ("last_updates", "trials"))
    return PostgresHistory(database), readable, trials


def filled(settings: Settings) -> Statements:
    """Return what a process that fills asks of Postgres; it connects when it asks."""
    database = connect(settings, Role.API, statement_seconds=SEARCH_SECONDS)
    return PostgresStatements(database, "backfills")


def ports_on(
    database: Database,
    log: SharedLog,
    emitted_ends: Callable[[], Mapping[int, int]],
    change_wait_seconds: float = 10.0,
) -> Ports:
    """Return the ports on this Postgres and this log."""
    graph = PostgresStreamGraph(database)
    return Ports(
        tenants=PostgresTenants(database),
        addresses=PostgresAddresses(database),
        service_objects=PostgresServiceObjects(database),
        graph=graph,
        changes=Changes(
            graph,
            PostgresChangeStore(database, change_wait_seconds),
            log,
            wait_seconds=change_wait_seconds,
        ),
        statements=partial(PostgresStatements, database),
        actuations=PostgresActuations(database),
        sources=PostgresSources(database),
        history=PostgresHistory(database),
        atoms=PostgresAtoms(database),
        log=log,
        emitted_ends=emitted_ends,
        programs=stored_programs(database),
        loads=PostgresLoads(database),
    )


def stored_programs(database: Database) -> StoredPrograms:
    """Return where programs of tenants' own are kept."""
    return PostgresPrograms(database)


def partition_store(database: Database) -> PostgresPartitionStore:
    """Return where the pipeline's tasks keep what they compute."""
    return PostgresPartitionStore(database, argument_names)


def kafka(settings: Settings) -> KafkaConnection:
    """Return how Kafka is reached, as the settings name it. Raises SettingsError."""
    if not settings.log.bootstrap_servers:
        raise SettingsError(
            "no Kafka is named: set SERVIOTICY_BOOTSTRAP_SERVERS, or let `servioticy up` start one"
        )
    return KafkaConnection(settings.log.bootstrap_servers, settings.kafka)


def topics(settings: Settings) -> Topics:
    """Return the topics."""
    return Topics(settings.log.topic_prefix, settings.log.log_retention_days)


def make_topics(settings: Settings) -> None:
    """Make the topics that do not exist yet. Raises Unavailable, and SettingsError."""
    own = settings.log
    if 0 < own.replication_factor < own.min_insync_replicas:
        raise SettingsError(
            f"min_insync_replicas = {own.min_insync_replicas}: expected at most "
            f"replication_factor, {own.replication_factor}, or nothing would ever be taken"
        )
    replicas = Replicas(own.replication_factor, own.min_insync_replicas)
    ensure_topics(kafka(settings), topics(settings), own.partitions, replicas)


def log_ends(settings: Settings) -> LogEnds:
    """Return who tells how far the log reaches."""
    return LogEnds(kafka(settings), topics(settings).updates)


def emitted_ends(settings: Settings) -> LogEnds:
    """Return who tells how far the topic of what is emitted reaches."""
    return LogEnds(kafka(settings), topics(settings).emitted)


def check_log(settings: Settings, database: Database) -> None:
    """Raises LogLost unless the log has what is stored of it. Raises Unavailable."""
    log_loss.check(PostgresLogIdentity(database), lambda: present_log(settings))


def present_log(settings: Settings) -> Present:
    """Return the log as the broker has it now. Raises Unavailable."""
    name = topics(settings).updates
    identity = topic_id(kafka(settings), name)
    return Present(name, identity, log_ends(settings).all_bounds())


def emitter(settings: Settings, partition: int) -> Emitter:
    """Return where the pipeline's task of this partition sends what it stored."""
    return Emitter(kafka(settings), topics(settings), partition)


def emitted_reader(settings: Settings) -> EmittedReader:
    """Return what the pipeline emits from now on."""
    name = topics(settings).emitted
    return EmittedReader(
        kafka(settings), topics(settings), lambda: topic_id(kafka(settings), name)
    )


def emitted_pages(settings: Settings) -> KafkaEmittedPages:
    """Return what the pipeline has emitted, to be read from any place."""
    return KafkaEmittedPages(kafka(settings), topics(settings))


def wait_for_topics(settings: Settings) -> int:
    """Wait until the topics can be read, and return how many partitions the log has; 0: no log.

    A broker that has just started does not lead them yet. Raises Unavailable.
    """
    partitions = log_ends(settings).partitions()
    names = (topics(settings).updates, topics(settings).emitted)
    if partitions:
        wait_until_led(kafka(settings), names, partitions)
    return partitions


def stretches(settings: Settings) -> Stretches:
    """Return who reads topics as they are."""
    return Stretches(kafka(settings))


def appender(settings: Settings) -> Appender:
    """Return who appends to topics what another platform had in its own."""
    return Appender(kafka(settings))
