"""The way of updates into the log as sinks have it: the log's client takes long to load."""

from __future__ import annotations

import time

from ingest.accepting import Accepting
from ingest.ingest import Ingest
from ingest.parsing.definitions import Definitions
from ingest.parsing.document_parser import DocumentParser
from ingest.quotas import SendersQuotas
from ingest.routes import Routes
from ingest.sharing import Sharing
from ingest.updates_waiting import UpdatesWaiting
from sandbox import argument_names
from servioticy import bootstrap
from servioticy.domain.quotas import quotas
from servioticy.settings import Settings
from servioticy.storage.addresses import PostgresAddresses
from servioticy.storage.database import Database
from servioticy.storage.history import PostgresHistory
from servioticy.storage.rates import PostgresRates
from servioticy.storage.roles import Role
from servioticy.storage.service_objects import PostgresServiceObjects
from servioticy.storage.statements import PostgresStatements


def ingest(chosen: Settings, database: Database) -> Ingest:
    """Wire it; documents that take long are read in a process that may be ended."""
    history, parser = PostgresHistory(database), DocumentParser()
    given = SendersQuotas(PostgresStatements(database, "used_quotas"), quotas(chosen))
    telling = bootstrap.connect(chosen, Role.DELIVERY, durable=False)
    Sharing(PostgresRates(telling), given).start()
    definitions = Definitions(PostgresServiceObjects(database), argument_names, parser, parser)
    waiting = UpdatesWaiting(history, given)
    accepting = Accepting(chosen.requests, waiting, given, time.time)
    log = bootstrap.log(chosen, database)
    routes = Routes(PostgresStatements(database, "routes"))
    return Ingest(PostgresAddresses(database), log, definitions, given, accepting, routes)
