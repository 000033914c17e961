"""A folder of this machine as a store. Whoever puts files there is not trusted: no link leads out.

A file is taken as it is once it has not been written to for a while, and again where it is
another one later. Names that begin with a dot are left alone, so whoever writes slowly writes
there and renames.

A folder that is away for a moment, a mount that failed say, is no empty one: nothing is taken for
gone but what the system says is not there, below a root that is.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice

from functions.files.store import (
    MAX_KEY,
    PAGE,
    FileGone,
    FileRefused,
    Page,
    StoreAway,
    StoreRefuses,
)
from servioticy.ports.atoms import Seen

SETTLED_SECONDS = 2.0
"""A file that was written to less long ago may not be whole."""
MAX_DEPTH = 16
MAX_LISTED = 1_000_000
"""Files that are looked through for a page."""
_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
"""What is not there, or is a link or no folder now; all else is trouble that may pass."""
_NOWHERE = frozenset({b"", b".", b".."})
"""Names that lead to nothing below."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class LocalFolder:
    """Lists and reads below a folder."""

    def __init__(self, path: str, now: float | None = None, below: Sequence[str] = ()) -> None:
        """The folder is so many steps below a path, none of which is a link.

        `now`: seconds since 1970, if not what the clock says.
        """
        self._path = path
        self._below = [os.fsencode(each) for each in below]
        self._now = now

    def page(self, prefix: str, after: str) -> Page:
        """Return the next files whose names begin so, behind that name."""
        begins, behind = prefix.encode(), after.encode()
        before = (time.time() if self._now is None else self._now) - SETTLED_SECONDS
        root = self._root()
        try:
            settled = (
                (key, at)
                for key, at in _Walk(begins, behind).files(root)
                if at.st_mtime <= before and stat.S_ISREG(at.st_mode)
            )
            found = list(islice(settled, PAGE + 1))
        except OSError as error:
            raise StoreAway(f"the folder cannot be read: {error.strerror}") from error
        finally:
            os.close(root)
        files = [Seen(key.decode(), _etag(at), at.st_size) for key, at in found[:PAGE]]
        return Page(files, None if len(found) <= PAGE else files[-1].key)

    def write(self, key: str, content: bytes) -> None:
        """Put a file, in the place of one of this name; it is there as a whole, or not at all.

        Raises FileRefused.
        """
        *folders, name = (os.fsencode(each) for each in key.split("/"))
        try:
            trusted = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                own = _inner(trusted, [*self._below, *folders], is_made=True)
            finally:
                os.close(trusted)
            try:
                _put(own, name, content)
            finally:
                os.close(own)
        except OSError as error:
            told = f"the file cannot be written: {error.strerror}"
            if error.errno in (errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.ELOOP, errno.EROFS):
                raise FileRefused(told) from error
            raise StoreAway(told) from error

    def read(self, file: Seen, start: int, length: int) -> bytes:
        """Return a part of a file; less where it ends before.

        Raises FileGone and FileRefused.
        """
        descriptor = self._open(file.key)
        try:
            if _etag(os.fstat(descriptor)) != file.etag:
                raise FileGone("the file is another one since it was listed")
            return os.pread(descriptor, length, start)
        except OSError as error:
            raise StoreAway(f"the file cannot be read: {error.strerror}") from error
        finally:
            os.close(descriptor)

    def _root(self) -> int:
        try:
            trusted = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                return _inner(trusted, self._below)
            finally:
                os.close(trusted)
        except OSError as error:
            told = f"the folder cannot be opened: {error.strerror}"
            if error.errno in (errno.ENOTDIR, errno.ELOOP):
                raise StoreRefuses(told) from error
            raise StoreAway(told) from error

    def _open(self, key: str) -> int:
        root = self._root()
        try:
            return _file(root, os.fsencode(key).split(b"/"))
        except ValueError as error:
            raise FileGone("the file is not there any more") from error
        except OSError as error:
            if error.errno in _GONE or error.errno == errno.ENXIO:  # a socket has its name
                raise FileGone("the file is not there any more") from error
            if error.errno in (errno.EACCES, errno.EPERM):
                raise FileRefused(f"the file cannot be opened: {error.strerror}") from error
            raise StoreAway(f"the file cannot be opened: {error.strerror}") from error
        finally:
            os.close(root)


def _file(root: int, steps: Sequence[bytes]) -> int:
    """Open a file below a folder. Raises OSError, ValueError; FileGone where it is none."""
    if steps[-1] in _NOWHERE:
        raise FileGone("the file is not there any more")
    folder = _inner(root, steps[:-1])
    try:
        found = os.open(steps[-1], _FILE, dir_fd=folder)
    finally:
        os.close(folder)
    try:
        if not stat.S_ISREG(os.fstat(found).st_mode):
            raise FileGone("the file is not there any more")
    except BaseException:
        os.close(found)
        raise
    return found


def _put(folder: int, name: bytes, content: bytes) -> None:
    """Write beside, and rename: who reads sees all of it. Raises OSError."""
    beside = b".%b.%b" % (name, secrets.token_hex(8).encode())
    how = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(beside, how, 0o644, dir_fd=folder), "wb") as file:
        try:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            os.rename(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(beside, dir_fd=folder)
            raise
    os.fsync(folder)


def _inner(root: int, folders: Sequence[bytes], *, is_made: bool = False) -> int:
    """Open a folder below one, and no link on the way. Raises OSError.

    `is_made`: what is missing is made, and is there after a power cut, whoever has made it.
    """
    if not _NOWHERE.isdisjoint(folders):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    own = os.dup(root)
    for each in folders:
        try:
            if is_made:
                with suppress(FileExistsError):
                    os.mkdir(each, 0o755, dir_fd=own)
                os.fsync(own)
            inner = os.open(each, _FOLDER, dir_fd=own)
        finally:
            os.close(own)
        own = inner
    return own


class _Walk:
    """Through files whose names begin so, behind that name, by the bytes of their names.

    Folders are read in which there may be such, and files looked at that are asked for: of a page
    no more than that, and the names in the folders on its way.
    """

    def __init__(self, prefix: bytes, after: bytes) -> None:
        self._prefix = prefix
        self._after = after
        self._count = 0

    def files(self, folder: int, above: bytes = b"") -> Iterator[tuple[bytes, os.stat_result]]:
        """Yield those below. Raises OSError; StoreRefuses where there are too many."""
        for key in self._names(folder, above):
            name = key[len(above) :].removesuffix(b"/")
            try:
                if not key.endswith(b"/"):
                    at = os.stat(name, dir_fd=folder, follow_symlinks=False)
                    yield key, at
                    continue
                inner = os.open(name, _FOLDER, dir_fd=folder)
            except OSError as error:
                if error.errno not in _GONE:
                    raise
                continue  # gone meanwhile
            try:
                yield from self.files(inner, key)
            finally:
                os.close(inner)

    def _names(self, folder: int, above: bytes) -> list[bytes]:
        """Return what may be asked for, in order; names of folders end with a slash."""
        found = []
        with os.scandir(folder) as entries:
            for each in entries:
                self._count += 1
                if self._count > MAX_LISTED:
                    raise StoreRefuses(f"the folder has more than {MAX_LISTED} files")
                name = os.fsencode(each.name)
                key = above + name
                if name.startswith(b".") or len(key) > MAX_KEY or not _is_text(key):
                    continue
                if each.is_file(follow_symlinks=False):
                    if key > self._after and key.startswith(self._prefix):
                        found.append(key)
                elif each.is_dir(follow_symlinks=False) and self._leads_on(key + b"/"):
                    found.append(key + b"/")
        return sorted(found)

    def _leads_on(self, folder: bytes) -> bool:
        """Whether names that begin with this may be asked for."""
        wanted = folder.startswith(self._prefix) or self._prefix.startswith(folder)
        is_ahead = folder > self._after or self._after.startswith(folder)
        return wanted and is_ahead and folder.count(b"/") <= MAX_DEPTH


def _is_text(key: bytes) -> bool:
    try:
        key.decode()
    except UnicodeDecodeError:
        return False
    return True


def _etag(at: os.stat_result) -> str:
    return f"{at.st_ino}-{at.st_size}-{at.st_mtime_ns}"
