"""Several processes of the API on one listening socket, each replaced when it dies."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from types import FrameType

from api.server import SECONDS_TO_FINISH

PAUSE_SECONDS = 1.0
"""Before one that died is replaced."""
LISTENER = "SERVIOTICY_API_LISTENER"
"""Environment of a worker: the number of the open listening socket."""


class Workers:
    """Starts, replaces and ends the worker processes."""

    def __init__(self, listener: socket.socket, count: int) -> None:
        self._listener = listener
        self._stopped = threading.Event()
        self._processes = [self._start() for _ in range(count)]

    def run(self) -> None:
        """Until SIGTERM or SIGINT."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        while not self._stopped.wait(PAUSE_SECONDS):
            self._processes = [
                each if each.poll() is None else self._start() for each in self._processes
            ]
        self._end()

    def _start(self) -> subprocess.Popen[bytes]:
        number = self._listener.fileno()
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "api"],
            env={**os.environ, LISTENER: str(number)},
            pass_fds=[number],
            # Nobody writes to it; its end tells the worker that we are gone, however we went.
            stdin=subprocess.PIPE,
        )

    def _stop(self, _signal: int, _frame: FrameType | None) -> None:
        self._stopped.set()

    def _end(self) -> None:
        for each in self._processes:
            each.terminate()
        until = time.monotonic() + SECONDS_TO_FINISH + 1
        for each in self._processes:
            try:
                each.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                each.kill()
                each.wait()


def inherited() -> socket.socket | None:
    """The listening socket a worker was started with; None: this process is none."""
    number = os.environ.pop(LISTENER, None)
    if number is None:
        return None
    threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()
    return socket.socket(fileno=int(number))


def _end_with_parent() -> None:
    while os.read(0, 1):  # unbuffered: nothing to flush, or to wait for, at our own end
        pass
    os._exit(1)
