"""The data folder: one platform at a time, and a note of what runs in it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from servioticy.errors import SetupError

# A platform that was killed still holds its folder until its last program is gone.
SECONDS_FOR_THE_LAST_ONE_TO_END = 15.0


class DataFolder:
    """A data folder that is ours until `release` or the end of this process."""

    def __init__(self, path: Path) -> None:
        """Take the folder; SetupError if another platform has it."""
        self.path = path
        self.logs = path / "logs"
        self.run_file = path / "run.json"
        self.scratch = path / "scratch"
        """For what programs write down for themselves: empty at first, gone in the end."""
        self.logs.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._take()
        except BaseException:
            os.close(self.lock)
            raise
        os.ftruncate(self.lock, 0)
        os.pwrite(self.lock, str(os.getpid()).encode(), 0)
        _remove(self.scratch)
        self.scratch.mkdir(mode=0o700, exist_ok=True)

    def write_run(self, facts: Mapping[str, Any]) -> None:
        """Tell other programs what runs here; readable by this user only."""
        partial = self.run_file.with_name(f".run.json.{os.getpid()}")
        write_private(partial, json.dumps(facts, indent=1))
        partial.replace(self.run_file)

    def release(self) -> None:
        """Let others have the folder."""
        if self.lock >= 0:
            self.run_file.unlink(missing_ok=True)
            _remove(self.scratch)
            os.close(self.lock)
            self.lock = -1

    def _take(self) -> None:
        deadline = time.monotonic() + SECONDS_FOR_THE_LAST_ONE_TO_END
        while True:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            holder = os.pread(self.lock, 20, 0).decode() or "0"
            if alive(int(holder)) or time.monotonic() > deadline:
                raise SetupError(
                    f"a platform already runs on {self.path} (process {holder}); stop it, or name "
                    "another folder in SERVIOTICY_DATA"
                )
            time.sleep(0.05)


def write_private(file: Path, text: str) -> None:
    """Write a file that nobody else can read, not even for a moment."""
    file.unlink(missing_ok=True)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def read_run(data: Path) -> dict[str, Any] | None:
    """Return what runs on this data folder now; None if nothing does."""
    try:
        facts: dict[str, Any] = json.loads((data / "run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return facts if alive(int(facts["pid"])) else None


def alive(pid: int) -> bool:
    """Tell whether there is a process of this number."""
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _remove(folder: Path) -> None:
    """Remove it and all in it; commands that only ask need nothing of the kind."""
    import shutil

    shutil.rmtree(folder, ignore_errors=True)
