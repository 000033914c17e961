"""One process of a program: begun, spoken to, listened to, ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import orjson

import operators
import sandbox
from operators.cgroups import Group, Groups
from operators.errors import Misbehaved, NotAnOperator
from operators.guest import root
from operators.guest.launch import SOCKET
from operators.guest.root import TEMPORARY, TEMPORARY_BYTES
from operators.links import Links, Pairs
from operators.manifest import Described
from operators.runtimes import PATH, runtime
from operators.wire import Reader

OUTPUT_BYTES = 16_384
"""Of what a program prints the last so many are kept."""

NO_NETWORK = "network: this platform gives programs none (operators_protection = required)"

READ_BYTES = 256 * 1024
MAX_STATUS_BYTES = 64 * 1024

# A package's own __init__ would load the host of the sandbox, of which a launcher has no use.
_BOOT = (
    "import sys,types\n"
    "for name,folder in zip(('operators','sandbox','sandbox.guest'),sys.argv[2:]):\n"
    " sys.modules[name]=module=types.ModuleType(name); module.__path__=[folder]\n"
    "import operators.guest.launch as launch\n"
    "launch.main(sys.argv[1])"
)


Begin: TypeAlias = "Callable[[Described, Path, Place], Instance]"


class Place(NamedTuple):
    """Where processes are begun, and how."""

    base: Path
    """an empty folder, over which each makes its root, for itself alone"""
    strangers: bool
    """whether programs are of people who are not the platform's own: then all layers are needed"""
    links: Links = Pairs()
    """what is between it and the platform"""
    groups: Groups | None = None
    """what bounds it beside its own limits, where the machine has that"""
    begin: Begin | None = None
    """who begins programs elsewhere, in place of processes here (operators/adapters/docker.py)"""

    def begun(self, described: Described, folder: Path) -> Instance:
        """Begin a program. Raises NotAnOperator, Unavailable, OSError."""
        return (self.begin or Instance)(described, folder, self)


class Instance:
    """A process. Not for several threads."""

    _group: Group | None = None

    def __init__(self, described: Described, folder: Path, place: Place) -> None:
        """Begin it. Raises NotAnOperator, Unavailable, OSError."""
        if described.network and place.strangers:
            raise NotAnOperator(NO_NETWORK)
        found = runtime(described.command, folder)
        shown = [*found.shown, *(root.NETWORK if described.network else ())]
        manifest = described.manifest
        asked: dict[str, object] = {
            "folder": str(folder),
            "base": str(place.base),
            "shown": [each for each in shown if Path(each).exists()],
            "network": described.network,
            "command": found.command,
            "environment": environment(manifest.memory_bytes),
            "memory": manifest.memory_bytes,
            "processes": manifest.processes,
            "temporary": TEMPORARY_BYTES,
            "strangers": place.strangers,
        }
        self._link = place.links.link()
        self.socket, theirs = self._link.ours, self._link.theirs
        self.output, output = os.pipe()
        self.status, status = os.pipe()
        asked["descriptors"] = theirs.fileno(), status
        if place.groups is not None:
            self._group = place.groups.group(manifest.memory_bytes, manifest.processes)
        asked["group"] = entrance = None if self._group is None else self._group.entrance
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _BOOT, json.dumps(asked), *_folders()],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(theirs.fileno(), status, *([] if entrance is None else [entrance])),
                env={"TZ": "UTC", "LANG": "C.UTF-8"},
                cwd="/",
                start_new_session=True,
            )
        except BaseException:
            self._close()
            raise
        finally:
            theirs.close()
            os.close(output)
            os.close(status)
            if self._group is not None:
                self._group.close()
        self._talk()

    def _talk(self) -> None:
        """Begin to speak with it, once it is there."""
        self.socket.setblocking(False)
        os.set_blocking(self.output, False)
        os.set_blocking(self.status, False)
        self.layers: Mapping[str, str] = {}
        self.failed = ""
        """Why it could not be begun."""
        self.is_ready = False
        self.printed = b""
        self._reader = Reader()
        self._unsent = memoryview(b"")
        self._said = b""
        self._clock: int | None = None
        self._used = 0.0
        self._used_in_all = 0.0

    @property
    def pid(self) -> int:
        """Of the first process, which the program ends with."""
        return self._process.pid

    @property
    def lost(self) -> str:
        """Why it cannot be reached any more, by nobody's fault; "" if it is not so."""
        return self._link.lost

    def send(self, frame: bytes) -> None:
        """Send as much as goes; the rest by `flush`. Raises OSError."""
        self._unsent = memoryview(frame)
        self.flush()

    def flush(self) -> None:
        """Send more of a frame. Raises OSError."""
        while self._unsent:
            try:
                self._unsent = self._unsent[self.socket.send(self._unsent) :]
            except BlockingIOError:
                return

    @property
    def has_unsent(self) -> bool:
        """Whether a part of a frame could not be sent yet."""
        return bool(self._unsent)

    def frames(self) -> Iterator[bytes]:
        """Yield the frames that have come. Raises Misbehaved, too where it has ended."""
        try:
            content = self.socket.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            raise Misbehaved(f"it has ended: {error}") from error
        if not content:
            raise Misbehaved("it has ended")
        yield from self._reader.feed(content)

    def read_output(self) -> bool:
        """Keep the end of what it prints. False: it prints nothing any more."""
        try:
            content = os.read(self.output, OUTPUT_BYTES)
        except BlockingIOError:
            return True
        self.printed = (self.printed + content)[-OUTPUT_BYTES:]
        return bool(content)

    def read_status(self) -> bool:
        """Take in what is said of its beginning. False: it has begun, or failed."""
        try:
            content = os.read(self.status, MAX_STATUS_BYTES)
        except BlockingIOError:
            return True
        self._said = (self._said + content)[-MAX_STATUS_BYTES:]
        *lines, self._said = self._said.split(b"\n")
        for line in lines:
            said = orjson.loads(line)
            self.layers = said.get("layers", self.layers)
            self.failed = said.get("failed", self.failed)
            if "pid" in said:
                self._clock = (~said["pid"] << 3) | 2  # see clock_getcpuclockid(3)
        return bool(content)

    def take_used(self) -> float:
        """Return what it has used of the processor since it was asked last, in seconds.

        Of one that has ended, what the kernel says of it and of all that it has waited for.
        """
        if self.is_gone():
            used = self._used_in_all
        elif self._clock is None:
            return 0.0
        else:
            try:
                used = time.clock_gettime(self._clock)
            except OSError:  # it has ended, and its parent ends now
                return 0.0
        before, self._used = self._used, max(used, self._used)
        return self._used - before

    def end(self) -> None:
        """End it at once; `is_gone` tells when that is done."""
        self.read_output()
        if not self.is_gone():
            os.kill(self._process.pid, signal.SIGKILL)  # kill() would reap it, and tell no time
        if self._group is not None:
            self._group.kill()
        self._close()

    def is_gone(self) -> bool:
        """Whether nothing of it is left."""
        if self._process.returncode is not None:
            return True
        try:
            pid, status, usage = os.wait4(self._process.pid, os.WNOHANG)
        except ChildProcessError:  # somebody else has waited for it
            self._process.returncode = 0
            return True
        if pid:
            self._process.returncode = os.waitstatus_to_exitcode(status)
            self._used_in_all = usage.ru_utime + usage.ru_stime
            if self._group is not None:
                self._group.remove()
        return pid != 0

    def _close(self) -> None:
        self.socket.close()
        os.close(self.output)
        os.close(self.status)


def environment(memory_bytes: int) -> dict[str, str]:
    """What a program finds in its environment: nothing of the platform's."""
    return {
        "PATH": PATH,
        "HOME": TEMPORARY,
        "TMPDIR": TEMPORARY,
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "SERVIOTICY_OPERATOR": str(SOCKET),
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "UV_USE_IO_URING": "0",
        "GOMEMLIMIT": str(memory_bytes * 3 // 4),
    }


def _folders() -> Sequence[str]:
    ours, theirs = operators.__path__[0], sandbox.__path__[0]
    return [str(Path(each).absolute()) for each in (ours, theirs, f"{theirs}/guest")]
