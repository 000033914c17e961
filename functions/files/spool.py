"""A folder for copies of files, which goes with who made it: closed, or killed."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

PREFIX = "copies-"


class Spool:
    """Below a place that several processes may have: what the dead have left there goes."""

    def __init__(self, place: Path) -> None:
        """Nothing is made before it is asked for."""
        self._place = place
        self._made: tuple[Path, int] | None = None

    def folder(self) -> Path:
        """Return it, the same each time. Not for several threads at once. Raises OSError."""
        if self._made is None:
            self._place.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._sweep()
            self._made = self._make()
        return self._made[0]

    def close(self) -> None:
        """Let it go, with all that is in it."""
        if self._made is not None:
            folder, held = self._made
            shutil.rmtree(folder, ignore_errors=True)
            os.close(held)
            self._made = None

    def _make(self) -> tuple[Path, int]:
        while True:
            made = Path(tempfile.mkdtemp(dir=self._place, prefix=PREFIX))
            with suppress(OSError):  # another one has swept it away before it was held
                return made, _held(made)

    def _sweep(self) -> None:
        for each in self._place.glob(f"{PREFIX}*"):
            with suppress(OSError):  # somebody has it
                held = _held(each)
                shutil.rmtree(each, ignore_errors=True)
                os.close(held)


def _held(folder: Path) -> int:
    """Return what holds a folder that nobody else holds, as long as it is open. Raises OSError."""
    found = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(found), folder.stat()):
            raise FileNotFoundError(folder)
    except BaseException:
        os.close(found)
        raise
    return found
