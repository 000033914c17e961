"""Updates that are older than they are kept, as whoever removes them asks for it."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Expired(NamedTuple):
    """What a piece of it was."""

    reached: int | None
    """The number of the stream behind which to go on; None: there are no more."""
    updates: int
    bytes: int


class Expiry(Protocol):
    """Removes what is older than it is kept; readers have not seen it since it was."""

    def keep_for(self, seconds: int | None) -> None:
        """Keep updates for so long of streams that say nothing themselves; None: for ever."""

    def forgetful(self, partition: int, after: int, most: int) -> list[int]:
        """Return the next tenants, by number, of whom something may expire in its turn."""

    def expire(self, tenant: int, after: int, streams: int, most: int, most_bytes: int) -> Expired:
        """Remove updates that have expired of a tenant's next so many streams.

        At most so many, and no more than take about so many bytes and one; where any are
        removed there may be more. Not a stream's last one, and none that is perhaps not emitted.
        """
