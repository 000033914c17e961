"""`servioticy doctor --worker`: what a machine has and lacks that is to compute for a Spark.

It needs neither a data folder nor a port, and all else as the pipeline does: the same Python, the
libraries in the versions that were released together, a sandbox that holds, both stores, the time.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib import metadata

from command import extras
from command.doctor import (
    Check,
    disk_room,
    java_found,
    javascript_parts,
    operator_layers,
    postgres_address,
    reachable,
)
from sandbox import InfraError, third_party
from sandbox.guest.layers import REQUIRED
from servioticy.bootstrap import log_ends, sandbox_pool
from servioticy.embedded import javascript
from servioticy.errors import ServioticyError, SetupError
from servioticy.settings import Settings, changed
from servioticy.storage.database import Database

LIBRARIES = ("confluent_kafka", "psycopg2", "pyarrow", "pandas", "numpy", "pyspark", "orjson")
"""What a task loads, as it is called there; each holds code of its machine's kind."""
MOST_SKEW_SECONDS = 1.0
"""Times that have come are looked for by this clock, and written by that of Postgres."""
SECONDS_TO_LOAD = 60.0
LAYERS = {
    "limits": "let processes set limits of their own (prlimit)",
    "network": "allow user namespaces (sysctl user.max_user_namespaces, and the container's "
    "seccomp profile); without, seccomp alone keeps scripts from the network",
    "files": "allow chroot or user namespaces; without, seccomp alone keeps scripts from files",
    "user": "do not run as root, or allow setuid",
    "privileges": "allow prctl(PR_SET_NO_NEW_PRIVS)",
    "seccomp": "allow the seccomp system call: the container's own profile may forbid it",
}
"""What to do about each layer of the sandbox that is not there."""


def examine(settings: Settings, clock: Callable[[], float] = time.time) -> Iterator[Check]:
    """Look at everything that a worker's machine needs."""
    yield _python()
    yield java_found(settings)
    yield from map(_loads, LIBRARIES)
    yield _versions()
    yield javascript_parts(settings)
    for engine in ("v8", "quickjs"):
        yield from _sandbox(changed(settings, sandbox_engine=engine), settings.sandbox.engine)
    yield operator_layers(settings)
    yield disk_room(settings)
    yield from _postgres(settings, clock)
    yield from _kafka(settings)
    if master := re.fullmatch(r"spark://\[?([^,]+?)\]?:(\d+)", settings.spark.master):
        yield reachable("master", master[1], int(master[2]), "SERVIOTICY_SPARK_MASTER")


def _python() -> Check:
    version = sys.version_info
    return Check(
        "python",
        (3, 11) <= version[:2] < (3, 13),
        f"{version.major}.{version.minor}.{version.micro} at {sys.executable}",
        "Spark wants the driver's version here, 3.11 or 3.12: put that first on the worker's PATH",
    )


def _loads(name: str) -> Check:
    """Whether a library loads, in a process of its own: what it lacks may end that."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", f"import {name}; print({name}.__version__)"],
            capture_output=True,
            text=True,
            timeout=SECONDS_TO_LOAD,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Check(name, False, f"not loaded after {SECONDS_TO_LOAD:g} s", "look at this disk")
    if done.returncode == 0:
        return Check(name, True, done.stdout.strip())
    said = done.stderr.strip().rpartition("\n")[2] or f"it ended with {done.returncode}"
    remedy = f"pip install '{extras.OURS}[pipeline]', or unpack what `servioticy pack` has written"
    return Check(name, False, said, remedy)


def _versions() -> Check:
    """Whether the libraries are those that this release was made with."""
    wrong = []
    for name, wanted in sorted(extras.pinned("pipeline").items()):
        try:
            found = metadata.version(name)
        except metadata.PackageNotFoundError:
            found = "missing"
        if found != wanted:
            wrong.append(f"{name} {found}, not {wanted}")
    told = ", ".join(wrong) or f"as released with {metadata.version(extras.OURS)}"
    return Check("versions", not wrong, told, f"pip install '{extras.OURS}[pipeline]'")


def _sandbox(settings: Settings, chosen: str) -> Iterator[Check]:
    """Whether an engine starts, and of the chosen one each layer around it."""
    engine = settings.sandbox.engine
    if engine != chosen and third_party.missing(javascript.folder(settings), engine):
        yield Check(engine, True, f"not here, and not chosen (sandbox_engine = {chosen})")
        return
    try:
        pool = sandbox_pool(settings)
    except SetupError as error:
        yield Check(engine, False, str(error), "run `make setup`")
        return
    try:
        layers = pool.layers()
    except InfraError as error:
        yield Check(engine, False, str(error), _remedy(str(error)))
        return
    finally:
        pool.close()
    yield Check(engine, True, "starts")
    for name, lack in layers.items() if engine == chosen else ():
        if not lack:
            yield Check(f"{engine}: {name}", True, "holds")
            continue
        needed = name in REQUIRED
        told = f"not here: {lack}" if needed else f"not here: {lack} ({LAYERS.get(name, '')})"
        yield Check(f"{engine}: {name}", not needed, told, LAYERS.get(name, ""))


def _remedy(why: str) -> str:
    """What to do about the layers that a refusal names."""
    named = [LAYERS[each] for each in REQUIRED if f"{each}:" in why]
    return "; ".join(named) or "allow what it says; it is a rule of this machine or container"


def _postgres(settings: Settings, clock: Callable[[], float]) -> Iterator[Check]:
    """Whether it lets us in, and whether both clocks tell the same."""
    if not settings.store.dsn:
        yield _unnamed("postgres", "SERVIOTICY_DSN")
        return
    database = Database(settings.store.dsn)
    try:
        database.rows("SELECT 1")  # connected before the clock is looked at
        before = clock()
        ((told,),) = database.rows("SELECT extract(epoch FROM clock_timestamp())::float8")
        after = clock()
    except ServioticyError as error:
        host, port = postgres_address(settings.store.dsn)
        remedy = f"open the way to {host}:{port}, let this machine in (pg_hba.conf), or correct "
        yield Check("postgres", False, str(error).strip(), remedy + "SERVIOTICY_DSN")
        return
    finally:
        database.close()
    yield Check("postgres", True, "{}:{}".format(*postgres_address(settings.store.dsn)))
    # It was told between the two, so no more than this is certain.
    skew = max(before - told, told - after, 0.0) * (1 if told < before else -1)
    yield Check(
        "clock",
        abs(skew) <= MOST_SKEW_SECONDS,
        f"{skew:+.3f} s beside that of Postgres" if skew else "as that of Postgres",
        f"have both machines set by NTP: more than {MOST_SKEW_SECONDS:g} s is too much",
    )


def _kafka(settings: Settings) -> Iterator[Check]:
    """Whether the brokers that lead the log answer, at the addresses that they tell themselves."""
    if not settings.log.bootstrap_servers:
        yield _unnamed("kafka", "SERVIOTICY_BOOTSTRAP_SERVERS")
        return
    try:
        found = log_ends(settings).all_bounds()
    except ServioticyError as error:
        remedy = (
            "open the way to every broker at the address that it advertises, or correct "
            "SERVIOTICY_BOOTSTRAP_SERVERS"
        )
        yield Check("kafka", False, str(error), remedy)
        return
    yield Check("kafka", True, f"{len(found)} partitions, all of their brokers answer")


def _unnamed(what: str, setting: str) -> Check:
    remedy = f"a worker is told by the pipeline; to look from here, set {setting} for this command"
    return Check(what, False, "not looked at: nobody said where it is", remedy)
