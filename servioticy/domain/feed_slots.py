"""Which durable subscriptions go together where several processes deliver: by a hash."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable

SLOTS = 64
"""Of all feeds: so many processes may share them."""


def slot_of(key: str, slots: int) -> int:
    """Return the slot of a subscription, of so many, by its id or by its tenant."""
    return zlib.crc32(key.encode()) % slots


def of_tenant(tenant: int) -> str:
    """Return by what all subscriptions of a tenant have one slot."""
    return str(tenant)


def share(slots: int, processes: int) -> int:
    """Return how many slots each of the processes may have at most."""
    return -(-slots // max(1, processes))


def surplus(held: Iterable[int], most: int) -> frozenset[int]:
    """Return which ones are too many, the last ones of those that are held."""
    return frozenset(sorted(held)[most:])


def missing(held: Collection[int], taken: Collection[int], slots: int, most: int) -> list[int]:
    """Return which ones, that nobody has, are to be taken to have `most`."""
    free = [each for each in range(slots) if each not in taken and each not in held]
    return free[: max(0, most - len(held))]
