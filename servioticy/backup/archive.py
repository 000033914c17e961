"""The file of a back-up: a zip, so that any tool shows what is in it, with a checksum a part.

It has its name when it is whole, and is read by its owner alone. Whatever the size, a part is in
memory a little at a time.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import io
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, Self, cast

from servioticy.backup import about as abouts
from servioticy.backup.about import About, Part
from servioticy.domain.kept import TOPICS
from servioticy.errors import ServioticyError

if TYPE_CHECKING:
    from typing_extensions import Buffer

ABOUT = "about.json"
MOST_ABOUT = 16 * 1024 * 1024
AT_ONCE = 1 << 20
LEVEL = 1
"""Of zlib: more would take the processor from the platform, for a tenth of the size."""

Told = Callable[[int, str], None]
"""It is given the bytes done, and what is being done."""


class BadBackup(ServioticyError):
    """The file is no back-up, or not what it was."""


class Written:
    """A file that is being written; `parts` are those that are whole."""

    def __init__(self, file: BinaryIO, told: Told) -> None:
        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL)
        self._told = told
        self._done = 0
        self.parts: list[Part] = []

    @contextmanager
    def part(self, name: str, columns: tuple[str, ...] = ()) -> Iterator[Counted]:
        """Hand out a part to write to; its rows are counted by who writes, or by their lines."""
        with self._zip.open(_entry(name), "w", force_zip64=True) as raw:
            before = self._done
            counted = Counted(raw, lambda size: self._told(before + size, name))
            with io.BufferedWriter(counted, AT_ONCE) as buffered:
                counted.file = buffered
                yield counted
        self._done += counted.size
        count = counted.lines if columns else counted.count
        self.parts.append(Part(name, count, counted.size, counted.digest.hexdigest(), columns))

    def end(self, about: About) -> None:
        """Say what is in the file; nothing may be written after it."""
        with self._zip.open(_entry(ABOUT), "w") as raw:
            raw.write(abouts.written(about))
        self._zip.close()

    def give_up(self) -> None:
        """Let the file go; it is nothing."""
        with contextlib.suppress(OSError, ValueError):
            self._zip.close()


class Counted(io.RawIOBase):
    """What is written passes through here, and is counted."""

    def __init__(self, raw: IO[bytes], told: Callable[[int], None]) -> None:
        super().__init__()
        self._raw = raw
        self._told = told
        self.file: BinaryIO
        """To be written to."""
        self.digest = hashlib.sha256()
        self.count = 0
        """Of records, as who writes them counts."""
        self.lines = 0
        self.size = 0

    def writable(self) -> bool:
        """Return that it is."""
        return True

    def write(self, part: Buffer) -> int:
        """Write a part of it."""
        data = bytes(part)
        self._raw.write(data)
        self.digest.update(data)
        self.lines += data.count(b"\n")
        self.size += len(data)
        self._told(self.size)
        return len(data)


@contextmanager
def written(file: Path, told: Told = lambda _done, _what: None) -> Iterator[Written]:
    """Hand out a file to write; it gets its name when all is on the disk, or is gone.

    Raises ServioticyError where there is such a file, or where it cannot be written.
    """
    if file.exists():
        raise ServioticyError(f"{file} is there already: name another file")
    partial = file.with_name(f"{file.name}.partial")
    try:
        descriptor = _taken(partial)
        with os.fdopen(descriptor, "wb") as raw:
            writing = Written(raw, told)
            try:
                yield writing
                raw.flush()
                os.fsync(raw.fileno())
                partial.rename(file)
            except BaseException:
                partial.unlink(missing_ok=True)
                writing.give_up()
                raise
        _sync(file.parent)
    except OSError as error:
        raise ServioticyError(f"{file} cannot be written: {error}") from error


def _taken(partial: Path) -> int:
    """Open the file under its name for now, which one that was killed may have left behind."""
    while True:
        descriptor = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(descriptor), partial.stat()):
                os.fchmod(descriptor, 0o600)
                os.ftruncate(descriptor, 0)
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            raise ServioticyError(f"another back-up is writing {partial} just now") from None
        except FileNotFoundError:  # the other one has just ended
            pass
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o600 << 16
    return entry


class Archive:
    """A file that is read. What is wrong with it is BadBackup, as soon as it is seen."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._is_checked = False
        try:
            self._zip = zipfile.ZipFile(file)
        except FileNotFoundError as error:
            raise BadBackup(f"there is no file {file}") from error
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
            raise BadBackup(f"{file} is no whole back-up: {error}") from error
        try:
            self.about = self._about()
        except BaseException:
            self._zip.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    @property
    def size(self) -> int:
        """How many bytes are in it, before they were compressed."""
        return sum(each.size for each in self.about.parts)

    def check(self, told: Told = lambda _done, _what: None) -> None:
        """Read all of it, once. Raises BadBackup where something is not as it was written."""
        if self._is_checked:
            return
        names = [ABOUT, *(each.name for each in self.about.parts)]
        if sorted(self._zip.namelist()) != sorted(names) or len(set(names)) != len(names):
            raise BadBackup(f"{self._file} has other parts than it says that it has")
        partitions = self.about.progress
        topics = {f"log/{topic}-{number}" for topic in TOPICS for number in partitions}
        if not topics <= set(names) or sorted(partitions) != list(range(len(partitions))):
            raise BadBackup(f"{self._file} does not have all partitions of the log")
        done = 0
        for part in self.about.parts:
            digest, size = hashlib.sha256(), 0
            with self.part(part.name) as file:
                while size <= part.size and (read := file.read(AT_ONCE)):
                    digest.update(read)
                    size += len(read)
                    told(done + size, f"checking {part.name}")
            if (size, digest.hexdigest()) != (part.size, part.sha256):
                raise BadBackup(f"{self._file}: {part.name} is not as it was written")
            done += size
        self._is_checked = True

    @contextmanager
    def part(self, name: str) -> Iterator[BinaryIO]:
        """Hand out a part to read; ValueError of who reads it is one of the file."""
        try:
            with self._opened(name) as file:
                yield cast("BinaryIO", file)
        except (zipfile.BadZipFile, zlib.error, EOFError, ValueError) as error:
            raise BadBackup(f"{self._file} is no whole back-up: {error}") from error

    def _opened(self, name: str) -> IO[bytes]:
        try:
            if self._zip.getinfo(name).compress_type != zipfile.ZIP_DEFLATED:
                raise ValueError(f"{name} is compressed in another way")
            return self._zip.open(name)
        except (KeyError, NotImplementedError, RuntimeError, OSError) as error:
            raise ValueError(str(error)) from error

    def _about(self) -> About:
        with self.part(ABOUT) as file:
            return abouts.read(file.read(MOST_ABOUT))
