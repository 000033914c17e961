"""The stores of the platform on a data folder, for the commands beside `up`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from command import found as where
from servioticy.settings import Settings
from servioticy.storage.database import Database
from servioticy.storage.migrations import migrate
from servioticy.storage.roles import Role
from servioticy.storage.tenants import PostgresTenants


@contextmanager
def database(settings: Settings, role: Role) -> Iterator[Database]:
    """The platform's Postgres, migrated, in that role; started for the moment if nothing runs.

    Raises ServioticyError where there is none to be had.
    """
    found = where.of(settings)
    with _postgres(found) as dsn:
        owner = Database(dsn)
        try:
            migrate(owner)
        finally:
            owner.close()
        opened = Database(dsn, role=role)
        try:
            yield opened
        finally:
            opened.close()


@contextmanager
def stores(settings: Settings) -> Iterator[Settings]:
    """Where the platform's Postgres and broker are; started for the moment if nothing runs."""
    found = where.of(settings)
    if found.store.dsn and found.log.bootstrap_servers:
        yield found
        return
    from command import platform  # of no use where the platform runs
    from servioticy.embedded.folder import DataFolder
    from servioticy.supervisor.supervisor import Supervisor

    folder = DataFolder(settings.data_path)
    try:
        programs, found = platform.stores(found)
        supervisor = Supervisor(programs, folder)
        supervisor.start()
        try:
            yield found
        finally:
            supervisor.stop()
    finally:
        folder.release()


def create_tenant(settings: Settings, name: str) -> str:
    """Make the tenant unless it exists, and a new token for it, which is returned."""
    with database(settings, Role.API) as opened:
        return PostgresTenants(opened).create_tenant(name)


def delete_tenant(settings: Settings, name: str) -> bool:
    """Delete the tenant; False: there is none. All of its goes while the API runs."""
    with database(settings, Role.API) as opened:
        return PostgresTenants(opened).delete_tenant(name)


@contextmanager
def _postgres(settings: Settings) -> Iterator[str]:
    if settings.store.dsn:
        yield settings.store.dsn
        return
    from command.platform import postgres_program  # of no use where the platform runs
    from servioticy.embedded.folder import DataFolder
    from servioticy.embedded.postgres import EmbeddedPostgres
    from servioticy.supervisor.supervisor import Supervisor

    folder = DataFolder(settings.data_path)
    try:
        postgres = EmbeddedPostgres(settings.data_path / "postgres")
        postgres.prepare()
        supervisor = Supervisor([postgres_program(postgres)], folder)
        supervisor.start()
        try:
            yield postgres.dsn
        finally:
            supervisor.stop()
    finally:
        folder.release()
