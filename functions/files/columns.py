"""Parquet files as atoms, a row an atom: read by a process apart, from a copy on this machine."""

from __future__ import annotations

import os
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import orjson

from functions.files.records import MOST, MOST_BYTES, Bad, BadFile, Portion
from functions.files.store import Files, StoreAway, TakesTooMuch
from servioticy.apart import asking
from servioticy.apart.asking import OtherProcess
from servioticy.domain.workflows.model import MAX_ATOM_BYTES
from servioticy.domain.workflows.programs import fault_of
from servioticy.errors import Unavailable
from servioticy.ports.atoms import Seen
from servioticy.settings.loading import PREFIX
from servioticy.turns import Turns

SECONDS = 30.0
"""For a portion, and for the start of the process; then it is tried again, some times."""
PART = 4 * 1024 * 1024
MAX_FILE_BYTES = 512 * 1024 * 1024
MAX_ANSWER_BYTES = 2 * MOST_BYTES
"""Of the process: its last line is an atom at most, and the one before it is short."""
TOO_LONG = f"an atom has at most {MAX_ATOM_BYTES} bytes"
MAX_KEPT_BYTES = 2 * MAX_FILE_BYTES
"""Of copies, those that are being made too."""


class Columns:
    """Threads may share it: they take turns, and whoever copies a file holds up nobody."""

    def __init__(self, folder: Path | None = None, most: int = MAX_KEPT_BYTES) -> None:
        """`folder` is for copies, which go with this object."""
        self._given = folder
        self._most = most
        self._made: tempfile.TemporaryDirectory[str] | None = None
        self._process = OtherProcess(
            asking.command("functions.files.columns_process"),
            SECONDS,
            "the process that reads Parquet",
            {each: "" for each in os.environ if each.startswith(PREFIX)},
            MAX_ANSWER_BYTES,
        )
        self._turns = Turns(SECONDS)
        self._lock = threading.Lock()
        self._copies: OrderedDict[tuple[Hashable, ...], tuple[Path, int]] = OrderedDict()
        self._number = 0
        self._reserved = 0

    def rows(
        self,
        store: Files,
        file: Seen,
        whose: Hashable,
        at: int,
        most: int = MOST,
        name: str = "",
    ) -> Portion:
        """Cut the next rows. Raises BadFile, FileGone, StoreAway, StoreRefuses and TakesTooMuch.

        `whose` names the tenant, and `name` its store: a copy is nobody else's.
        """
        if file.size > MAX_FILE_BYTES:
            raise BadFile(f"a Parquet file has at most {MAX_FILE_BYTES} bytes")
        key = (whose, name, file.key, file.etag)
        with self._lock:
            found = self._copies.get(key)
            if found is not None:
                self._copies.move_to_end(key)
        path = found[0] if found is not None else self._copy(key, store, file)
        request = {
            "file": str(path),
            "at": at,
            "most": most,
            "bytes": MOST_BYTES,
            "longest": MAX_ATOM_BYTES,
        }
        with self._turn(whose):
            try:
                answer = self._process.ask(orjson.dumps(request))
            except Unavailable as error:
                raise TakesTooMuch(f"it takes too much to read it: {error}") from error
        about, *lines = answer.split(b"\n")
        told = orjson.loads(about)
        if "bad" in told:
            if not path.exists():
                raise StoreAway("the copy of the file went for the sake of others")
            raise BadFile(told["bad"])
        atoms, bad = [], []
        for row, line in enumerate(lines, at):
            fault = fault_of(line) if line else TOO_LONG
            if fault:
                bad.append(Bad(row, fault))
            else:
                atoms.append(line)
        if told["next"] is None:
            self._forget(key)
        return Portion(atoms, bad, told["next"], processor_us=told["us"])

    @contextmanager
    def _turn(self, whose: Hashable) -> Iterator[None]:
        with ExitStack() as stack:
            try:
                stack.enter_context(self._turns.turn(whose))
            except Unavailable as error:
                raise StoreAway("others' files are read") from error
            yield

    def close(self) -> None:
        """End the process; copies go."""
        self._process.stop()
        if self._made is not None:
            self._made.cleanup()

    def _copy(self, key: tuple[Hashable, ...], store: Files, file: Seen) -> Path:
        with self._lock:
            if self._given is None:
                self._made = tempfile.TemporaryDirectory(prefix="servioticy-files-")
                self._given = Path(self._made.name)
            self._number += 1
            path = self._given / f"{os.getpid()}-{self._number}.parquet"
            self._reserve(key[0], file.size)
        try:
            with path.open("wb") as copy:
                at = 0
                while at < file.size:
                    part = store.read(file, at, min(PART, file.size - at))
                    if not part:
                        raise StoreAway("the store sends less than the file has")
                    copy.write(part)
                    at += len(part)
        except BaseException as error:
            path.unlink(missing_ok=True)
            with self._lock:
                self._reserved -= file.size
            if isinstance(error, OSError):  # of this machine: its disk is full, say
                raise StoreAway(f"the file cannot be copied: {error.strerror}") from error
            raise
        with self._lock:
            self._reserved -= file.size
            if key in self._copies:
                self._drop(key)
            self._copies[key] = path, file.size
        return path

    def _reserve(self, tenant: Hashable, size: int) -> None:
        """Make room for a copy, the tenant's own going first. Raises StoreAway: there is none.

        What is being copied stays, whosesoever it is.
        """
        if self._reserved + size > self._most:
            raise StoreAway("other files are copied")
        kept = sum(size for _, size in self._copies.values())
        for key in sorted(self._copies, key=lambda each: each[0] != tenant):
            if self._reserved + kept + size <= self._most:
                break
            kept -= self._copies[key][1]
            self._drop(key)
        self._reserved += size

    def _forget(self, key: tuple[Hashable, ...]) -> None:
        with self._lock:
            if key in self._copies:
                self._drop(key)

    def _drop(self, key: tuple[Hashable, ...]) -> None:
        path, _ = self._copies.pop(key)
        path.unlink(missing_ok=True)
