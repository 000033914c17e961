"""Parquet files as atoms, a row an atom: read by a process apart, from a copy on this machine."""

from __future__ import annotations

import math
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path

import orjson

from functions.files.apart import ask_in_turn
from functions.files.records import MOST, MOST_BYTES, Bad, BadFile, Portion
from functions.files.spool import Spool
from functions.files.store import Files, StillCopied, StoreAway
from servioticy.apart import asking
from servioticy.apart.asking import OtherProcess
from servioticy.domain.workflows.model import MAX_ATOM_BYTES
from servioticy.domain.workflows.programs import fault_of
from servioticy.ports.atoms import Seen
from servioticy.settings.loading import PREFIX
from servioticy.turns import Turns

SECONDS = 30.0
"""For a portion, and for the start of the process; then it is tried again, some times."""
PART = 4 * 1024 * 1024
COPY_SECONDS, PARTIAL_SECONDS = 10.0, 300.0
"""So long an attempt copies a file, beside the part that it is at; and so long what it has copied
is kept for the next attempt."""
MAX_FILE_BYTES = 512 * 1024 * 1024
MAX_ANSWER_BYTES = 2 * MOST_BYTES
"""Of the process: its last line is an atom at most, and the one before it is short."""
TOO_LONG = f"an atom has at most {MAX_ATOM_BYTES} bytes"
MAX_KEPT_BYTES = 2 * MAX_FILE_BYTES
"""Of copies, those that are being made too."""


@dataclass(slots=True)
class _Partial:
    """A copy that is being made."""

    path: Path
    size: int
    at: int = 0
    until: float = math.inf
    """When it goes if nobody has gone on with it."""


def _copy_more(partial: _Partial, store: Files, file: Seen) -> None:
    """Go on for a while. Raises StillCopied, StoreAway and the like, OSError."""
    until = time.monotonic() + COPY_SECONDS
    with partial.path.open("ab") as copy:
        while partial.at < file.size:
            part = store.read(file, partial.at, min(PART, file.size - partial.at))
            if not part:
                raise StoreAway("the store sends less than the file has")
            copy.write(part)
            partial.at += len(part)
            if partial.at < file.size and time.monotonic() >= until:
                raise StillCopied


class Columns:
    """Threads may share it: they take turns, and whoever copies a file holds up nobody."""

    def __init__(self, spool: Spool, most: int = MAX_KEPT_BYTES) -> None:
        """`spool` is for copies, which go with this object."""
        self._spool = spool
        self._most = most
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
        self._partial: dict[tuple[Hashable, ...], _Partial] = {}
        self._busy: set[tuple[Hashable, ...]] = set()
        """What somebody copies at this moment."""
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
        """Cut the next rows.

        Raises BadFile, FileGone, FileRefused, StillCopied, StoreAway, StoreRefuses, TakesTooMuch.

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
        answer = ask_in_turn(self._turns, whose, self._process, orjson.dumps(request))
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

    def close(self) -> None:
        """End the process; copies go."""
        self._process.stop()
        self._spool.close()

    def _copy(self, key: tuple[Hashable, ...], store: Files, file: Seen) -> Path:
        """Copy more of a file. Raises StillCopied as long as there is more to copy.

        What was copied is kept meanwhile: an attempt is short, however large a file is.
        """
        with self._lock:
            if key in self._busy:
                raise StoreAway("it is being copied")
            partial = self._partial.get(key)
            if partial is None:
                self._forget_partial()
                self._reserve(key[0], file.size)
                try:
                    self._number += 1
                    path = self._spool.folder() / f"{self._number}.parquet"
                except OSError as error:
                    self._reserved -= file.size
                    raise StoreAway(f"the file cannot be copied: {error.strerror}") from error
                partial = self._partial[key] = _Partial(path, file.size)
            self._busy.add(key)
        try:
            _copy_more(partial, store, file)
        except StillCopied:
            partial.until = time.monotonic() + PARTIAL_SECONDS
            raise
        except BaseException as error:
            with self._lock:
                self._drop_partial(key)
            if isinstance(error, OSError):  # of this machine: its disk is full, say
                raise StoreAway(f"the file cannot be copied: {error.strerror}") from error
            raise
        finally:
            with self._lock:
                self._busy.discard(key)
        with self._lock:
            del self._partial[key]
            self._reserved -= file.size
            self._copies[key] = partial.path, file.size
        return partial.path

    def _forget_partial(self) -> None:
        """Let those go that nobody has gone on with for a while."""
        now = time.monotonic()
        for key in [key for key, each in self._partial.items() if now > each.until]:
            if key not in self._busy:
                self._drop_partial(key)

    def _drop_partial(self, key: tuple[Hashable, ...]) -> None:
        partial = self._partial.pop(key)
        self._reserved -= partial.size
        partial.path.unlink(missing_ok=True)

    def _reserve(self, tenant: Hashable, size: int) -> None:
        """Make room for a copy, the tenant's own going first. Raises StoreAway: there is none.

        What is being copied stays, whosesoever it is: so beside the first of its files a tenant
        has half of the room at most.
        """
        own = sum(each.size for key, each in self._partial.items() if key[0] == tenant)
        is_too_much = own > 0 and own + size > self._most // 2
        if is_too_much or self._reserved + size > self._most:
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
