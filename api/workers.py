"""Several processes of the API on one listening socket, each replaced when it dies."""

from __future__ import annotations

import contextlib
import logging
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from types import FrameType

from api.server import SECONDS_TO_FINISH

PAUSE_SECONDS = 1.0
"""Before one that died is replaced."""
LISTENER = "SERVIOTICY_API_LISTENER"
"""Environment of a worker: the number of the open listening socket."""
COMMAND = (sys.executable, "-P", "-m", "api")
SIGNALS = (signal.SIGTERM, signal.SIGINT)

log = logging.getLogger("api")


class Workers:
    """Starts, replaces and ends the worker processes."""

    def __init__(
        self, listener: socket.socket, count: int, command: Sequence[str] = COMMAND
    ) -> None:
        self._listener = listener
        self._command = command
        self._processes: list[subprocess.Popen[bytes] | None] = [None] * count

    def run(self) -> None:
        """Until SIGTERM or SIGINT."""
        with _stop_asked() as asked:
            try:
                self._replace()
                while not select.select([asked], [], [], PAUSE_SECONDS)[0]:
                    self._replace()
            finally:
                self._end()

    def _replace(self) -> None:
        for number, each in enumerate(self._processes):
            if each is None or each.poll() is not None:
                self._processes[number] = self._start()

    def _start(self) -> subprocess.Popen[bytes] | None:
        """Start one; None where the machine has no room for it now."""
        number = self._listener.fileno()
        try:
            return subprocess.Popen(
                self._command,
                env={**os.environ, LISTENER: str(number)},
                pass_fds=[number],
                # Nobody writes to it; its end tells the worker that we are gone, however we went.
                stdin=subprocess.PIPE,
            )
        except OSError as error:
            log.warning("cannot_start_worker", extra={"reason": str(error)})
            return None

    def _end(self) -> None:
        """Let them finish what is under way; whoever does not in time is killed."""
        running = [each for each in self._processes if each is not None]
        for each in running:
            each.terminate()
        until = time.monotonic() + SECONDS_TO_FINISH + 1
        for each in running:
            try:
                each.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                each.kill()
                each.wait()


@contextlib.contextmanager
def _stop_asked() -> Iterator[int]:
    """A descriptor that has something to read once a signal asks us to stop.

    A pipe, as a handler runs in the middle of anything: a lock that it takes, an event's for
    one, may be in the hands of the code that it interrupts.
    """
    asked, tell = os.pipe()
    os.set_blocking(tell, False)

    def stop(_signal: int, _frame: FrameType | None) -> None:
        with contextlib.suppress(BlockingIOError):  # asked often enough
            os.write(tell, b"x")

    before = {number: signal.signal(number, stop) for number in SIGNALS}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)
        os.close(asked)
        os.close(tell)


def inherited() -> socket.socket | None:
    """Return the listening socket a worker was started with; None: this process is none."""
    number = os.environ.pop(LISTENER, None)
    if number is None:
        return None
    threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()
    return socket.socket(fileno=int(number))


def _end_with_parent() -> None:
    while os.read(0, 1):  # unbuffered: nothing to flush, or to wait for, at our own end
        pass
    os._exit(1)
