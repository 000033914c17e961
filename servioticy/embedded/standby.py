"""A standby of the embedded Postgres: a copy of it that follows, with a folder of its own."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from servioticy.embedded import tcp_ports as ports
from servioticy.embedded import unprivileged
from servioticy.embedded.folder import write_private
from servioticy.embedded.postgres import EmbeddedPostgres, binary
from servioticy.errors import Unavailable

SECONDS_TO_COPY = 120
FOLLOWS = "standby.signal"
"""A file that Postgres has for as long as it follows."""


class EmbeddedStandby(EmbeddedPostgres):
    """It follows a primary, from when that is there; what it has is taken anew each time."""

    def __init__(
        self, data: Path, host: str, primary: EmbeddedPostgres, before: Sequence[str] = ()
    ) -> None:
        """`before` stands before the command that copies, as on another machine."""
        super().__init__(data, host)
        self._primary = primary
        self._before = before

    def prepare(self) -> None:
        """Choose the port; what the primary has comes with `copy`."""
        shutil.rmtree(self._data, ignore_errors=True)
        self._data.mkdir(parents=True, mode=0o700)
        write_private(self._password_file, self._primary.password)
        self._port = ports.kept(self._data / "port")

    def copy(self, name: str) -> None:
        """Take what the primary has, unless it is there; called before each start.

        `name` is what it calls itself where it follows. Raises Unavailable.
        """
        if not self._cluster.exists():
            partial = self._data / "cluster.new"
            shutil.rmtree(partial, ignore_errors=True)
            unprivileged.give(self._data)
            where = f"{self._primary.dsn}?application_name={name}"
            words = ["--pgdata", str(partial), "--write-recovery-conf", "--checkpoint", "fast"]
            command = [str(binary("pg_basebackup")), *words, "--dbname", where]
            done = subprocess.run(
                [*self._before, *unprivileged.wrap(command)],
                capture_output=True,
                text=True,
                timeout=SECONDS_TO_COPY,
                check=False,
            )
            if done.returncode:
                raise Unavailable(f"the standby has no copy: {done.stderr.strip()}")
            partial.rename(self._cluster)
        self._forget_last_postmaster()


def settle(primary: Path, standby: Path) -> None:
    """Where a standby has become the primary, let its folder be that of the primary: neither runs.

    What the old primary had is removed: the new one has gone on without it.
    """
    if (standby / "cluster").exists() and not (standby / "cluster" / FOLLOWS).exists():
        shutil.rmtree(primary)
        standby.rename(primary)
