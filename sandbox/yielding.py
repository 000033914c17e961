"""A process for which others are not to wait."""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from pathlib import Path

AUTOGROUP = Path("/proc/self/autogroup")
USERS, STATUS = Path("/proc/self/uid_map"), Path("/proc/self/status")
EVERYBODY = ["0", "0", "4294967295"]
"""Users of the namespace in which the machine began."""
SYS_ADMIN = 1 << 21
"""A capability."""
NICE = 5
"""Of what computes for tenants: who waits for the programs that answer comes first."""
LEAST = 19
"""Of all priorities."""
TRIES, PAUSE_SECONDS = 30, 0.05
"""Linux lets one session of the whole machine be changed in a tenth of a second, but for some."""


def yield_to_others(nice: int) -> None:
    """Lower our priority by so much, and that of our session where it is ours.

    Linux may share the processor out by sessions first (autogroups): then a process alone in its
    session has as much of it as all of another program, whatever its own priority.
    """
    os.nice(nice)
    if nice and os.getsid(0) == os.getpid():
        _yield_session(nice)


def may_change_many() -> bool:
    """Tell whether we may change as many sessions as we want.

    Linux lets who has CAP_SYS_ADMIN in the first namespace of users: not the root of another one,
    nor that of most containers.
    """
    powers = re.search(r"^CapEff:\s*([0-9a-f]+)$", STATUS.read_text(), re.MULTILINE)
    is_first = USERS.read_text().split() == EVERYBODY
    return (
        is_first and powers is not None and bool(int(powers[1], 16) & SYS_ADMIN) and _may_write()
    )


def lead_a_session(nice: int) -> None:
    """Be a session of our own from now on, which yields by so much.

    In one with others we would have what they leave of the part of all.
    """
    os.setsid()
    if nice:
        _yield_session(nice)


def take_what_is_left() -> None:
    """Have only the time that nobody else wants from now on, in a session of our own.

    Our children have no more than that either. A processor on which nobody else works is taken for
    idle then: whoever wakes up gets it at once. Where the system refuses some of that (other
    kernels, filters of system calls) we go on with the rest: it protects nobody.
    """
    if _may_write():
        os.setsid()
        _yield_session(LEAST)
    try:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    except OSError:
        with suppress(OSError):
            os.nice(LEAST)


def _may_write() -> bool:
    """Tell whether a session would not keep the priority of all: in one that yields we stay."""
    return not AUTOGROUP.exists() or os.access(AUTOGROUP, os.W_OK)


def _yield_session(nice: int) -> None:
    for _ in range(TRIES):
        try:
            AUTOGROUP.write_text(str(nice))
        except BlockingIOError:  # another one was changed a moment ago
            time.sleep(PAUSE_SECONDS)
        except OSError:  # it does not group
            return
        else:
            return
