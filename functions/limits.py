"""How many instances there may be, and how long each may hold what it has taken."""

from __future__ import annotations

from typing import NamedTuple

from servioticy.errors import SettingsError
from servioticy.settings import Settings

LEAST_BEYOND_SECONDS = 10.0
"""So much longer than an instance lives what it has taken is shown to nobody else: it finishes one
batch after its end at most, of which a single atom may take some seconds."""

LEASE_MS, RENEW_SECONDS = 10_000, 3.0
"""So long an instance holds a place of its tenant's, on all machines, and so often it is told that
it lives: the places of those that were killed are others' then."""

MAX_QUEUE = 10_000
"""Atoms of a queue; while there are more, nobody takes from the queues that lead into it."""


class Limits(NamedTuple):
    """Of one machine."""

    instances: int
    of_a_tenant: int
    lifetime_ms: int
    visibility_ms: int
    idle_seconds: float
    """Without work for so long the process ends."""


def limits(settings: Settings) -> Limits:
    """Return those of the settings. Raises SettingsError where they do not go together."""
    own = settings.functions
    least = own.lifetime_seconds + LEAST_BEYOND_SECONDS
    if own.visibility_seconds < least:
        raise SettingsError(
            f"setting functions_visibility_seconds = {own.visibility_seconds:g}: expected "
            f"{least:g} at least, {LEAST_BEYOND_SECONDS:g} more than functions_lifetime_seconds = "
            f"{own.lifetime_seconds:g}"
        )
    return Limits(
        own.instances,
        min(own.instances, own.instances_per_tenant),
        int(own.lifetime_seconds * 1000),
        int(own.visibility_seconds * 1000),
        own.idle_seconds,
    )
