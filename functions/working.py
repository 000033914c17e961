"""`python -m functions.working`: works on atoms until none has waited for a while, or SIGTERM.

`functions/__main__.py` runs it. What it takes to work, the log's client, the sandbox, is loaded
here alone.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from functions.accounts import Accounts
from functions.calling import Caller
from functions.dispatcher import Dispatcher
from functions.files.columns import Columns
from functions.files.objects import Objects
from functions.files.source import Source
from functions.files.spool import Spool
from functions.limits import Limits, limits
from functions.scripts import Scripts
from functions.sinks import Sinks
from functions.steps import Step
from functions.tables import Tables
from sandbox import InfraError, SandboxPool
from servioticy import logs, settings
from servioticy.domain.evaluators.javascript import JavaScript
from servioticy.domain.outside_addresses import Rules
from servioticy.domain.quotas import (
    ATOM_BYTES,
    ATOMS,
    DELIVERIES,
    FILES_KNOWN,
    PROCESSOR_SECONDS,
    quotas,
)
from servioticy.domain.workflows.model import PARQUET, TABLE, Workflow
from servioticy.domain.workflows.stores import stores
from servioticy.domain.workflows.tables import databases
from servioticy.errors import ServioticyError, Unavailable
from servioticy.parts import connect, sandbox_pool
from servioticy.settings import Settings
from servioticy.settings.places import callback_networks, own_ports
from servioticy.storage.atoms import PostgresAtoms
from servioticy.storage.database import Database
from servioticy.storage.gathered import PostgresGathered
from servioticy.storage.outside_tables import PostgresOutsideTables
from servioticy.storage.quotas import PostgresQuotas
from servioticy.storage.roles import Role
from servioticy.storage.statements import PostgresStatements
from servioticy.storage.usage import PostgresUsage

if TYPE_CHECKING:
    from ingest.ingest import Ingest

LISTEN_SECONDS = 30.0
QUOTAS_SECONDS = 10.0
"""So old may be what is known of tenants' quotas."""
PARENT_SECONDS = 1.0
SPARE = "--spare"
"""Says that we are to begin when we are told, by a byte."""

log = logging.getLogger("functions")


def main() -> int:
    """Work; an expected failure is one line and exit code 1."""
    try:
        chosen = settings.load()
        logs.configure(chosen.log_level)
        _work(chosen, is_spare=SPARE in sys.argv[1:])
    except (ServioticyError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


def _work(chosen: Settings, is_spare: bool) -> None:
    database = connect(chosen, Role.DELIVERY)
    quick = connect(chosen, Role.DELIVERY, durable=False)
    own = limits(chosen)
    pool = sandbox_pool(chosen, max_workers=own.instances)
    ends = ExitStack()
    ends.callback(pool.close)
    scripts = Scripts(partial(_evaluator, chosen, own, pool, ends))
    running = lru_cache(1)(partial(_running, chosen, database, ends))
    caller = Caller(Rules(callback_networks(chosen), own_ports(chosen)))
    streams = PostgresStatements(database, "batches")
    sinks = Sinks(partial(_ingest, chosen, database), streams, caller)

    def step_of(workflow: Workflow, step: int) -> Step:
        if step < 0:
            return source
        if step >= workflow.sink_step:
            return ends_of.get(workflow.sink, sinks)
        return scripts if workflow.procedures[step].program is None else running()

    # What instances store comes of what is stored already, so it need not wait for the disk: a
    # server that is killed forgets the newest of it, and atoms stand where they stood before.
    atoms = PostgresAtoms(quick, quotas(chosen)[FILES_KNOWN].most)
    columns = Columns(Spool(Path(chosen.data) / "functions"))
    opened_stores = stores(chosen.functions.stores)
    source = Source(opened_stores, atoms.public_id, columns)
    ends.callback(source.close)
    objects = Objects(PostgresGathered(database), opened_stores, atoms.public_id)
    ends.callback(objects.close)
    tables = Tables(
        databases(chosen.functions.databases), atoms.public_id, PostgresOutsideTables()
    )
    ends_of: dict[str, Step] = {PARQUET: objects, TABLE: tables}

    def close() -> None:
        database.close()
        quick.close()

    dispatcher = Dispatcher(
        atoms,
        step_of,
        own,
        Accounts(atoms, PostgresUsage(quick)),
        QuotasOfTenants(chosen, quick),
        close=close,
    )
    with ends:
        _listening(atoms, dispatcher.wake)
        if is_spare and not _begun(pool, dispatcher):
            return
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: dispatcher.stop())
        threading.Thread(target=lambda: _watch_parent(dispatcher.stop), daemon=True).start()
        dispatcher.run()


def _begun(pool: SandboxPool, dispatcher: Dispatcher) -> bool:
    """Load and open what the first atom would wait for, and wait to be told.

    False: nobody will tell us.
    """
    import functions.sending  # noqa: F401

    try:
        pool.prepare()
    except InfraError as error:  # whoever works finds out, and tries again
        log.warning("sandbox_not_prepared", extra={"why": str(error)[:200]})
    dispatcher.prepare()
    return bool(sys.stdin.buffer.read(1))


def _evaluator(
    chosen: Settings, own: Limits, usual: SandboxPool, ends: ExitStack, memory_mib: int
) -> JavaScript:
    """Return what runs scripts that may have so much memory."""
    if memory_mib == usual.options.heap_mib:
        return JavaScript(usual)
    pool = sandbox_pool(chosen, max_workers=own.instances, heap_mib=memory_mib)
    ends.callback(pool.close)
    return JavaScript(pool)


def _running(chosen: Settings, database: Database, ends: ExitStack) -> Step:
    """Return what has programs run; only who needs it waits for what it loads."""
    from functions.operating import running

    made = running(chosen, database)
    ends.callback(made.close)
    return made


def _ingest(chosen: Settings, database: Database) -> Ingest:
    """Return the way of updates into the log; only who needs it waits for what it loads."""
    from functions.sending import ingest

    return ingest(chosen, database)


class QuotasOfTenants:
    """How tenants stand to their quotas, as that was some seconds ago at most."""

    def __init__(self, chosen: Settings, database: Database) -> None:
        self._stored = PostgresQuotas(database)
        self._quotas = quotas(chosen)
        self._resting: Collection[int] = ()
        self._silent: Collection[int] = ()
        self._given: Mapping[int, int] = {}
        self._most: Mapping[int, int] = {}
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

    def brimming(self, atoms: Mapping[int, int]) -> Collection[int]:
        """Return those of whom as many atoms wait as may."""
        self._look()
        usual = self._quotas[ATOMS].most
        return {each for each, count in atoms.items() if count >= self._most.get(each, usual)}

    def silent(self) -> Collection[int]:
        """Return those who have used up their deliveries of the hour."""
        self._look()
        return self._silent

    def _look(self) -> None:
        if time.monotonic() - self._at >= QUOTAS_SECONDS:
            self._resting = self._stored.used_up(self._quotas[PROCESSOR_SECONDS]).keys()
            self._silent = self._stored.used_up(self._quotas[DELIVERIES]).keys()
            self._given = self._stored.of_all(ATOM_BYTES)
            self._most = self._stored.of_all(ATOMS)
            self._at = time.monotonic()


def _listening(atoms: PostgresAtoms, wake: Callable[[], None]) -> None:
    """Wake whenever some come, from now on."""

    def listen() -> None:
        while True:
            try:
                atoms.heard(LISTEN_SECONDS)
            except Unavailable:
                time.sleep(1.0)
            wake()

    threading.Thread(target=listen, daemon=True).start()


def _watch_parent(stop: Callable[[], None]) -> None:
    """Who was started by somebody that is killed works for nobody: another one is begun."""
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(PARENT_SECONDS)
    stop()


if __name__ == "__main__":
    sys.exit(main())
