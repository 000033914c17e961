"""A process that computes what it is asked, one after the other: this one's lock stays free.

A thread would not do: while it parses a megabyte of JSON, or fills a template, Python lets the
loop's thread do nothing. The process is started when it is needed, and ends with this one.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import weakref
from collections.abc import Callable
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import TypeVar, cast

from servioticy.errors import Unavailable

SECONDS = 10.0
"""For one call; within its budget one takes less than a tenth of a second."""
COMMAND = (sys.executable, "-P", "-m", "delivery.evaluating.other_process_main")

T = TypeVar("T")


class OtherProcess:
    """Asked by one thread at a time."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._process: _Process | None = None

    def ask(self, call: Callable[[], T]) -> T:
        """Return what the call returns there. Blocks; raises what it raises, and Unavailable.

        Call and result have to be values that can be pickled, all of them made by our own code.
        """
        process = self._process = self._process or _Process()
        try:
            text = process.ask(pickle.dumps(call, pickle.HIGHEST_PROTOCOL), self._seconds)
        except BaseException:
            self.stop()
            raise
        found = pickle.loads(text)  # noqa: S301  our own code made it
        if isinstance(found, Exception):
            raise found
        return cast(T, found)

    def stop(self) -> None:
        """End the process; another one is started when it is needed."""
        process, self._process = self._process, None
        if process is not None:
            process.end()


class _Process:
    def __init__(self) -> None:
        self._connection, theirs = Pipe()
        with theirs:
            descriptor = theirs.fileno()
            self._process = subprocess.Popen([*COMMAND, str(descriptor)], pass_fds=[descriptor])
        self.end = weakref.finalize(self, _end, self._connection, self._process)

    def ask(self, request: bytes, seconds: float) -> bytes:
        try:
            self._connection.send_bytes(request)
            if self._connection.poll(seconds):
                return self._connection.recv_bytes()
        except (EOFError, OSError) as error:
            raise Unavailable("the process that fills templates ended") from error
        raise Unavailable(f"a template is not filled within {seconds:g} s")


def _end(connection: Connection, process: subprocess.Popen[bytes]) -> None:
    connection.close()
    process.kill()
    process.wait()
