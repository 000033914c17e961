"""Programs as they lie unpacked on this machine, for all that run them here."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Protocol

from operators import archives
from operators.archives import File, Files
from operators.errors import NotAnOperator
from operators.manifest import Described
from servioticy.ports.programs import Program

MAX_SHELF_BYTES = 1024 * 1024 * 1024
"""Of what lies there and nobody here has used lately; those come on top of it."""

MOST_HELD = 128
"""Programs that one process may have taken from the shelf and not be disturbed in."""

BASE = "root"
"""An empty folder on the shelf, over which programs make their file systems."""


class Programs(Protocol):
    """Where programs are."""

    def folder(self, program: Program) -> tuple[Described, Path]:
        """Return what a program says of itself, and its folder on this machine.

        Raises NotAnOperator where its tenant has no such program, Unavailable, OSError.
        """


class Stored(Protocol):
    """Where archives of programs are kept, for all machines."""

    def archive(self, program: Program) -> tuple[str, bytes] | None:
        """Return the digest of a program's files, and its archive; None: there is none that its
        tenant may use. Raises Unavailable."""

    def digest(self, program: Program) -> str | None:
        """Return the first of both. Raises Unavailable."""


class Shelf:
    """Folders by the digests of what is in them; what is not what it was is unpacked anew."""

    def __init__(self, place: Path, stored: Stored, most_bytes: int = MAX_SHELF_BYTES) -> None:
        """`place`: a folder for this alone; several processes may have it."""
        self._place = place
        self._stored = stored
        self._most_bytes = most_bytes
        self._held: OrderedDict[str, int] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def base(self) -> Path:
        """The empty folder."""
        return self._place / BASE

    def folder(self, program: Program) -> tuple[Described, Path]:
        """Return a program's, as Programs has it; nobody takes it away while it is held here."""
        digest = self._stored.digest(program)
        if digest is None:
            raise NotAnOperator(
                f"there is no operator {program.name} of version {program.version}"
            )
        self.base.mkdir(mode=0o755, parents=True, exist_ok=True)
        with self._lock:
            self._hold(digest)
            folder = self._place / digest
            files = read(folder)
            if files is None or archives.digest(files) != digest:
                files = self._fetch(program, digest)
                self._put(folder, files)
                self._make_room()
            return archives.described(files), folder

    def close(self) -> None:
        """Hold nothing any more."""
        with self._lock:
            for descriptor in self._held.values():
                os.close(descriptor)
            self._held.clear()

    def _fetch(self, program: Program, digest: str) -> Files:
        found = self._stored.archive(program)
        if found is None:
            raise NotAnOperator(f"there is no operator {program.name} any more")
        files = archives.unpack(found[1])
        if archives.digest(files) != digest:
            raise NotAnOperator(f"{program.name}: its files are not those that were pushed")
        return files

    def _put(self, folder: Path, files: Files) -> None:
        """Unpack beside its place, and put it there at once."""
        with tempfile.TemporaryDirectory(dir=self._place, prefix="new-") as beside:
            made = Path(beside) / "files"
            made.mkdir(mode=0o755)
            for name, file in files.items():
                path = made / name
                path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
                path.write_bytes(file.content)
                path.chmod(0o555 if file.executable else 0o444)
            if folder.exists():
                folder.rename(Path(beside) / "old")
            made.rename(folder)

    def _hold(self, digest: str) -> None:
        if digest in self._held:
            self._held.move_to_end(digest)
            os.utime(self._place / f"{digest}.lock")
            return
        path = self._place / f"{digest}.lock"
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        os.utime(path)
        self._held[digest] = descriptor
        if len(self._held) > MOST_HELD:
            os.close(self._held.popitem(last=False)[1])

    def _make_room(self) -> None:
        """Take away what nobody holds, the longest unused first, until it is little enough."""
        locks = sorted(self._place.glob("*.lock"), key=_age)
        sizes = {each: _size(each.with_suffix("")) for each in locks}
        total = sum(sizes.values())
        for lock in locks:
            if total <= self._most_bytes:
                return
            if lock.stem in self._held:
                continue
            descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(lock.with_suffix(""), ignore_errors=True)
                total -= sizes[lock]
            except BlockingIOError:
                continue  # another process has it
            finally:
                os.close(descriptor)


def read(folder: Path) -> Files | None:
    """Return the files in a folder; None where there is none, or what is no file of ours."""
    found: dict[str, File] = {}
    if not folder.is_dir():
        return None
    for place, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = Path(place) / name
            if path.is_symlink():
                return None
            if path.is_file():
                executable = bool(path.stat().st_mode & 0o100)
                found[path.relative_to(folder).as_posix()] = File(path.read_bytes(), executable)
    return found


def _age(lock: Path) -> float:
    try:
        return lock.stat().st_mtime
    except OSError:
        return 0.0


def _size(folder: Path) -> int:
    return sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())
