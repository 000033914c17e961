"""What runs on each machine, and with which settings."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from command import platform
from command.cluster import balancer, disks, machines, network
from pipeline.spark import standalone
from servioticy.embedded import tcp_ports as ports
from servioticy.embedded import unprivileged
from servioticy.embedded.kafka import EmbeddedKafka
from servioticy.embedded.postgres import EmbeddedPostgres, Login, login
from servioticy.embedded.standby import EmbeddedStandby, settle
from servioticy.settings import Settings, changed, to_environment
from servioticy.storage import standbys
from servioticy.storage.database import Database
from servioticy.storage.roles import Role
from servioticy.supervisor.program import Program

MASTER_PORT = 7077
SECONDS = 180.0
"""For what takes its time where ten Javas and Pythons start on two cores."""
PRIMARY = "?target_session_attrs=read-write"
"""Of two addresses, that of whoever may write: it is asked at each connection."""
CORES = 2
"""Slots of a worker: one of them computes both partitions while the other one is away."""


class Cluster:
    """All programs of one, in the order in which they start. Everything is in one folder."""

    def __init__(self, settings: Settings, folder: Path, outside: tuple[int, int]) -> None:
        """Prepare the stores. Raises SetupError.

        `outside`: sockets on which this machine's own clients come to the API and to delivery.
        """
        self._outside = outside
        self._folder = folder
        self._networks = folder / "networks"
        store = machines.address("store")
        settle(folder / "postgres", folder / "standby")
        self._postgres = EmbeddedPostgres(folder / "postgres", store)
        at, before = machines.address("standby"), network.inside(self._networks, "standby")
        self._standby = EmbeddedStandby(folder / "standby", at, self._postgres, before)
        self._kafka = EmbeddedKafka(folder / "kafka", settings, host=store)
        for each in (self._postgres, self._standby, self._kafka):
            each.prepare()
        front = machines.address("balancer")
        self.settings = changed(
            settings,
            data=str(folder),
            dsn=self._postgres.dsn.replace(self._postgres.place, self._places()) + PRIMARY,
            bootstrap_servers=self._kafka.bootstrap_servers,
            partitions=max(2, settings.log.partitions),
            spark_master=f"spark://{machines.address('master')}:{MASTER_PORT}",
            spark_driver_host=machines.address("driver"),
            spark_secret=settings.spark.secret or secrets.token_hex(16),
            public_url=f"http://{front}:{settings.api.port}",
            live_public_url=f"http://{front}:{settings.delivery.port}",
        )
        self._logins = {
            each: login(self.settings.store.dsn, each.value)
            for each in (Role.API, Role.PIPELINE, Role.DELIVERY)
        }

    def _places(self) -> str:
        return f"{self._postgres.place},{self._standby.place}"

    @property
    def stores(self) -> tuple[str, str]:
        """The Postgres that is the primary at first, and its standby."""
        return self._postgres.dsn, self._standby.dsn

    def programs(self) -> list[Program]:
        """Return them."""
        return [
            *self._stores(),
            self._master(),
            *map(self._worker, machines.WORKERS),
            self._driver(),
            *(self._server(each, "api", Role.API) for each in machines.APIS),
            *(self._server(each, "delivery", Role.DELIVERY) for each in machines.DELIVERIES),
            self._balancer(),
        ]

    def _on(self, machine: str, program: Program, before: Sequence[str] = ()) -> Program:
        """Return it as a program of that machine, where it is not root; `before` that, this."""
        command = unprivileged.wrap(program.command)
        return replace(
            program,
            command=[*network.inside(self._networks, machine), *before, *command],
            ready_seconds=SECONDS,
        )

    def _stores(self) -> list[Program]:
        kafka = Program("kafka", self._kafka.command(), {}, self._kafka.is_ready)
        postgres = platform.postgres_program(self._postgres)
        standby = replace(
            platform.postgres_program(self._standby),
            name="standby",
            before=partial(self._standby.copy, standbys.NAME),
        )
        return [
            self._on("store", postgres),
            self._on("standby", standby),
            self._on("store", kafka),
        ]

    def _master(self) -> Program:
        place = standalone.Place(machines.address("master"), MASTER_PORT, self._folder / "master")
        command, environment = standalone.master(self.settings, place)
        ready = partial(ports.answers, place.host, place.port)
        return self._on("master", Program("master", command, environment, ready))

    def _worker(self, name: str) -> Program:
        own = self._folder / name
        own.mkdir(exist_ok=True)
        environment = self._folder / "environment"
        before, variables = disks.of_worker(name, environment, own, [self._folder], self.settings)
        words = ["spark", "worker", "--host", machines.address(name), "--cores", str(CORES)]
        words += ["--memory", "1g", self.settings.spark.master]
        command = [disks.python(name), "-P", "-m", "command.cli", *words]
        secret = {"SERVIOTICY_SPARK_SECRET": self.settings.spark.secret}
        program = Program(name, command, {**variables, **secret}, together=True)
        return self._on(name, program, before)

    def _driver(self) -> Program:
        ready = self._folder / "driver.ready"

        def before() -> None:
            ready.unlink(missing_ok=True)
            platform.prepare_stores(self.settings, self._logins)
            database = Database(self.settings.store.dsn)
            standbys.wait_for_it(database)
            database.close()

        variables = {platform.READY_FILE: str(ready)}
        program = self._module("pipeline", "driver", Role.PIPELINE, variables)
        return self._on("driver", replace(program, ready=ready.exists, before=before))

    def _server(self, machine: str, module: str, role: Role) -> Program:
        port, health = {
            "api": (self.settings.api.port, "/private/health"),
            "delivery": (self.settings.delivery.port, "/health"),
        }[module]
        at = changed(self.settings, host=machines.address(machine))
        ready = partial(platform.is_well, at, port, health)
        program = self._module(module, machine, role)
        return self._on(machine, replace(program, ready=ready, together=True))

    def _module(
        self, module: str, machine: str, role: Role, more: Mapping[str, str] = {}
    ) -> Program:
        at = machines.address(machine)
        known: Login = self._logins[role]
        own = changed(self.settings, dsn=known.dsn, host=at)
        scratch = {"TMPDIR": str(self._folder / "scratch"), "PYTHONUNBUFFERED": "1"}
        command = [sys.executable, "-P", "-m", module]
        return Program(machine, command, {**to_environment(own), **scratch, **more})

    def _balancer(self) -> Program:
        api, live = self.settings.api.port, self.settings.delivery.port
        fronts = map(balancer.Front, (api, live), self._outside)
        at = machines.address("balancer")
        command = balancer.command(self._folder, *fronts)
        program = Program(
            "balancer",
            command,
            {},
            lambda: ports.answers(at, api) and ports.answers(at, live),
            descriptors=self._outside,
        )
        return self._on("balancer", program)
