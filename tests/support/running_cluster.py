"""`servioticy cluster` as somebody runs it, reached through its balancer."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from running_platform import RunningPlatform

from servioticy.embedded.folder import read_run


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

    def log_of(self, machine: str) -> str:
        """What the program of that name has written."""
        return (self.data / "cluster" / "logs" / f"{machine}.log").read_text("utf-8", "replace")

    def on(self, machine: str, command: Sequence[str]) -> str:
        """Run any command on that machine, and return what it has said."""
        return super().command("cluster", "run", "--on", machine, "--", *command).stdout
