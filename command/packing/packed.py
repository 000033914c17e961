"""The packed environment as a file: `servioticy pack`.

The same installation gives the same bytes, so that machines can be told apart by their sums.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import sys
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from importlib import metadata, resources
from pathlib import Path

from command import extras
from command.packing import installed
from servioticy.embedded import javascript
from servioticy.errors import SetupError
from servioticy.settings import Settings

FORMATS = (".tar.gz", ".tgz")
"""What Spark unpacks of those that we write: by the name."""
LEVEL = 6
"""Of gzip: a level more takes half as long again, for a hundredth."""
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
SITE = f"lib/python{VERSION}/site-packages"
_SERVIOTICY = '#!/bin/sh\nexec "$(dirname "$0")/python" -P -m command.cli "$@"\n'


def pack(settings: Settings, target: Path, *, with_spark: bool = False) -> str:
    """Write the environment to the target, which is there once it is whole; return its SHA-256.

    Raises SetupError where something is missing here, or the name is not one that Spark unpacks.
    """
    if not target.name.endswith(FORMATS):
        raise SetupError(f"{target}: Spark unpacks it by its name, which has to end with .tar.gz")
    javascript.require(settings, settings.sandbox.engine)
    new = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with (
            new.open("wb") as raw,
            gzip.GzipFile("", "wb", LEVEL, raw, mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as out,
        ):
            for name, content, is_program in _texts():
                _add(out, name, io.BytesIO(content), len(content), is_program=is_program)
            for name, file in _files(settings, with_spark=with_spark):
                about = file.stat()
                with file.open("rb") as each:
                    _add(out, name, each, about.st_size, is_program=bool(about.st_mode & 0o100))
        with new.open("rb") as written:
            digest = hashlib.file_digest(written, "sha256").hexdigest()
        new.replace(target)
    finally:
        with suppress(FileNotFoundError):
            new.unlink()
    return digest


def _texts() -> Iterator[tuple[str, bytes, bool]]:
    """Yield what is made here: the name of each, what is in it, and whether it is run."""
    launcher = resources.files("command.packing").joinpath("python.sh").read_text("utf-8")
    for name in ("python", "python3"):
        yield f"bin/{name}", launcher.replace("@VERSION@", VERSION).encode(), True
    yield "bin/servioticy", _SERVIOTICY.encode(), True
    # So that what is installed can be asked for, as where pip has done it.
    ours = metadata.distribution(extras.OURS)
    about = f"{SITE}/{extras.OURS}-{ours.version}.dist-info/METADATA"
    yield about, (ours.read_text("METADATA") or "").encode(), False


def _files(settings: Settings, *, with_spark: bool) -> Iterator[tuple[str, Path]]:
    named = [*installed.rooms(), *installed.others(with_spark=with_spark)]
    yield from ((f"{SITE}/{name}", file) for name, file in named)
    folder = javascript.folder(settings)
    for file in sorted(each for each in folder.iterdir() if each.is_file()):
        yield f"javascript/{folder.name}/{file.name}", file


def _add(out: tarfile.TarFile, name: str, content: object, size: int, *, is_program: bool) -> None:
    """Add a file as it would be on any machine: nobody's, and of no day."""
    about = tarfile.TarInfo(name)
    about.size = size
    about.mode = 0o755 if is_program else 0o644
    out.addfile(about, content)  # type: ignore[arg-type]  # it reads, and that is all
