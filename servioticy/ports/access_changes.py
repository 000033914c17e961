"""What has changed in who may do what: told as soon as it counts."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple, Protocol


class AccessChange(NamedTuple):
    """Something has changed, of these. What, the store is to be asked."""

    callers: Collection[bytes] = ()
    """Tokens and persons by their SHA-256: revoked, to end earlier, or for something else."""
    service_objects: Collection[str] = ()
    """Those that have another document, may be read by others or no more, or are deleted."""
    everything: bool = False
    """It is not known what has changed: something may have been said that was not heard."""


class AccessChanges(Protocol):
    """Tells what changes. For one thread."""

    def wait(self, seconds: float) -> AccessChange:
        """Return what has changed since the last call, within so many seconds of silence.

        The first call, and the first one after a connection was lost, says `everything`.
        Raises Unavailable.
        """
