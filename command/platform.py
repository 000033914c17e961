"""`servioticy up`: the whole platform on one machine, all programs under one supervisor."""

from __future__ import annotations

import http.client
import signal
import ssl
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from command import asking, listening
from monitoring import java_start
from monitoring.applications import scheduled
from servioticy import bootstrap, trust
from servioticy.embedded.folder import DataFolder
from servioticy.embedded.kafka import EmbeddedKafka
from servioticy.embedded.postgres import EmbeddedPostgres, Login, login
from servioticy.errors import SettingsError
from servioticy.settings import Settings, changed, to_environment
from servioticy.settings.places import on_one_machine
from servioticy.settings.sections import Kafka
from servioticy.storage.database import Database
from servioticy.storage.migrations import migrate
from servioticy.storage.roles import Role, give_logins
from servioticy.supervisor.program import Event, Program
from servioticy.supervisor.supervisor import Supervisor

Report = Callable[[Event], None]

PIPELINE_SECONDS = 120.0
NO_LOGINS: Mapping[Role, Login] = {}
READY_FILE = "SERVIOTICY_READY_FILE"
ALIVE_FILE = "SERVIOTICY_ALIVE_FILE"
FUNCTIONS_READY_FILE = "SERVIOTICY_FUNCTIONS_READY_FILE"
ALIVE_SECONDS = 10.0
"""The broker touches its file each second; its port may be another's, or none."""


class Platform:
    """Everything that runs on one data folder. Make it, use `supervisor`, `close` it."""

    def __init__(self, settings: Settings, report: Report = lambda _: None) -> None:
        """Take the data folder and prepare its parts. Raises SetupError."""
        self._folder = DataFolder(settings.data_path)
        try:
            parts, self.settings = stores(on_one_machine(settings))
        except BaseException:
            self._folder.release()
            raise
        logins = {} if settings.store.dsn else _logins(self.settings)
        self.supervisor = Supervisor(
            [*parts, *_programs(self.settings, self._folder.scratch, logins)],
            self._folder,
            report,
            {
                "dsn": self.settings.store.dsn,
                "bootstrap_servers": self.settings.log.bootstrap_servers,
                **listening.facts(self.settings),
            },
            partial(_applications, self.settings, self._folder.scratch, logins),
        )

    def close(self) -> None:
        """Stop what runs and let the folder go."""
        self.supervisor.stop()
        self._folder.release()


def prepare_stores(settings: Settings, logins: Mapping[Role, Login] = NO_LOGINS) -> None:
    """Bring the schema up to date and make the topics. Raises Unavailable.

    The roles with a login may log in with it from then on.
    """
    database = Database(settings.store.dsn)
    try:
        migrate(database)
        give_logins(database, {role: each.password for role, each in logins.items()})
    finally:
        database.close()
    bootstrap.make_topics(settings)


def postgres_program(postgres: EmbeddedPostgres) -> Program:
    """Return the embedded Postgres, prepared, as a program."""
    # SIGINT is its fast stop: after SIGTERM it would wait for every client.
    command, stop = postgres.command(), signal.SIGINT
    return Program("postgres", command, {}, postgres.is_ready, stop_signal=stop)


def stores(settings: Settings) -> tuple[list[Program], Settings]:
    """Return those of Postgres and Kafka that the settings do not name, and where they all are."""
    programs = []
    if not settings.store.dsn:
        postgres = EmbeddedPostgres(settings.data_path / "postgres")
        postgres.prepare()
        settings = changed(settings, dsn=postgres.dsn)
        programs.append(postgres_program(postgres))
    if not settings.log.bootstrap_servers:
        if settings.kafka != Kafka():
            raise SettingsError(
                "settings kafka_* are not of the embedded broker: expected bootstrap_servers, too"
            )
        added = java_start.at_start(settings, "kafka")
        kafka = EmbeddedKafka(settings.data_path / "kafka", settings, added=added)
        kafka.prepare()
        settings = changed(settings, bootstrap_servers=kafka.bootstrap_servers)
        programs.append(Program("kafka", kafka.command(), kafka.environment(), kafka.is_ready))
    # They do not need each other: wait for both at once.
    return [replace(each, together=each is not programs[-1]) for each in programs], settings


def _logins(settings: Settings) -> dict[Role, Login]:
    """Return one for each program: none of them knows how to be the owner of the tables."""
    roles = (Role.API, Role.PIPELINE, Role.DELIVERY)
    return {each: login(settings.store.dsn, each.value) for each in roles}


def _programs(settings: Settings, scratch: Path, logins: Mapping[Role, Login]) -> list[Program]:
    """Return all but the stores: started at once, ready in their own time."""
    ready_file = settings.data_path / "pipeline.ready"

    def environment(role: Role) -> dict[str, str]:
        own = changed(settings, dsn=logins[role].dsn) if role in logins else settings
        return {
            **to_environment(own),
            "PYTHONUNBUFFERED": "1",
            "TMPDIR": str(scratch),
            READY_FILE: str(ready_file),
        }

    # Once: what is there does not go where a program is killed.
    prepare = cache(partial(prepare_stores, settings, logins))

    def before_pipeline() -> None:
        ready_file.unlink(missing_ok=True)
        prepare()

    pipeline = Program(
        "pipeline",
        _module("pipeline"),
        environment(Role.PIPELINE),
        lambda: _holds_something(ready_file),
        ready_seconds=PIPELINE_SECONDS,
        before=before_pipeline,
        together=True,
    )
    api = Program(
        "api",
        _module("api"),
        environment(Role.API),
        lambda: is_well(settings, settings.api.port, "/private/health"),
        together=True,
    )
    delivery = Program(
        "delivery",
        _module("delivery"),
        environment(Role.DELIVERY),
        lambda: is_well(settings, settings.delivery.port, "/health"),
        together=True,
    )
    alive_file = settings.data_path / "broker.alive"
    broker = Program(
        "broker",
        _module("broker"),
        {**environment(Role.DELIVERY), ALIVE_FILE: str(alive_file)},
        lambda: _is_touched(alive_file),
        before=lambda: alive_file.unlink(missing_ok=True),
    )
    working_file = settings.data_path / "functions.ready"
    functions = Program(
        "functions",
        _module("functions"),
        {**environment(Role.DELIVERY), FUNCTIONS_READY_FILE: str(working_file)},
        working_file.exists,
        before=lambda: working_file.unlink(missing_ok=True),
        together=True,
    )
    return [pipeline, api, delivery, functions, broker]


def _applications(
    settings: Settings, scratch: Path, logins: Mapping[Role, Login]
) -> list[Program]:
    """Return the monitors of applications that are not ours, and who reads what Java measures."""
    own = changed(settings, dsn=logins[Role.PIPELINE].dsn) if logins else settings
    environment = {**to_environment(own), "PYTHONUNBUFFERED": "1", "TMPDIR": str(scratch)}
    data = settings.data_path
    found = {**scheduled.commands(data), **java_start.commands(data)}
    return [Program(name, command, environment) for name, command in found.items()]


def is_well(settings: Settings, port: int, path: str) -> bool:
    """Tell whether a program of ours answers; for a moment its certificate may not be whole."""
    try:
        return answers(settings.host, port, path, trust.own(settings))
    except SettingsError:
        return False


def answers(host: str, port: int, path: str, believed: ssl.SSLContext | str = "") -> bool:
    """Tell whether a GET of this address is answered with 200 within a second."""
    connection = asking.connection(host, port, 1.0, believed)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _module(name: str) -> list[str]:
    # -P: a folder called `api` where the user happens to stand is not ours.
    return [sys.executable, "-P", "-m", name]


def _is_touched(file: Path) -> bool:
    try:
        return time.time() - file.stat().st_mtime < ALIVE_SECONDS
    except OSError:
        return False


def _holds_something(file: Path) -> bool:
    try:
        return file.stat().st_size > 0
    except OSError:
        return False
