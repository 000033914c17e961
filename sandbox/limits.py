"""What the operating system is asked to refuse a worker. The hardening continues here."""

from __future__ import annotations

import ctypes
import os
import resource
import signal

DATA_BYTES = 320 * 1024 * 1024
"""V8 reserves terabytes of addresses, so only what is written to can be limited."""

_SET_PDEATHSIG = 1
_SET_NO_NEW_PRIVS = 38


class LimitRefused(Exception):
    """The operating system did not accept a limit."""


def apply(parent: int) -> None:
    """Limit this process, and tie its life to its parent's."""
    for limit, value in (
        (resource.RLIMIT_DATA, DATA_BYTES),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, 64),
    ):
        resource.setrlimit(limit, (value, value))
    _prctl(_SET_PDEATHSIG, signal.SIGKILL)
    _prctl(_SET_NO_NEW_PRIVS, 1)
    if os.getppid() != parent:  # it died before the signal was arranged
        os._exit(0)


def _prctl(option: int, value: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise LimitRefused(os.strerror(ctypes.get_errno()))
