"""`servioticy doctor`: what this machine has and lacks, each lack with its remedy."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from command import found as where
from command import listening, running
from operators import cgroups
from operators.adapters.docker import Docker
from operators.layers import lacking, layers
from operators.queues.link import MOST_BYTES
from operators.queues.probe import probed
from operators.queues.resp import address
from operators.queues.server import Server
from sandbox import InfraError
from servioticy import logs, terminal
from servioticy.bootstrap import present_log, sandbox_pool
from servioticy.domain import log_loss
from servioticy.embedded import classes, jars, java, javascript, unprivileged
from servioticy.embedded import tcp_ports as ports
from servioticy.embedded.folder import read_run
from servioticy.errors import ServioticyError, SetupError, Unavailable
from servioticy.settings import Settings
from servioticy.storage.database import Database
from servioticy.storage.log_identity import PostgresLogIdentity
from servioticy.storage.roles import Role

if TYPE_CHECKING:
    from rich.console import Console

DISK_NEEDED_GB = 2.0
POSTGRES_PORT = 5432
KAFKA_PORT = 9092


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at; `remedy` says what to do if it is not `ok`."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""


def run(settings: Settings) -> int:
    """Print every check as a table; the exit code, 1 if any failed."""
    return told(examine(settings))


def told(found: Iterable[Check]) -> int:
    """Print the checks; the exit code, 1 if any failed."""
    checks = list(found)
    show(checks, terminal.console(sys.stdout))
    return int(not all(check.ok for check in checks))


def show(checks: Sequence[Check], console: Console | None) -> None:
    """Print the checks: as a table to a terminal, as plain lines where there is none."""
    if console is None:
        width = max(len(check.name) for check in checks)
        for check in checks:
            print(f"{_verdict(check):4}  {check.name:{width}}  {check.detail}")
            if not check.ok:
                print(f"      {'':{width}}  -> {check.remedy}")
        return
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    for column in ("verdict", "name"):
        table.add_column(column, no_wrap=True)
    table.add_column("detail", overflow="fold")
    for check in checks:
        # Text, as a path in brackets is no markup.
        verdict = Text(_verdict(check), "green" if check.ok else "bold red")
        table.add_row(verdict, Text(check.name), Text(check.detail))
        if not check.ok:
            table.add_row("", "", Text(f"-> {check.remedy}", "yellow"))
    console.print(table)


def _verdict(check: Check) -> str:
    return "ok" if check.ok else "FAIL"


def examine(settings: Settings) -> Iterator[Check]:
    """Look at everything the platform needs."""
    version = sys.version_info
    yield Check(
        "python",
        (3, 11) <= version[:2] < (3, 13),
        f"{version.major}.{version.minor}.{version.micro}",
        "use Python 3.11 or 3.12: `make clean`, then `make setup PYTHON=python3.12`",
    )
    yield javascript_parts(settings)
    yield sandbox_layers(settings)
    yield operator_layers(settings)
    if settings.operators.transport == "queue":
        yield _queues(settings)
    yield java_found(settings)
    yield _jars(settings)
    yield disk_room(settings)
    yield from _own_ports(settings)
    if os.geteuid() == 0 and not settings.store.dsn:
        yield _user_namespaces()
    if settings.store.dsn:
        yield reachable("postgres", *postgres_address(settings.store.dsn), "SERVIOTICY_DSN")
    for server in filter(None, settings.log.bootstrap_servers.split(",")):
        host, _, port = server.strip().partition(":")
        number = int(port) if port.isdecimal() else KAFKA_PORT
        yield reachable("kafka", host, number, "SERVIOTICY_BOOTSTRAP_SERVERS")
    yield from _log(where.of(settings))


def accept_log_loss(settings: Settings) -> int:
    """Move progress to where the present log goes on, and print what that gives up.

    Raises ServioticyError where Postgres or the broker cannot be asked.
    """
    logs.configure(settings.log_level)
    with running.stores(settings) as found, running.database(found, Role.PIPELINE) as database:
        lost = log_loss.accept(PostgresLogIdentity(database), lambda: present_log(found))
    for each in lost:
        print(f"{each}; it goes on at {each.next_offset}")
    print("kept in the table log_losses" if lost else "the log has all that is stored")
    return 0


def _log(settings: Settings) -> Iterator[Check]:
    """Whether the log has what is stored of it; nothing where nothing runs."""
    if not (settings.store.dsn and settings.log.bootstrap_servers):
        return
    database = Database(settings.store.dsn, role=Role.PIPELINE)
    try:
        stored = PostgresLogIdentity(database).stored()
        present = present_log(settings)
    except ServioticyError as error:
        yield Check("log", False, str(error), "start the platform, then ask again")
        return
    finally:
        database.close()
    found = log_loss.losses(stored, present)
    if found:
        detail = log_loss.explained(stored, present, found)
        yield Check("log", False, detail, log_loss.REMEDY)
    else:
        places = ", ".join(
            f"{partition}: stored {stored.progress.get(partition, 0)} of {bounds.end}"
            for partition, bounds in present.bounds.items()
        )
        yield Check("log", True, places)


def sandbox_layers(settings: Settings) -> Check:
    """Which layers of the sandbox this machine allows."""
    try:
        pool = sandbox_pool(settings)
    except SetupError as error:
        return Check("sandbox", False, str(error), "run `make setup`")
    try:
        layers = pool.layers()
    except InfraError as error:
        return Check(
            "sandbox",
            False,
            str(error),
            "allow the seccomp system call (and setuid, for root); or, only where every tenant"
            " is trusted, set SERVIOTICY_SANDBOX_PROTECTION=any",
        )
    finally:
        pool.close()
    active = ", ".join(name for name, lack in layers.items() if not lack)
    missing = ", ".join(f"{name} ({lack})" for name, lack in layers.items() if lack)
    return Check("sandbox", True, f"{active}; not here: {missing}" if missing else active)


def operator_layers(settings: Settings) -> Check:
    """Which layers around tenants' own programs this machine allows."""
    if settings.operators.docker:
        return _containers(settings)
    try:
        found = {**layers(), "cgroup": _group(settings)}
    except OSError as error:
        return Check("operators", True, f"{error}; no programs of tenants' own run here")
    active = ", ".join(name for name, lack in found.items() if not lack)
    missing = ", ".join(f"{name} ({lack})" for name, lack in found.items() if lack)
    enough = not lacking(found)
    detail = f"{active}; not here: {missing}" if missing else active
    if not enough:
        detail += "; no programs of strangers run here"
    return Check("operators", True, detail)


def _containers(settings: Settings) -> Check:
    """Whether there is a Docker in whose containers tenants' own programs run."""
    own = settings.operators
    docker = Docker(own.docker, own.image)
    try:
        docker.call("GET", f"/images/{own.image}/json")
    except Unavailable as error:
        remedy = f"`docker pull {own.image}`, or correct SERVIOTICY_OPERATORS_DOCKER"
        return Check("operators", False, str(error), remedy)
    return Check("operators", True, f"in containers of {own.image}, by Docker")


def _group(settings: Settings) -> str:
    try:
        cgroups.found(settings.operators.cgroup)
    except cgroups.NoGroups as error:
        return str(error)
    return ""


def _queues(settings: Settings) -> Check:
    """Whether the store between the pipeline and programs will do."""
    own = settings.operators
    with tempfile.TemporaryDirectory(prefix="queues-") as folder:
        server = Server(lambda: Path(folder), MOST_BYTES)
        try:
            place = address(own.store, own.store_ca) if own.store else server.address()
            return Check("queues", True, f"{probed(place)}{'' if own.store else ', our own'}")
        except Unavailable as error:
            remedy = (
                "correct SERVIOTICY_OPERATORS_STORE, or set SERVIOTICY_OPERATORS_TRANSPORT=socket"
            )
            return Check("queues", False, str(error), remedy)
        finally:
            server.close()


def javascript_parts(settings: Settings) -> Check:
    """Whether the sandbox's downloaded parts are here, and what they are."""
    folder = javascript.folder(settings)
    if damaged := javascript.damaged(settings):
        files = " ".join(path.name for path in damaged)
        return Check("javascript", False, f"damaged: {files}", f"rm -r {folder}; make setup")
    absent = javascript.missing(settings)
    here = ", ".join(f"{x.base} {x.version}" for x in javascript.locked() if x not in absent)
    lack = f"; not here: {', '.join(each.base for each in absent)}" if absent else ""
    try:
        javascript.require(settings, settings.sandbox.engine)
    except SetupError as error:
        return Check("javascript", False, str(error), "run `make setup`")
    return Check("javascript", True, f"{here} in {folder}{lack}")


def java_found(settings: Settings) -> Check:
    """Whether there is a Java that will do."""
    try:
        found = java.find(settings)
    except SetupError as error:
        return Check("java", False, "none that will do", str(error))
    return Check("java", True, f"{found.version} from {found.source}: {found.executable}")


def _jars(settings: Settings) -> Check:
    absent, damaged = jars.missing(settings), jars.damaged(settings)
    if damaged:
        files = " ".join(map(str, damaged))
        return Check("jars", False, f"{len(damaged)} damaged", f"rm {files}; make setup")
    ours = [classes.jar(settings, each) for each in jars.compiled(settings)]
    not_ready = [path for path in ours if not classes.is_ready(path)]
    if absent or not_ready:
        number = len(absent) + len(not_ready)
        detail = f"{number} missing or damaged in {settings.embedded.jars_path}"
        return Check("jars", False, detail, "run `make setup`")
    return Check("jars", True, f"complete in {settings.embedded.jars_path}")


def disk_room(settings: Settings) -> Check:
    """Whether there is room for what the platform writes."""
    folder = settings.data_path
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free / 1e9
    return Check(
        "disk",
        free > DISK_NEEDED_GB,
        f"{free:.1f} GB free for {settings.data_path}",
        f"free {DISK_NEEDED_GB:g} GB, or name a folder on another disk in SERVIOTICY_DATA",
    )


def _own_ports(settings: Settings) -> Iterator[Check]:
    ours = read_run(settings.data_path)
    for each in listening.places(settings):
        free = ports.is_free(each.port, each.host)
        detail = f"{each.port} is {'free' if free else 'ours' if ours else 'taken'}"
        remedy = f"stop what listens there, or choose another in SERVIOTICY_{each.setting.upper()}"
        yield Check(each.setting, free or ours is not None or not each.is_chosen, detail, remedy)


def _user_namespaces() -> Check:
    if unprivileged.namespaces_allowed():
        return Check("root", True, "the embedded Postgres runs in a user namespace")
    programs = Path(sys.prefix)
    reachable = all(path.stat().st_mode & 0o001 for path in (programs, *programs.parents))
    return Check(
        "root",
        reachable,
        f"no user namespaces: the embedded Postgres runs as user {unprivileged.NOBODY}",
        f"that user may not reach {programs}; run as an ordinary user, or move this folder",
    )


def postgres_address(dsn: str) -> tuple[str, int]:
    """Return host and port that a DSN names, the first of several."""
    if "://" in dsn:
        first = urlsplit(re.sub(r",[^/@]*(?=/|$)", "", dsn))  # of several: of a standby, too
        return first.hostname or "localhost", first.port or POSTGRES_PORT
    words = dict(re.findall(r"(\w+)\s*=\s*'?([^'\s]*)", dsn))
    host, port = words.get("host", "localhost"), words.get("port", str(POSTGRES_PORT))
    return host.split(",")[0], int(port.split(",")[0])


def reachable(name: str, host: str, port: int, setting: str) -> Check:
    """Whether something listens there; `setting` is what names it."""
    if host.startswith("/"):
        exists = (Path(host) / f".s.PGSQL.{port}").exists()
        return Check(name, exists, f"socket in {host}", f"start it, or correct {setting}")
    return Check(
        name,
        ports.answers(host, port),
        f"{host}:{port}",
        f"nothing answers there: start it, open the firewall, or correct {setting}",
    )
