"""`servioticy cluster` as somebody runs it, reached through its balancer."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from running_platform import RunningPlatform

from command.cluster import machines
from servioticy.embedded.folder import read_run

CLAIMS = """
SELECT DISTINCT host(client_addr) FROM pg_locks JOIN pg_stat_activity USING (pid)
 WHERE locktype = 'advisory' AND granted AND mode = 'ExclusiveLock'"""


class RunningCluster(RunningPlatform):
    """Machines of their own on a folder, and one tenant."""

    starts = "cluster"
    ready = "servioticy cluster ready"

    def __init__(self, data: Path, more: Mapping[str, str] = {}) -> None:
        super().__init__(data, more=more)

    def command(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run a `servioticy` command on the client's machine."""
        return super().command("cluster", "run", "servioticy", *arguments, **more)

    def pids(self) -> dict[str, int]:
        """The programs' processes."""
        return dict((read_run(self.data / "cluster") or {}).get("pids", {}))

    def cut(self, machine: str, *other: str) -> None:
        """Cut it off, or only from another one."""
        super().command("cluster", "cut", machine, *other)

    def heal(self) -> None:
        """Make up for all cuts."""
        super().command("cluster", "heal")

    def promote(self) -> None:
        """Fence the primary of Postgres, and let the standby take its place."""
        super().command("cluster", "promote")

    def ask(self, store: int | None, sql: str) -> list[tuple[object, ...]]:
        """Ask the Postgres that was the primary at first (0), that was its standby (1), or
        whichever is the primary now.
        """
        facts = read_run(self.data / "cluster") or {}
        dsn = facts["dsn"] if store is None else facts["stores"][store]
        code = "import json, sys; from servioticy.storage.database import Database; "
        code += "print(json.dumps(Database(sys.argv[1]).rows(sys.argv[2])))"
        found = self.on("client", [sys.executable, "-c", code, dsn, sql])
        return [tuple(each) for each in json.loads(found)]

    def computing(self) -> list[str]:
        """Which workers have claimed partitions."""
        at = {machines.address(each): each for each in machines.WORKERS}
        found = [str(row[0]) for row in self.ask(None, CLAIMS)]
        return [name for address, name in at.items() if address in found]

    def log_of(self, machine: str) -> str:
        """What the program of that name has written."""
        return (self.data / "cluster" / "logs" / f"{machine}.log").read_text("utf-8", "replace")

    def on(self, machine: str, command: Sequence[str]) -> str:
        """Run any command on that machine, and return what it has said."""
        return super().command("cluster", "run", "--on", machine, "--", *command).stdout
