"""How many connections this process may have: as set, if the system allows as many."""

from __future__ import annotations

import contextlib
import logging
import resource
from dataclasses import dataclass

MAX_STANDING = 1000
MAX_ASKING = 1000
MAX_ASKING_EACH = 200
RESERVE = 128
"""Descriptors for everything else: stores, broker, logs."""

log = logging.getLogger("servioticy.delivery")


@dataclass(frozen=True, slots=True)
class Capacity:
    """Open sockets, in all and of a tenant, and connections that are none yet."""

    sockets: int = 10_000
    sockets_per_tenant: int = 1_000
    standing: int = MAX_STANDING
    asking: int = MAX_ASKING
    asking_each: int = MAX_ASKING_EACH


def capacity(sockets: int, per_tenant: int, descriptors: int) -> Capacity:
    """What is wished, cut to so many file descriptors: each connection takes one."""
    standing = min(MAX_STANDING, descriptors // 8)
    asking = min(MAX_ASKING, descriptors // 8)
    possible = max(1, descriptors - standing - asking - RESERVE)
    if possible < sockets:
        log.warning("fewer_sockets_than_set", extra={"set": sockets, "possible": possible})
    each = min(asking, MAX_ASKING_EACH)
    return Capacity(min(sockets, possible), per_tenant, standing, asking, each)


def raise_descriptors() -> int:
    """Allow ourselves as many file descriptors as the system lets us; returns how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1_000_000 if soft == resource.RLIM_INFINITY else soft
