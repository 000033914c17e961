"""How many connections this process may have: as set, if the system allows as many."""

from __future__ import annotations

import contextlib
import logging
import resource
from dataclasses import dataclass

from servioticy.domain.quotas import Quota

MAX_PENDING = 1000
MAX_LIVE = 100_000
"""Subscriptions of sockets for many: each takes some 5 KB."""
MAX_ASKING = 1000
MAX_ASKING_EACH = 200
RESERVED_DESCRIPTORS = 128
"""These file descriptors are for everything else: stores, broker, logs."""

log = logging.getLogger("servioticy.delivery")


@dataclass(frozen=True, slots=True)
class Capacity:
    """How many connections may be open, in all and of a tenant, pending, or asking the store."""

    sockets: Quota
    """How many connections of a tenant, where operators say nothing else of it."""
    live: Quota
    """How many subscriptions of its sockets for many."""
    connections: int = 10_000
    pending: int = MAX_PENDING
    live_subscriptions: int = MAX_LIVE
    asking: int = MAX_ASKING
    asking_each: int = MAX_ASKING_EACH


def capacity(connections: int, sockets: Quota, live: Quota, descriptors: int) -> Capacity:
    """Cut the wished capacity to the file descriptors there are: each connection takes one.

    As many as are pending may wait at the door besides.
    """
    pending = min(MAX_PENDING, descriptors // 8)
    asking = min(MAX_ASKING, descriptors // 8)
    possible = max(1, descriptors - 2 * pending - asking - RESERVED_DESCRIPTORS)
    if possible < connections:
        log.warning("fewer_sockets_than_set", extra={"set": connections, "possible": possible})
    each = min(asking, MAX_ASKING_EACH)
    most = min(connections, possible)
    return Capacity(sockets, live, most, pending, asking=asking, asking_each=each)


def raise_descriptors() -> int:
    """Allow this process as many file descriptors as the system lets it; returns how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1_000_000 if soft == resource.RLIM_INFINITY else soft
