"""What each process tells of its weaving: a small file each, while there is something to tell."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from monitoring.weaving.weaver import Report

log = logging.getLogger("servioticy.monitoring")

FOLDER = "monitoring"
"""In the data folder."""
PROCESSES = "processes"
"""In that folder: what each process has woven."""
MAX_BYTES = 1 << 20


def measurements(data: Path) -> list[Path]:
    """Return the files in which the programs of a data folder have written measurements."""
    here = data / FOLDER / "measurements"
    return sorted([*here.glob("*.ndjson"), *here.glob("*.ndjson.1")])


class ProcessState(msgspec.Struct, frozen=True):
    """What one process has woven."""

    program: str
    pid: int
    birth: str
    """tells it from another process that gets its number"""
    wrong: str
    """why the file of aspects is not understood; what was woven before stays"""
    reports: list[Report]
    published: int
    dropped: int


def birth(pid: int) -> str:
    """Return when a process began, as Linux counts; empty where there is none that lives."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] in "ZX" else fields[19]


class StateFile:
    """The file of this process."""

    def __init__(self, data: Path) -> None:
        self._folder = data / FOLDER / PROCESSES
        self._told: ProcessState | None = None

    def tell(self, state: ProcessState) -> None:
        """Write it down, where it is another than before."""
        if state == self._told:
            return
        self._told = state
        file = self._folder / f"{state.pid}.json"
        partial = file.with_suffix(f".{state.pid}")
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            partial.write_bytes(msgspec.json.encode(state))
            partial.replace(file)
        except OSError as error:
            log.warning("monitoring_state_not_written", extra={"why": str(error)})

    def forget(self) -> None:
        """Remove it, and those of processes that have ended."""
        self._told = None
        with suppress(OSError):
            (self._folder / f"{os.getpid()}.json").unlink(missing_ok=True)
            for file in self._folder.glob("*.json"):
                if not birth(int(file.stem)):
                    file.unlink(missing_ok=True)


def states(data: Path) -> Iterator[ProcessState]:
    """Yield what the living processes have written down."""
    for file in sorted((data / FOLDER / PROCESSES).glob("*.json")):
        try:
            text = file.read_bytes()[:MAX_BYTES]
            state = msgspec.json.decode(text, type=ProcessState)
        except (OSError, msgspec.DecodeError):
            continue  # it has just ended
        if birth(state.pid) == state.birth:
            yield state
