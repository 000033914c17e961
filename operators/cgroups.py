"""Control groups around processes of programs, where the machine lets us make them (cgroup v2).

Resource limits of a process bound what it maps and how many threads its user has. A group bounds
what the kernel keeps for it besides: buffers of sockets, pages of files, its `/tmp` in memory. It
takes a cgroup of version 2 below which groups may be made: the machine's root for who is root, or
one that is delegated to us and has no processes of its own (systemd: `Delegate=yes`).
"""

from __future__ import annotations

import itertools
import logging
import os
from contextlib import suppress
from pathlib import Path

from operators.guest.root import TEMPORARY_BYTES

log = logging.getLogger(__name__)

ROOT = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")
NAME = "servioticy-operators"
CONTROLLERS = ("memory", "pids")
BESIDE_BYTES = TEMPORARY_BYTES + 32 * 1024 * 1024
"""What a program may take beside its memory: its `/tmp`, and the launcher that stays."""

BESIDE_PROCESSES = 2


class NoGroups(Exception):
    """No groups can be made here; the message says why."""


class Group:
    """A group of one process and its threads."""

    def __init__(self, folder: Path, memory_bytes: int, processes: int) -> None:
        """Make it. Raises OSError."""
        self._folder = folder
        folder.mkdir()
        try:
            _write(folder / "memory.max", memory_bytes + BESIDE_BYTES)
            _write(folder / "pids.max", processes + BESIDE_PROCESSES)
            for name, value in (("memory.swap.max", 0), ("memory.oom.group", 1)):
                if (folder / name).exists():  # not of every kernel
                    _write(folder / name, value)
            self.entrance = os.open(folder / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)
            """Who writes 0 there joins."""
        except BaseException:
            self.remove()
            raise

    def close(self) -> None:
        """Let nobody else in."""
        os.close(self.entrance)

    def kill(self) -> None:
        """End all that are in it."""
        with suppress(OSError):  # of kernels before 5.14
            _write(self._folder / "cgroup.kill", 1)

    def remove(self) -> None:
        """Take it away, once nobody is in it; else who comes next does."""
        with suppress(OSError):
            self._folder.rmdir()


class Groups:
    """Makes groups; may be used from several threads."""

    def __init__(self, place: Path) -> None:
        """`place` as `found` returns it; what others have left there by dying is taken away."""
        self._place = place
        self._numbers = itertools.count(1)
        for each in place.iterdir():
            if each.is_dir():
                with suppress(OSError):  # somebody is in it
                    each.rmdir()

    def group(self, memory_bytes: int, processes: int) -> Group | None:
        """Make one; None: it cannot be had now, and limits of the process have to do."""
        name = f"{os.getpid()}-{next(self._numbers)}"
        try:
            return Group(self._place / name, memory_bytes, processes)
        except OSError as error:
            log.warning("operator_without_group", extra={"reason": str(error)})
            return None


def found(named: str = "", root: Path = ROOT, own: Path = OWN) -> Path:
    """Return where groups can be made, with what they need there. Raises NoGroups.

    `named`: a cgroup that is delegated to us; "": the one we are in, or the machine's root.
    """
    if not (root / "cgroup.controllers").is_file():
        raise NoGroups(f"no cgroup v2 at {root}")
    above = Path(named) if named else root / _own(own)
    missing = set(CONTROLLERS) - set(_read(above / "cgroup.controllers").split())
    if missing:
        raise NoGroups(f"{above} has no controller {', '.join(sorted(missing))}")
    try:
        place = above / NAME
        place.mkdir(exist_ok=True)
        for each in (above, place):
            wanted = set(CONTROLLERS) - set(_read(each / "cgroup.subtree_control").split())
            if wanted:
                _write(each / "cgroup.subtree_control", " ".join(f"+{x}" for x in sorted(wanted)))
        probe = Group(place / f"probe-{os.getpid()}", 0, 0)
        probe.close()
        probe.remove()
    except OSError as error:
        raise NoGroups(f"{above}: {error.strerror}") from error
    return place


def _own(file: Path) -> str:
    for line in _read(file).splitlines():
        if line.startswith("0::/"):
            return line.removeprefix("0::/")
    raise NoGroups("we are in no cgroup v2")


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError as error:
        raise NoGroups(f"{file}: {error.strerror}") from error


def _write(file: Path, value: object) -> None:
    file.write_text(f"{value}")
