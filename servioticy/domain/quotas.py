"""The quotas: how much of everything a tenant may have, and how much of it each second or hour.

This is the table of them: names, units, defaults, and who asks. An operator gives a tenant
others by `servioticy tenant quota`. Rates are for all processes together that take updates: those
of the API, of the broker, and of functions for what sinks send (`ingest/sharing.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from servioticy.settings import Settings

SECOND, HOUR = 1, 3600
LATER_SECONDS = 60
"""When to try again where no time brings it: something of one's own has to go first."""


class Kind(Enum):
    """How it is known how much a tenant has used."""

    RATE = auto()
    """It is counted where it comes."""
    METERED = auto()
    """It is used after it has been accepted, and told by who did it some seconds later."""
    COUNTED = auto()
    """It is there, and can be counted: the statement of its name does."""
    OPEN = auto()
    """Who lets it in counts it."""


class Quota(NamedTuple):
    """How much there may be of something."""

    name: str
    most: int
    """for a tenant of which nothing else is said"""
    unit: str
    window: int | None
    """seconds in which so much may come; None: there may be so much at a time"""
    kind: Kind


COMPUTATIONS, PROCESSOR_SECONDS = "computations", "processor-seconds"
STORED_BYTES = "stored-bytes"
READ_SECONDS = "read-seconds"
"""Used up, a tenant reads no more; all else goes on."""
RESTING = (COMPUTATIONS, PROCESSOR_SECONDS, STORED_BYTES)
"""Used up, a tenant's composites rest that others' updates would wake."""
DELIVERIES = "deliveries"
"""Used up, nothing more is given to a tenant's subscribers; all else goes on."""
TOKENS = "tokens"
OPERATORS = "operators"
"""Versions of programs of the tenant's own: of strangers nobody may push any until told."""
OWN_OPERATORS = 100
"""Where all tenants are the operator's own."""
DOCUMENT_BYTES = "document-bytes"
SOCKETS = "sockets"
LIVE_SUBSCRIPTIONS = "live-subscriptions"
REQUESTS = "requests-waiting"
UPDATES_WAITING = "updates-waiting"
ATOMS, ATOM_BYTES = "atoms-waiting", "atom-bytes-waiting"
FILES_KNOWN = "files-known"


@cache
def quotas(settings: Settings) -> Mapping[str, Quota]:
    """Return all quotas, by name."""
    each = (
        Quota("updates", 50_000, "updates a second", SECOND, Kind.RATE),
        Quota(
            "update-bytes",
            settings.requests.tenant_bytes_per_second,
            "bytes of updates a second",
            SECOND,
            Kind.RATE,
        ),
        Quota(COMPUTATIONS, 36_000_000, "computations an hour", HOUR, Kind.METERED),
        Quota(
            PROCESSOR_SECONDS,
            14_400,
            "seconds of scripts' processor time an hour",
            HOUR,
            Kind.METERED,
        ),
        Quota(DELIVERIES, 36_000_000, "updates given to subscribers an hour", HOUR, Kind.METERED),
        Quota(
            READ_SECONDS,
            900,
            "seconds of the API's processor time for reads an hour",
            HOUR,
            Kind.METERED,
        ),
        Quota(STORED_BYTES, 100_000_000_000, "bytes of stored updates", None, Kind.METERED),
        Quota("documents", 100_000, "Service Objects", None, Kind.COUNTED),
        Quota("streams", 1_000_000, "streams of Service Objects", None, Kind.COUNTED),
        Quota("subscriptions", 100_000, "subscriptions", None, Kind.COUNTED),
        Quota("aspects", 100, "streams that are measured by the minute", None, Kind.COUNTED),
        Quota("members", 1_000, "members", None, Kind.COUNTED),
        Quota(TOKENS, 10_000, "tokens that are good", None, Kind.COUNTED),
        Quota(
            OPERATORS,
            OWN_OPERATORS if settings.operators.protection == "any" else 0,
            "versions of operators",
            None,
            Kind.COUNTED,
        ),
        Quota(
            DOCUMENT_BYTES,
            10_000_000_000,
            "bytes of documents, of all their versions",
            None,
            Kind.COUNTED,
        ),
        Quota(
            SOCKETS,
            settings.delivery.sockets_per_tenant,
            "open sockets, at all processes of delivery and of the broker",
            None,
            Kind.OPEN,
        ),
        Quota(
            LIVE_SUBSCRIPTIONS,
            10_000,
            "subscriptions of sockets for many, at all processes of delivery",
            None,
            Kind.OPEN,
        ),
        Quota(
            REQUESTS,
            settings.api.queue_of_one,
            "requests of one kind that wait in an API process",
            None,
            Kind.OPEN,
        ),
        Quota(
            UPDATES_WAITING,
            settings.requests.max_put_off,
            "updates that wait in a partition to be computed",
            None,
            Kind.OPEN,
        ),
        Quota(ATOMS, 100_000, "atoms that wait in the queues of workflows", None, Kind.OPEN),
        Quota(ATOM_BYTES, 268_435_456, "bytes of atoms that wait in the queues", None, Kind.OPEN),
        Quota(FILES_KNOWN, 300_000, "files of workflows' stores", None, Kind.COUNTED),
    )
    return MappingProxyType({quota.name: quota for quota in each})


class Exceeded(NamedTuple):
    """A quota that a tenant has used up."""

    quota: Quota
    retry_after: int
    """Seconds until there is some again, or until it is worth a try."""

    @property
    def message(self) -> str:
        """The sentence that says so."""
        return f"You have a quota of {self.quota.most} {self.quota.unit}, which is used up"

    def about(self) -> dict[str, object]:
        """Return what the body of an error has as `quota`."""
        quota = self.quota
        return {"name": quota.name, "limit": quota.most, "unit": quota.unit}

    def headers(self) -> dict[str, str]:
        """Return those of draft-ietf-httpapi-ratelimit-headers, and when to try again."""
        quota, wait = self
        window = "" if quota.window is None else f";w={quota.window}"
        return {
            "Retry-After": str(wait),
            "RateLimit-Policy": f'"{quota.name}";q={quota.most}{window}',
            "RateLimit": f'"{quota.name}";r=0;t={wait}',
        }
