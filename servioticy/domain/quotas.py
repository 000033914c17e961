"""The quotas: how much of everything a tenant may have, and how much of it each second or hour.

This is the table of them: names, defaults, units. An operator gives a tenant others by
`servioticy tenant quota`. Rates are for what one API process sees.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

SECOND, HOUR = 1, 3600
LATER_SECONDS = 60
"""When to try again where no time brings it: something of one's own has to go first."""


class Quota(NamedTuple):
    """How much there may be of something."""

    name: str
    most: int
    """for a tenant of which nothing else is said"""
    unit: str
    window: int | None
    """seconds in which so much may come; None: there may be so much at a time"""


_ALL = (
    Quota("updates", 50_000, "updates a second", SECOND),
    Quota("update-bytes", 8_388_608, "bytes of updates a second", SECOND),
    Quota("computations", 36_000_000, "computations an hour", HOUR),
    Quota("processor-seconds", 14_400, "seconds of scripts' processor time an hour", HOUR),
    Quota("deliveries", 36_000_000, "updates given to subscribers an hour", HOUR),
    Quota("stored-bytes", 100_000_000_000, "bytes of stored updates", None),
    Quota("documents", 100_000, "Service Objects", None),
    Quota("streams", 1_000_000, "streams of Service Objects", None),
    Quota("subscriptions", 100_000, "subscriptions", None),
    Quota("members", 1_000, "members", None),
    Quota("sockets", 1_000, "open sockets of a delivery process", None),
)
QUOTAS: Mapping[str, Quota] = MappingProxyType({each.name: each for each in _ALL})
"""All quotas, by name."""


class Exceeded(NamedTuple):
    """A quota that a tenant has used up."""

    quota: Quota
    retry_after: int
    """Seconds until there is some again, or until it is worth a try."""
