"""`python -m functions.working`: works on atoms until none has waited for a while, or SIGTERM.

`functions/__main__.py` runs it. What it takes to work, the log's client, the sandbox, is loaded
here alone.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Mapping

from functions.accounts import Accounts
from functions.dispatcher import Dispatcher
from functions.limits import limits
from functions.sinks import Sinks
from functions.steps import Scripts, Step
from ingest.accepting import Accepting
from ingest.ingest import Ingest
from ingest.parsing.definitions import Definitions
from ingest.parsing.document_parser import DocumentParser
from ingest.quotas import SendersQuotas
from ingest.updates_waiting import UpdatesWaiting
from sandbox import argument_names
from servioticy import bootstrap, logs, settings
from servioticy.domain.evaluators.javascript import JavaScript
from servioticy.domain.quotas import ATOM_BYTES, PROCESSOR_SECONDS, quotas
from servioticy.domain.workflows.model import Workflow
from servioticy.errors import ServioticyError, Unavailable
from servioticy.settings import Settings
from servioticy.storage.addresses import PostgresAddresses
from servioticy.storage.atoms import PostgresAtoms
from servioticy.storage.database import Database
from servioticy.storage.history import PostgresHistory
from servioticy.storage.quotas import PostgresQuotas
from servioticy.storage.roles import Role
from servioticy.storage.service_objects import PostgresServiceObjects
from servioticy.storage.statements import PostgresStatements
from servioticy.storage.usage import PostgresUsage

LISTEN_SECONDS = 30.0
QUOTAS_SECONDS = 10.0
"""So old may be what is known of tenants' quotas."""
PARENT_SECONDS = 1.0


def main() -> int:
    """Work; an expected failure is one line and exit code 1."""
    try:
        chosen = settings.load()
        logs.configure(chosen.log_level)
        _work(chosen)
    except (ServioticyError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


def _work(chosen: Settings) -> None:
    database = bootstrap.connect(chosen, Role.DELIVERY)
    quick = bootstrap.connect(chosen, Role.DELIVERY, durable=False)
    own = limits(chosen)
    pool = bootstrap.sandbox_pool(chosen, max_workers=own.instances)
    scripts, sinks = (
        Scripts(JavaScript(pool)),
        Sinks(ingest(chosen, database), PostgresStatements(database, "batches")),
    )

    def step_of(workflow: Workflow, step: int) -> Step:
        return sinks if step == workflow.sink_step else scripts

    atoms = PostgresAtoms(database)
    dispatcher = Dispatcher(
        atoms,
        step_of,
        own,
        Accounts(PostgresAtoms(quick), PostgresUsage(quick)),
        QuotasOfTenants(chosen, quick),
        close=database.close,
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: dispatcher.stop())
    for each in (lambda: _listen(atoms, dispatcher.wake), lambda: _watch_parent(dispatcher.stop)):
        threading.Thread(target=each, daemon=True).start()
    try:
        dispatcher.run()
    finally:
        pool.close()


def ingest(chosen: Settings, database: Database) -> Ingest:
    """Return the way of updates into the log, for the sinks."""
    history, parser = PostgresHistory(database), DocumentParser()
    given = SendersQuotas(PostgresStatements(database, "used_quotas"), quotas(chosen))
    definitions = Definitions(PostgresServiceObjects(database), argument_names, parser, parser)
    waiting = UpdatesWaiting(history, given)
    accepting = Accepting(chosen.requests, waiting, given, time.time)
    log = bootstrap.log(chosen, database)
    return Ingest(PostgresAddresses(database), log, definitions, given, accepting)


class QuotasOfTenants:
    """How tenants stand to their quotas, as that was some seconds ago at most."""

    def __init__(self, chosen: Settings, database: Database) -> None:
        self._stored = PostgresQuotas(database)
        self._quotas = quotas(chosen)
        self._resting: Collection[int] = ()
        self._given: Mapping[int, int] = {}
        self._at = float("-inf")

    def resting(self) -> Collection[int]:
        """Return those who have used up their processor time of the hour."""
        self._look()
        return self._resting

    def full(self, held: Mapping[int, int]) -> Collection[int]:
        """Return those whose atoms, so many bytes, are more than may wait."""
        self._look()
        usual = self._quotas[ATOM_BYTES].most
        return {each for each, size in held.items() if size > self._given.get(each, usual)}

    def _look(self) -> None:
        if time.monotonic() - self._at >= QUOTAS_SECONDS:
            self._resting = self._stored.used_up(self._quotas[PROCESSOR_SECONDS]).keys()
            self._given = self._stored.of_all(ATOM_BYTES)
            self._at = time.monotonic()


def _listen(atoms: PostgresAtoms, wake: Callable[[], None]) -> None:
    while True:
        try:
            atoms.heard(LISTEN_SECONDS)
        except Unavailable:
            time.sleep(1.0)
        wake()


def _watch_parent(stop: Callable[[], None]) -> None:
    """Who was started by somebody that is killed works for nobody: another one is begun."""
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(PARENT_SECONDS)
    stop()


if __name__ == "__main__":
    sys.exit(main())
