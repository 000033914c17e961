"""Postgres and the sandbox as the settings name them: what a program needs that is to start soon.

`bootstrap.py` builds the rest, for which the log's client has to be loaded.
"""

from __future__ import annotations

from sandbox import SandboxOptions, SandboxPool
from sandbox.yielding import NICE
from servioticy.embedded import javascript
from servioticy.errors import SettingsError
from servioticy.settings import Settings
from servioticy.storage.database import Database
from servioticy.storage.roles import Role


def connect(
    settings: Settings,
    role: Role | None = None,
    *,
    durable: bool = True,
    statement_seconds: float | None = None,
    lock_seconds: float | None = None,
    shared: bool = False,
) -> Database:
    """Postgres as the settings name it; see Database for the rest."""
    if not settings.store.dsn:
        raise SettingsError(
            "no Postgres is named: set SERVIOTICY_DSN, or let `servioticy up` start one"
        )
    return Database(
        settings.store.dsn,
        role=role,
        durable=durable,
        statement_seconds=statement_seconds,
        lock_seconds=lock_seconds,
        shared=shared,
    )


def sandbox_pool(
    settings: Settings,
    *,
    engine: str | None = None,
    max_workers: int | None = None,
    nice: int = NICE,
    heap_mib: int = 64,
) -> SandboxPool:
    """Make a pool of sandbox processes as the settings describe it; they start when it is used.

    `engine` and `max_workers` are in place of the settings'; `nice` is how much lower their
    priority is, `heap_mib` what a script may have of memory. Raises SetupError if set-up has not
    downloaded what that engine needs.
    """
    own = settings.sandbox
    chosen = engine or own.engine
    options = SandboxOptions(
        engine=chosen,
        clock=own.clock,
        budget_ms=own.budget_ms,
        budget_ms_per_update=own.budget_ms_per_update,
        max_workers=max_workers or own.workers,
        unprotected=own.protection == "any",
        nice=nice,
        heap_mib=heap_mib,
    )
    return SandboxPool(javascript.require(settings, chosen), options)
