"""A process that computes what it is asked, one after the other: this one's lock stays free.

A thread would not do: while it parses a megabyte of JSON, or looks through columns, Python lets
the other threads do nothing. The process is started when it is needed, ends with this one whatever
it is at, and is ended where an answer takes too long; another one is begun then.
"""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import weakref
from collections.abc import Mapping, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection

from servioticy.errors import Unavailable


class TookTooLong(Unavailable):
    """The other process did not answer in time, and was ended."""

    def __init__(self, what: str, seconds: float) -> None:
        super().__init__(f"{what} did not answer within {seconds:g} s")
        self.seconds = seconds
        """for which nobody else could ask it"""


def command(module: str) -> tuple[str, ...]:
    """Return the command that runs a module of ours, which calls `answering.serve`."""
    return (sys.executable, "-P", "-m", module)


class OtherProcess:
    """Asked by one thread at a time."""

    def __init__(
        self,
        command: Sequence[str],
        seconds: float,
        what: str,
        environment: Mapping[str, str] | None = None,
        most: int | None = None,
    ) -> None:
        """`seconds`: for an answer; `what`: how it is told of ("the process that ..").

        `environment` is what it has beside ours; `most`: bytes of an answer.
        """
        self.command = command
        self.seconds = seconds
        self._what = what
        self._environment = environment or {}
        self._most = most
        self._process: _Process | None = None

    def ask(self, request: bytes) -> bytes:
        """Return its answer. Blocks.

        Raises TookTooLong; Unavailable where it has ended, as it is where it answers too much.
        """
        process = self._process = self._process or self._begin()
        try:
            return process.ask(request, self._most)
        except BlockingIOError as error:
            self.stop()
            raise TookTooLong(self._what, self.seconds) from error
        except (EOFError, OSError) as error:
            self.stop()
            raise Unavailable(f"{self._what} ended") from error
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the process; another one is started when it is needed."""
        process, self._process = self._process, None
        if process is not None:
            process.end()

    def _begin(self) -> _Process:
        return _Process(self.command, self.seconds, {**os.environ, **self._environment})


class _Process:
    def __init__(
        self, command: Sequence[str], seconds: float, environment: Mapping[str, str]
    ) -> None:
        self._connection, theirs = Pipe()
        _limit(self._connection, seconds)
        with theirs:
            descriptor = theirs.fileno()
            self._process = subprocess.Popen(
                [*command, str(descriptor)],
                pass_fds=[descriptor],
                env=environment,
                start_new_session=True,  # so that it can yield to all others, see `answering`
            )
        self.end = weakref.finalize(self, _end, self._connection, self._process)

    def ask(self, request: bytes, most: int | None) -> bytes:
        self._connection.send_bytes(request)
        return self._connection.recv_bytes(most)


def _limit(connection: Connection, seconds: float) -> None:
    """Let reading and writing fail after so long, as if there were nothing."""
    whole, part = divmod(seconds, 1)
    value = struct.pack("ll", int(whole), int(part * 1e6))
    with socket.socket(fileno=os.dup(connection.fileno())) as same:
        for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            same.setsockopt(socket.SOL_SOCKET, option, value)


def _end(connection: Connection, process: subprocess.Popen[bytes]) -> None:
    connection.close()
    process.kill()
    process.wait()
