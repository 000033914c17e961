"""Ends the programs of a supervisor that was killed: `python guard.py LOCK`.

The supervisor cannot clean up after its own SIGKILL, and what the kernel offers instead
reaches only direct children. So this small process holds the other end of a pipe to the
supervisor and the lock of the data folder. Lines come in: `+GROUP SIGNAL` for a process
group that started, `-GROUP` for one that is gone. When the pipe closes, every group left
gets its signal, and SIGKILL a little later; then the lock goes, and with it the folder is free.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time

SECONDS_TO_END = 3.0


def main() -> None:
    """Listen until the supervisor is gone, then end what it left."""
    # It must outlive the supervisor, whoever ends that one; the pipe tells when to go.
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    groups: dict[int, int] = {}
    for line in sys.stdin:
        words = line[1:].split()
        if line.startswith("+"):
            groups[int(words[0])] = int(words[1])
        else:
            groups.pop(int(words[0]), None)
    for group, number in groups.items():
        send(group, number)
    deadline = time.monotonic() + SECONDS_TO_END
    while any(send(group, 0) for group in groups) and time.monotonic() < deadline:
        time.sleep(0.02)
    for group in groups:
        send(group, signal.SIGKILL)


def send(group: int, number: int) -> bool:
    """Signal a process group; whether it still exists."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
        return True
    return False


if __name__ == "__main__":
    main()
