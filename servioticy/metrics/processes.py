"""One `/metrics` for a program of several processes: the first asks the others.

Each of the others serves its metrics on a free port of loopback, at a path that nobody can
guess, and writes down where in a folder of the first, which sums up.
"""

from __future__ import annotations

import http.client
import logging
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from servioticy.metrics.registry import Registry, added, written
from servioticy.metrics.server import Server

log = logging.getLogger("servioticy.metrics")

FOLDER = "SERVIOTICY_METRICS_FOLDER"
"""Environment variable: where a process writes down its port."""

LOOPBACK = "127.0.0.1"
SECONDS = 1.0
LARGEST = 8 * 1024 * 1024
STILL_COUNT = frozenset({"counter", "histogram"})
"""Kinds of metrics that count on when their process has ended."""


@contextmanager
def shared(registry: Registry) -> Iterator[None]:
    """Add up with the metrics of the processes that are started meanwhile."""
    with sharing() as folder:
        registry.add(OtherProcesses(folder).texts)
        yield


@contextmanager
def sharing() -> Iterator[Path]:
    """A folder in which the processes that are started meanwhile write down their ports."""
    folder = Path(tempfile.mkdtemp(prefix="servioticy-metrics-"))
    os.environ[FOLDER] = str(folder)
    try:
        yield folder
    finally:
        del os.environ[FOLDER]
        shutil.rmtree(folder, ignore_errors=True)


def join(registry: Registry) -> Server | None:
    """Let the process above this one ask for its metrics, if there is one."""
    folder = Path(os.environ.get(FOLDER, ""))
    if not os.environ.get(FOLDER) or not folder.is_dir():
        return None  # we run alone, or on another machine
    name = secrets.token_hex(16)

    def tell(port: int) -> None:
        partial = folder / f".{name}"
        partial.write_text(f"{os.getpid()} {port}", encoding="ascii")
        partial.rename(folder / name)

    return Server(registry, LOOPBACK, [0], f"/{name}", tell)


class OtherProcesses:
    """The processes that have written down their ports. For one thread.

    What one counted that has ended still counts, as it was last read: a counter must not
    go down.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._last: dict[str, bytes] = {}
        self._ended = b""

    def texts(self) -> list[bytes]:
        """Return their metrics, and those of the ended."""
        for file in self._files():
            try:
                self._last[file.name] = _asked(file)
            except (ConnectionRefusedError, ProcessLookupError):
                self._end(file)
            except (OSError, ValueError, http.client.HTTPException) as error:
                # It is busy: what it said before will do.
                log.warning("metrics_not_read", extra={"why": repr(error)})
        return [self._ended, *self._last.values()]

    def _files(self) -> list[Path]:
        try:
            return [each for each in self._folder.iterdir() if not each.name.startswith(".")]
        except OSError:
            return []

    def _end(self, file: Path) -> None:
        """Nobody is there any more."""
        texts = [self._ended, self._last.pop(file.name, b"")]
        self._ended = written(added(texts, STILL_COUNT))
        file.unlink(missing_ok=True)


def _asked(file: Path) -> bytes:
    """Return what the process says.

    Raises ProcessLookupError or ConnectionRefusedError where there is none of this name.
    """
    pid, port = map(int, file.read_text(encoding="ascii").split())
    os.kill(pid, 0)
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=SECONDS)
    try:
        connection.request("GET", f"/{file.name}")
        answer = connection.getresponse()
        if answer.status == 404:  # the port is somebody else's by now
            raise ConnectionRefusedError
        if answer.status != 200:
            raise http.client.HTTPException(answer.status)
        text = answer.read(LARGEST)
    finally:
        connection.close()
    added([text])  # or it is no text of ours
    return text
