"""Programs as they lie unpacked on this machine, for all that run them here."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Iterator
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

NEW = "new-"
"""How folders begin in which something is being unpacked."""


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
        self._aside: list[tuple[Path, int]] = []
        self._lock = threading.Lock()
        self._clear()

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
            with self._lock:
                self._make_room()
        return archives.described(files), folder

    def aside(self) -> Path:
        """Make an empty folder, for who runs here alone; it goes with `close`, or when we die."""
        self._place.mkdir(mode=0o755, parents=True, exist_ok=True)
        made = self._beside()
        with self._lock:
            self._aside.append(made)
        return made[0]

    def close(self) -> None:
        """Hold nothing any more."""
        with self._lock:
            for folder, locked in self._aside:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(locked)
            self._aside.clear()
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
        beside, locked = self._beside()
        try:
            made = beside / "files"
            made.mkdir(mode=0o755)
            for name, file in files.items():
                path = made / name
                path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
                path.write_bytes(file.content)
                path.chmod(0o555 if file.executable else 0o444)
            turn = _locked(self._place, os.O_RDONLY, fcntl.LOCK_EX)
            try:
                if read(folder) != files:  # else another has put the same there, and runs it
                    with contextlib.suppress(FileNotFoundError):
                        folder.rename(beside / "old")
                    made.rename(folder)
            finally:
                os.close(turn)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
            os.close(locked)

    def _beside(self) -> tuple[Path, int]:
        """Make a folder that `_clear` leaves alone while its descriptor is open."""
        while True:
            made = Path(tempfile.mkdtemp(dir=self._place, prefix=NEW))
            try:
                return made, _locked(made, os.O_RDONLY, fcntl.LOCK_EX)
            except FileNotFoundError:
                continue  # one that starts has taken it away before it was locked

    def _clear(self) -> None:
        """Take away what others have left by dying: what is half unpacked, locks of nothing."""
        left = [*self._place.glob(f"{NEW}*"), *self._place.glob("*.lock")]
        for each in left:
            with contextlib.suppress(OSError), _only_ours(each):
                if each.name.startswith(NEW):
                    shutil.rmtree(each, ignore_errors=True)
                elif not each.with_suffix("").exists():
                    each.unlink()

    def _hold(self, digest: str) -> None:
        path = self._place / f"{digest}.lock"
        if digest not in self._held:
            self._held[digest] = _locked_or_made(path)
            if len(self._held) > MOST_HELD:
                os.close(self._held.popitem(last=False)[1])
        self._held.move_to_end(digest)
        os.utime(self._held[digest])

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
            with contextlib.suppress(OSError), _only_ours(lock):  # else another process has it
                shutil.rmtree(lock.with_suffix(""), ignore_errors=True)
                lock.unlink()
                total -= sizes[lock]


@contextlib.contextmanager
def _only_ours(path: Path) -> Iterator[None]:
    """Lock what nobody else has locked. Raises OSError where somebody has, or it is gone."""
    descriptor = _locked(path, os.O_RDONLY, fcntl.LOCK_EX | fcntl.LOCK_NB)
    try:
        yield
    finally:
        os.close(descriptor)


def _locked_or_made(path: Path) -> int:
    """Return a descriptor by which a file is locked for reading, whoever takes it away before."""
    while True:
        try:
            return _locked(path, os.O_CREAT | os.O_RDWR, fcntl.LOCK_SH)
        except FileNotFoundError:
            continue


def _locked(path: Path, how: int, lock: int) -> int:
    """Open and lock what is at a path, and still is when it is locked. Raises OSError."""
    descriptor = os.open(path, how | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, lock)
        if not os.path.samestat(os.fstat(descriptor), path.stat()):
            raise FileNotFoundError(path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


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
