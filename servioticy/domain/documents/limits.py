"""How much one document may hold: what it costs to understand it, and whoever computes it.

A document is read by programs that serve other tenants, too, so each thing that reading
takes time for is counted over the whole document, with its aliases replaced, and has a
limit. The largest document that keeps to all of them is read in less than a second
(`servioticy bench documents`). What has been counted tells when it is time for a pause, too.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from servioticy.domain.documents.codes import TOO_MUCH
from servioticy.domain.documents.errors import WHOLE, Part


class Limit(NamedTuple):
    """The most of something that one document may hold."""

    most: int
    what: str
    """it is counted in, as the answer says it"""
    takes_time: bool = True
    """to read; else it is counted for those who compute it"""


MAX_STREAMS = Limit(1000, "streams", takes_time=False)
MAX_ALIASES = Limit(200, "aliases", takes_time=False)
MAX_MEMBERS = Limit(50_000, "members of groups", takes_time=False)
"""As written; a body of 1 MiB has room for 22,000 ids as we make them."""
MAX_CHANNELS = Limit(20_000, "channels")
MAX_TEXT = Limit(1024 * 1024, "bytes of code, types and units, their aliases replaced")
MAX_COMPARISONS = Limit(250_000_000, "comparisons to find its aliases")
"""Of characters, at worst: a search of n characters for m takes n times m, m up to 100."""
MAX_ARGUMENTS = Limit(100_000, "arguments of functions")
"""As written, however often the same."""
MAX_REFERENCES = Limit(20_000, "references")
"""Of each stream those that differ."""
MAX_STEPS = Limit(100_000, "steps in the paths of references")
MAX_PATHS = Limit(1000, "JSONPaths that do more than name one place")
"""They are read by a general parser, which takes 0.2 ms for each, and 5 µs a character."""
MAX_PATH_CHARACTERS = Limit(40_000, "characters of JSONPaths that do more than name one place")
MAX_SUBSCRIPTIONS = Limit(100_000, "subscriptions")
"""Edges of the graph: for each input of each stream the members it reads, at least one."""


STEP = 0.01
"""Of what one document may take, the part that is read until whoever reads may pause: two or three
milliseconds of the largest ones."""


class Laborious(Exception):
    """The document takes longer to read than its reader wants to spend."""


class Meter:
    """Counts what a document holds while it is read."""

    def __init__(self, most_share: float = inf) -> None:
        """`most_share`: the part of what a document may take after which it is Laborious."""
        self.counts: dict[Limit, int] = {}
        self._most_share = most_share
        self._share = 0.0
        self._since_pause = 0.0

    def count(self, limit: Limit, amount: int, part: Part = WHOLE) -> None:
        """Count so much more of it, which this part of the document holds.

        Raises BadDocument for the part where it is too much, Laborious where so much may
        be, but takes longer than is wanted.
        """
        total = self.counts[limit] = self.counts.get(limit, 0) + amount
        if total > limit.most:
            reason = f"more than {limit.most} {limit.what} in one Service Object"
            raise part.bad(reason, TOO_MUCH)
        part_of_most = amount / limit.most
        self._since_pause += part_of_most
        if limit.takes_time:
            self._share += part_of_most
            if self._share > self._most_share:
                raise Laborious

    def pauses(self) -> bool:
        """Tell whether so much has been counted since this last did that it is time for a pause.

        Also of what takes little time: of a thousand streams, each of which is little.
        """
        if self._since_pause < STEP:
            return False
        self._since_pause = 0.0
        return True

    def share(self, size: int) -> float:
        """Return what reading a document of so many bytes took, as a part of what one may take.

        Between 0 and a few; the largest documents differ by as much in time.
        """
        return size / MAX_TEXT.most + self._share

    def note(self, other: Meter) -> None:
        """What another one has counted, whether it is too much or not."""
        for limit, amount in other.counts.items():
            self.counts[limit] = self.counts.get(limit, 0) + amount
        self._share += other._share
