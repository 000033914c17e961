"""The owner's side of the zygote: start it, and ask it for workers."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

from sandbox import protocol, third_party

START_SECONDS = 20.0

# The owner's sys.path, because a program may run us from anywhere; nothing else of it.
_BOOT = (
    "import json,sys; sys.path[:]=json.loads(sys.argv[2]);"
    "from sandbox.guest.zygote import main; main(int(sys.argv[1]), *sys.argv[3:])"
)


class InfraError(Exception):
    """The sandbox itself failed: nobody's fault, and worth another try."""


class ZygoteClient:
    """A client starts one zygote when first needed, and another one when that is gone."""

    def __init__(
        self,
        engine: str,
        javascript: Path,
        worker_idle_seconds: float,
        unprotected: bool = False,
        clock: str = "frozen",
        nice: int = 0,
        heap_mib: int = 64,
    ) -> None:
        """`javascript` is the absolute path of the folder with the files of third_party.py."""
        self._engine = engine
        self._javascript = javascript
        self._idle_seconds = worker_idle_seconds
        self._unprotected = unprotected
        self._clock = clock
        self._nice = nice
        self._heap_mib = heap_mib
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._lock = threading.Lock()

    @property
    def pid(self) -> int | None:
        """The zygote's process id; None if there is none."""
        return self._process.pid if self._process else None

    def spawn(self, checks: bool = False, is_patient: bool = False) -> tuple[socket.socket, int]:
        """Return a new worker's connection and process id. Raises InfraError."""
        with self._lock:
            try:
                return self._ask(checks, is_patient)
            except (OSError, InfraError):
                self._end()  # the zygote is gone or useless; its workers go with it
            try:
                return self._ask(checks, is_patient)
            except OSError as error:
                self._end()
                raise InfraError(f"no zygote: {error}") from error

    def close(self) -> None:
        """End the zygote, and with it every worker."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        if self._control:
            self._control.close()
        if self._process:
            self._process.kill()
            self._process.wait()
        self._control = self._process = None

    def abandon(self) -> None:
        """Forget the zygote without ending it: it belongs to the process we forked from."""
        if self._control:
            self._control.close()
        if self._process:
            self._process.returncode = 0  # not our child: nothing to wait for
        self._control = self._process = None

    def _ask(self, checks: bool, is_patient: bool) -> tuple[socket.socket, int]:
        control = self._control or self._start()
        ours, theirs = socket.socketpair()
        asked = (self._idle_seconds, self._unprotected, checks, is_patient)
        request = protocol.SPAWN.pack(*asked)
        try:
            with theirs:
                socket.send_fds(control, [request], [theirs.fileno()])
            answer = control.recv(protocol.PID.size)
            pid = protocol.PID.unpack(answer)[0] if len(answer) == protocol.PID.size else 0
            if pid <= 0:
                raise InfraError("the zygote could not fork" if answer else "the zygote is gone")
        except BaseException:
            ours.close()
            raise
        return ours, pid

    def _start(self) -> socket.socket:
        if names := third_party.missing(self._javascript, self._engine):
            raise InfraError(f"{' and '.join(names)} missing in {self._javascript}")
        control, theirs = socket.socketpair()
        paths = json.dumps([os.path.abspath(each) for each in sys.path])  # noqa: PTH100
        with theirs:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-I", "-c", _BOOT, str(theirs.fileno()), paths),
                    *(self._engine, str(self._javascript), self._clock, str(self._nice)),
                    str(self._heap_mib),
                ],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env={"TZ": "UTC", "LANG": "C.UTF-8"},
                cwd="/",
                start_new_session=True,  # a Ctrl-C in our terminal is not for it
            )
        control.settimeout(START_SECONDS)
        self._control = control
        return control
