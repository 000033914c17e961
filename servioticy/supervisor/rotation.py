"""Logs are put aside while they are written: by size, and a bounded number of them.

A program has its log open for appending, whatever it is: Postgres, the broker and Spark, too. So
what is in it is copied, and the file made empty under it. What is written in between is lost: some
lines at most, each time that many megabytes have come.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

LOG_LIMIT = 10 * 1024 * 1024
"""And what comes between two looks, of which there are some twenty a second."""
KEPT = 3
"""Logs that are put aside: NAME.log.1 is the newest."""


def rotate(log: Path) -> bool:
    """Put a large log aside; whether it was."""
    try:
        if log.stat().st_size <= LOG_LIMIT:
            return False
    except FileNotFoundError:
        return False
    for number in range(KEPT, 1, -1):
        older, newer = (log.with_name(f"{log.name}.{each}") for each in (number, number - 1))
        if newer.exists():
            newer.replace(older)
    with log.open("rb") as full, log.with_name(f"{log.name}.1").open("wb") as aside:
        # The newest of what has come too fast.
        full.seek(max(0, os.fstat(full.fileno()).st_size - LOG_LIMIT))
        shutil.copyfileobj(full, aside)
    os.truncate(log, 0)
    return True
