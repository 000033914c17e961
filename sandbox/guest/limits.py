"""How much of the machine a worker may use. More: confinement.py, seccomp.py."""

from __future__ import annotations

import ctypes
import os
import resource
import signal

OWN_BYTES = 192 * 1024 * 1024
"""Beside twice what scripts may have: V8 looks at that after a collection. It reserves terabytes
of addresses, so only what is written to can be limited."""

_SET_PDEATHSIG = 1

_C = ctypes.CDLL(None, use_errno=True)


class LimitRefused(Exception):
    """The operating system did not accept a limit."""


def apply(heap_bytes: int) -> None:
    """Limit this process, whose scripts have so much of a heap. Raises LimitRefused."""
    data_bytes = OWN_BYTES + 2 * heap_bytes
    try:
        for limit, value in (
            (resource.RLIMIT_DATA, data_bytes),
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_FSIZE, 0),
            (resource.RLIMIT_NOFILE, 64),
        ):
            resource.setrlimit(limit, (value, value))
    except (OSError, ValueError) as error:
        raise LimitRefused(str(error)) from error


def tie(parent: int) -> None:
    """Let this process end with its parent; called after any change of user, which undoes it."""
    if _C.prctl(_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0) != 0:
        raise LimitRefused(os.strerror(ctypes.get_errno()))
    if os.getppid() != parent:  # it died before the signal was arranged
        os._exit(0)
