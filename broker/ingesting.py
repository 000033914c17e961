"""The way into the log as the broker has it: over its own connections, as its own role."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from ingest.accepting import Accepting
from ingest.ingest import Ingest
from ingest.pacing import MAX_SECONDS, Pacing
from ingest.parsing.definitions import Definitions
from ingest.parsing.document_parser import DocumentParser
from ingest.progress import Progress
from ingest.quotas import SendersQuotas
from ingest.routes import Routes
from ingest.sharing import Sharing
from ingest.updates_waiting import UpdatesWaiting
from sandbox import argument_names
from servioticy.domain.quotas import quotas
from servioticy.forgetting import Forgetting
from servioticy.ports.addresses import Addresses
from servioticy.ports.log import SharedLog
from servioticy.ports.rates import Rates
from servioticy.settings import Settings
from servioticy.storage.database import Database
from servioticy.storage.history import PostgresHistory
from servioticy.storage.service_objects import PostgresServiceObjects
from servioticy.storage.statements import PostgresStatements


def ingest(
    chosen: Settings,
    database: Database,
    addresses: Addresses,
    log: SharedLog,
    clock: Callable[[], float] = time.time,
    rates: Rates | None = None,
) -> Ingest:
    """Wire it; documents that take long are read in a process that may be ended.

    Without `rates` quotas of a second are for this process alone.
    """
    history, parser = PostgresHistory(database), DocumentParser()
    limits = SendersQuotas(PostgresStatements(database, "used_quotas"), quotas(chosen))
    if rates is not None:
        Sharing(rates, limits).start()
    definitions = Definitions(PostgresServiceObjects(database), argument_names, parser, parser)
    ways = (definitions.forget_unused, limits.forget_unused)
    Forgetting(chosen.forget_seconds, ways).start()
    waiting = UpdatesWaiting(history, limits)
    accepting = Accepting(chosen.requests, waiting, limits, clock)
    wait = partial(Progress(history, log).hold, seconds=MAX_SECONDS)
    pacing = Pacing(wait, elsewhere=log.others_at)
    routes = Routes(PostgresStatements(database, "routes"))
    return Ingest(addresses, log, definitions, limits, accepting, routes, pacing)
