"""The applications that are registered: a folder each, below the data folder.

Who may write there is who operates the platform, and nobody else registers code.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec

from monitoring.applications.package import FILE, Application
from monitoring.state import FOLDER
from servioticy.errors import ServioticyError

MOST = 20
"""Applications: each has two processes at least."""
MOST_FILES = 10_000
MOST_BYTES = 256 << 20
MAX_RECORD = 1 << 16

Wish = Literal["running", "stopped"]


class NotRegistered(ServioticyError):
    """There is no such application; the message says which."""


class TooMuch(ServioticyError):
    """A package is larger than is taken, or too many are registered; the message says what."""


class Registered(msgspec.Struct, frozen=True, rename="camel"):
    """An application of the repository."""

    id: str
    """stays, whatever is deployed in its name"""
    name: str
    engine: str
    version: int
    """of its package: counted from 1"""
    registered_at: int
    """ms since 1970, of this version"""
    wish: Wish
    turn: int
    """another with each that it is begun or deployed"""


class Place:
    """The folder of one application."""

    def __init__(self, data: Path, name: str) -> None:
        self.folder = data / FOLDER / "applications" / name
        self.name = name
        self.record = self.folder / "registered.json"
        self.package = self.folder / "package"
        self.aspects = self.folder / "aspects.toml"
        self.pipe = self.folder / "measurements.pipe"
        self.measurements = self.folder / "measurements" / f"{name}.ndjson"
        self.state = self.folder / "state.json"
        self.loaded = self.folder / "loaded"
        """first on the path of each of its Python processes"""
        self.scratch = self.folder / "scratch"

    def files(self) -> list[Path]:
        """Return what is stored of its measurements, the oldest first."""
        both = (self.measurements.with_name(f"{self.measurements.name}.1"), self.measurements)
        return [each for each in both if each.exists()]


def drivers_folder(data: Path) -> Path:
    """Return where drivers stand that were supplied."""
    return data / FOLDER / "drivers"


def all_registered(data: Path) -> list[Registered]:
    """Return all of them, by name."""
    folder = data / FOLDER / "applications"
    try:
        names = sorted(each.name for each in os.scandir(folder) if each.is_dir())
    except FileNotFoundError:
        return []
    return [each for name in names if (each := _read(Place(data, name))) is not None]


def registered(data: Path, name: str) -> Registered:
    """Return one. Raises NotRegistered."""
    found = next((each for each in all_registered(data) if each.name == name), None)
    if found is None:
        raise NotRegistered(f"there is no application {name}")
    return found


def register(data: Path, application: Application, package: Path) -> Registered:
    """Keep a package, in the place of the one of the same name, to be run from now on.

    Raises TooMuch, OSError.
    """
    measured(package)
    place = Place(data, application.name)
    with _alone(data):
        before = _read(place)
        if before is None and len(all_registered(data)) >= MOST:
            raise TooMuch(f"there are {MOST} applications already: remove one")
        place.folder.mkdir(mode=0o700, exist_ok=True)
        fresh = place.folder / f"package.{os.getpid()}"
        try:
            shutil.copytree(package, fresh, symlinks=True)
            shutil.rmtree(place.package, ignore_errors=True)
            fresh.replace(place.package)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
        return _write(
            place,
            Registered(
                before.id if before else uuid.uuid4().hex,
                application.name,
                application.engine,
                before.version + 1 if before else 1,
                time.time_ns() // 1_000_000,
                "running",
                before.turn + 1 if before else 1,
            ),
        )


def wish(data: Path, name: str, wanted: Wish) -> Registered:
    """Let it run, anew if it has ended, or be stopped. Raises NotRegistered."""
    with _alone(data):
        found = registered(data, name)
        turn = found.turn + (wanted == "running")
        return _write(Place(data, name), msgspec.structs.replace(found, wish=wanted, turn=turn))


def remove(data: Path, name: str) -> None:
    """Forget it, with its package and all that was measured. Raises NotRegistered."""
    with _alone(data):
        registered(data, name)
        place = Place(data, name)
        # Without it nobody begins it any more, whatever else is left.
        place.record.unlink(missing_ok=True)
        shutil.rmtree(place.folder, ignore_errors=True)


def measured(package: Path) -> tuple[int, int]:
    """Return how many files and bytes a package has. Raises TooMuch, also where it has links."""
    if not (package / FILE).is_file():
        raise TooMuch(f"{package} is no package: there is no {FILE} in it")
    files = size = 0
    for folder, folders, names in os.walk(package):
        for name in (*folders, *names):
            each = Path(folder, name)
            if each.is_symlink() or not (each.is_dir() or each.is_file()):
                raise TooMuch(f"{each} is neither a file nor a folder")
        files += len(names)
        size += sum(Path(folder, name).stat().st_size for name in names)
        if files > MOST_FILES or size > MOST_BYTES:
            raise TooMuch(f"a package has {MOST_FILES:,} files and {MOST_BYTES:,} bytes at most")
    return files, size


@contextmanager
def _alone(data: Path) -> Iterator[None]:
    folder = data / FOLDER / "applications"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _read(place: Place) -> Registered | None:
    try:
        text = place.record.read_bytes()[:MAX_RECORD]
        found = msgspec.json.decode(text, type=Registered)
    except (OSError, msgspec.DecodeError):
        return None  # it is being made, or removed
    return found if found.name == place.name else None


def _write(place: Place, found: Registered) -> Registered:
    partial = place.record.with_suffix(f".{os.getpid()}")
    partial.write_bytes(msgspec.json.encode(found))
    partial.replace(place.record)
    return found
