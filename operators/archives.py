"""A program's folder as one file: tar, compressed with gzip.

Files and folders only: a link could name what is not the tenant's, here or where it is unpacked.
Read by code of our own, because what comes is anybody's: every number in it is bounded, and time
grows with the bytes alone.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import stat
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from operators import manifest
from operators.errors import NotAnOperator

MAX_ARCHIVE_BYTES = 8 * 1024 * 1024
MAX_UNPACKED_BYTES = 32 * 1024 * 1024
MAX_FILES = 1000
MAX_NAME = 200
MAX_DEPTH = 16

_BLOCK = 512
_FILE, _FOLDER, _LONG_NAME = (b"0", b"\0"), b"5", b"L"
_EXTENDED = (b"x", b"g")


class File(NamedTuple):
    """A file of a program."""

    content: bytes
    executable: bool


Files = Mapping[str, File]
"""By their paths in the folder, with `/`."""


def pack(folder: Path) -> bytes:
    """Return a folder as an archive, the same for the same files. Raises NotAnOperator."""
    found: dict[str, File] = {}
    size = 0
    for place, folders, names in os.walk(folder, onerror=_unreadable):
        folders[:] = sorted(each for each in folders if not _is_left_out(each))
        for name in sorted(folders) + sorted(names):
            path = Path(place) / name
            said = path.relative_to(folder).as_posix()
            mode = path.lstat().st_mode
            if stat.S_ISDIR(mode) or _is_left_out(name):
                continue
            if not stat.S_ISREG(mode):
                raise NotAnOperator(f"{said}: a link or a device; files and folders only")
            size += path.stat().st_size
            if size > MAX_UNPACKED_BYTES:
                raise NotAnOperator(f"files of more than {MAX_UNPACKED_BYTES} bytes in all")
            found[said] = File(_content(path), bool(mode & stat.S_IXUSR))
    _check(found)
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for name, file in sorted(found.items()):
            member = tarfile.TarInfo(name)
            member.size = len(file.content)
            member.mode = 0o755 if file.executable else 0o644
            try:
                archive.addfile(member, io.BytesIO(file.content))
            except ValueError as error:
                raise NotAnOperator(f"{name[:MAX_NAME]}: {error}") from error
    content = packed.getvalue()
    if len(content) > MAX_ARCHIVE_BYTES:
        raise NotAnOperator(f"{len(content)} bytes compressed, {MAX_ARCHIVE_BYTES} at most")
    return content


def unpack(archive: bytes) -> Files:
    """Return the files of an archive. Raises NotAnOperator."""
    if len(archive) > MAX_ARCHIVE_BYTES:
        raise NotAnOperator(f"an archive of {len(archive)} bytes, {MAX_ARCHIVE_BYTES} at most")
    content = _decompressed(archive)
    found: dict[str, File] = {}
    at, long_name = 0, ""
    while at + _BLOCK <= len(content):
        head = content[at : at + _BLOCK]
        if not head.strip(b"\0"):
            break
        size, mode, kind = _octal(head[124:136]), _octal(head[100:108]), head[156:157]
        begin = at + _BLOCK
        body = content[begin : begin + size]
        if len(body) != size:
            raise NotAnOperator("the archive ends in the middle of a file")
        at = begin + (size + _BLOCK - 1) // _BLOCK * _BLOCK
        name, long_name = long_name or _name(head), ""
        if kind == _LONG_NAME:
            long_name = _text(body)
        elif kind in _FILE:
            name = _plain(name)
            if name in found:
                raise NotAnOperator(f"{name}: is in the archive twice")
            found[name] = File(body, bool(mode & stat.S_IXUSR))
        elif kind in _EXTENDED:
            if b" path=" in body or b" size=" in body:
                raise NotAnOperator("a name of more than 100 characters: use tar --format=gnu")
        elif kind != _FOLDER:
            raise NotAnOperator(f"{name[:MAX_NAME]!r}: a link or a device; files and folders only")
        if len(found) > MAX_FILES:
            raise NotAnOperator(f"more than {MAX_FILES} files")
    _check(found)
    return found


def described(files: Files) -> manifest.Described:
    """Read the manifest among the files. Raises NotAnOperator."""
    if manifest.FILE not in files:
        raise NotAnOperator(f"{manifest.FILE}: there is none")
    return manifest.read(files[manifest.FILE].content)


def digest(files: Files) -> str:
    """What the files are: SHA-256 of their names and contents, and of which are executable."""
    total = hashlib.sha256()
    for name, file in sorted(files.items()):
        content = hashlib.sha256(file.content).hexdigest()
        total.update(f"{len(name.encode())} {name} {file.executable:d} {content}\n".encode())
    return total.hexdigest()


def _check(files: Files) -> None:
    if len(files) > MAX_FILES:
        raise NotAnOperator(f"{len(files)} files, {MAX_FILES} at most")
    for name in files:
        _plain(name)
        parts = name.split("/")
        for at in range(1, len(parts)):
            if "/".join(parts[:at]) in files:
                raise NotAnOperator(f"{name}: is below a file")


def _decompressed(archive: bytes) -> bytes:
    reader = zlib.decompressobj(wbits=31)
    try:
        content = reader.decompress(archive, MAX_UNPACKED_BYTES + 1)
    except zlib.error as error:
        raise NotAnOperator(f"no archive of tar and gzip: {error}") from error
    if len(content) > MAX_UNPACKED_BYTES:
        raise NotAnOperator(f"files of more than {MAX_UNPACKED_BYTES} bytes in all")
    if not reader.eof:
        raise NotAnOperator("the archive has no end")
    return content


def _name(head: bytes) -> str:
    prefix = head[345:500].split(b"\0")[0] if head[257:262] == b"ustar" else b""
    name = head[:100].split(b"\0")[0]
    return _text(prefix + b"/" + name if prefix and not prefix.startswith(b" ") else name)


def _text(content: bytes) -> str:
    try:
        return content.rstrip(b"\0").decode()
    except UnicodeDecodeError as error:
        raise NotAnOperator("a name that is not UTF-8") from error


def _plain(name: str) -> str:
    """Return the name as it is said here. Raises NotAnOperator for one that leaves the folder."""
    name = name.removeprefix("./")
    parts = name.split("/")
    if len(name) > MAX_NAME or len(parts) > MAX_DEPTH:
        raise NotAnOperator(
            f"{name[:60]}...: {MAX_NAME} characters and {MAX_DEPTH} folders at most"
        )
    if any(part in ("", ".", "..") for part in parts) or not name.isprintable():
        raise NotAnOperator(f"{name!r}: no path in a folder")
    if any(len(part.encode()) > 255 for part in parts):
        raise NotAnOperator(f"{name[:60]}...: a part of more than 255 bytes")
    return name


def _octal(field: bytes) -> int:
    try:
        return int(field.strip(b" \0") or b"0", 8)
    except ValueError as error:
        raise NotAnOperator("no archive of tar and gzip: a number is none") from error


def _is_left_out(name: str) -> bool:
    return name.startswith(".") or name == "__pycache__"


def _content(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(MAX_UNPACKED_BYTES + 1)


def _unreadable(error: OSError) -> None:
    raise NotAnOperator(f"{error.filename}: {error.strerror}")
