"""Parsing documents that take long, in a separate process: threads would wait for each other.

One that takes a second in a thread of the API makes the requests of all others twenty times
as slow, as only one thread computes at a time. The process is started when it is needed.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

import orjson

from servioticy.domain.documents import BadDocument
from servioticy.domain.documents.limits import Meter
from servioticy.domain.model import Definition
from servioticy.errors import Unavailable
from servioticy.turns import Turns

SECONDS = 10.0
"""For one document; the slowest ones that are accepted take less than one on an idle machine."""
WAIT_SECONDS = 5.0
"""So long a document waits for others to be parsed, those of other callers one by one."""
COMMAND = (sys.executable, "-P", "-m", "ingest.parsing.document_parser_process")


def nobody() -> Hashable:
    """Return the same for all who ask: they are one caller."""
    return None


class TookTooLong(Unavailable):
    """The document was not parsed in time."""


class DocumentParser:
    """One process that parses one document after the other; threads may share it."""

    def __init__(
        self,
        caller: Callable[[], Hashable] = nobody,
        seconds: float = SECONDS,
        command: Sequence[str] = COMMAND,
        wait_seconds: float = WAIT_SECONDS,
    ) -> None:
        """`caller`: on whose behalf the present thread asks; callers take turns."""
        self._caller = caller
        self._seconds = seconds
        self._command = command
        self._turns = Turns(wait_seconds)
        self._process: _Process | None = None

    def turn(self) -> AbstractContextManager[None]:
        """Wait until it is this caller's turn. Raises Unavailable if it does not come in time."""
        return self._turns.turn(self._caller())

    def parse(self, document: dict[str, Any], service_object: str, meter: Meter) -> Definition:
        """Return the document as the Service Object of that id; for the thread whose `turn` it is.

        Raises BadDocument; TookTooLong; Unavailable where the process ended.
        """
        text = self._asked(service_object.encode() + b"\0" + orjson.dumps(document))
        found, counted = pickle.loads(text)  # noqa: S301  our own code made it, and ran none of theirs
        meter.note(counted)
        if isinstance(found, Definition):
            return found
        if isinstance(found, BadDocument):
            raise found
        raise RuntimeError(found)

    def _asked(self, request: bytes) -> bytes:
        process = self._process = self._process or _Process(self._command)
        try:
            return process.ask(request, self._seconds)
        except BaseException:
            self._process = None
            process.end()
            raise

    def close(self) -> None:
        """End the process; another one is started when it is needed."""
        if self._process:
            self._process.end()
        self._process = None


class _Process:
    def __init__(self, command: Sequence[str]) -> None:
        self._connection, theirs = Pipe()
        with theirs:
            descriptor = theirs.fileno()
            self._process = subprocess.Popen([*command, str(descriptor)], pass_fds=[descriptor])
        self.end = weakref.finalize(self, _end, self._connection, self._process)

    def ask(self, request: bytes, seconds: float) -> bytes:
        expired = threading.Event()

        def expire() -> None:
            expired.set()
            self._process.kill()

        alarm = threading.Timer(seconds, expire)
        alarm.start()
        try:
            self._connection.send_bytes(request)
            return self._connection.recv_bytes()
        except (EOFError, OSError) as error:
            if expired.is_set():
                raise TookTooLong(f"a document is not understood within {seconds:g} s") from error
            raise Unavailable("the process that parses documents ended") from error
        finally:
            alarm.cancel()


def _end(connection: Connection, process: subprocess.Popen[bytes]) -> None:
    connection.close()
    process.kill()
    process.wait()
