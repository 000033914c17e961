"""A process for which others are not to wait."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

AUTOGROUP = Path("/proc/self/autogroup")


def yield_to_others(nice: int) -> None:
    """Lower our priority by so much, and that of our session where it is ours.

    Linux may share the processor out by sessions first (autogroups): then a process alone in its
    session has as much of it as all of another program, whatever its own priority.
    """
    os.nice(nice)
    if nice and os.getsid(0) == os.getpid():
        with contextlib.suppress(OSError):  # it does not group
            AUTOGROUP.write_text(str(nice))
