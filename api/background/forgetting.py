"""What is old enough goes: entries of the audit log, accounts, what has ended or was deleted."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from api.services import Services
from servioticy.ports.statements import Statements

TOKENS_KEPT_DAYS = 7
AT_ONCE = 1_000
ACCOUNTS_AT_ONCE = 10_000
"""Hours of streams; a statement takes some tens of milliseconds for them."""
PAUSE_SECONDS = 60.0
"""Between two looks that found few."""
DAY_MS = 86_400_000
OBJECTS_KEPT_DAYS = 7
"""The ids of deleted Service Objects: records of the log may name them."""
CODES_KEPT_DAYS = 30
DEAD_KEPT_DAYS = 30
TEMPLATES_KEPT_MS = 3_600_000
LEFT_BEHIND = ("objects", "answers", "claim_codes", "templates", "dead_deliveries")


class Forgetting:
    """Removes what is older than it may be, some at a time. For one thread."""

    def __init__(
        self,
        stored: Statements,
        names: Sequence[str],
        age: Callable[[], Mapping[str, int]],
        most: int = AT_ONCE,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Each of the statements removes up to `most` rows and returns them.

        `age` gives the value by which they tell what is too old.
        """
        self._stored = stored
        self._names = names
        self._age = age
        self._most = most
        self._monotonic = monotonic
        self._next = 0.0

    def turn(self) -> bool:
        """Remove some; False: there are few left, or it is too early. Raises Unavailable."""
        if self._monotonic() < self._next:
            return False
        values = {**self._age(), "most": self._most}
        gone = max([len(self._stored.rows(each, **values)) for each in self._names])
        if gone < self._most:
            self._next = self._monotonic() + PAUSE_SECONDS
        return gone == self._most


def old_entries(services: Services) -> Forgetting:
    """Return the one for the audit log."""
    age = {"days": services.settings.requests.audit_days}
    return Forgetting(services.ports.statements("audit"), ("forget",), lambda: age)


def old_tokens(services: Services) -> Forgetting:
    """Return the one for tokens that have ended."""
    age = {"days": TOKENS_KEPT_DAYS}
    return Forgetting(services.ports.statements("tokens"), ("forget",), lambda: age)


def old_usage(services: Services) -> Forgetting:
    """Return the one for what tenants have used, and the ended grants by which they did."""
    stored, kept = services.ports.statements("usage"), services.settings.usage.days * DAY_MS

    def age() -> dict[str, int]:
        return {"before": services.now() - kept}

    return Forgetting(stored, ("forget", "forget_grants"), age, ACCOUNTS_AT_ONCE)


def old_atoms(services: Services) -> Forgetting:
    """Return the one for dead letters and results of workflows, and for what their steps did."""
    stored, kept = services.ports.statements("workflows"), services.settings.usage.days * DAY_MS

    def ages() -> dict[str, int]:
        now = services.now()
        return {"before": now - DEAD_KEPT_DAYS * DAY_MS, "hours_before": now - kept}

    return Forgetting(stored, ("forget", "forget_collected", "forget_hours"), ages)


def left_behind(services: Services) -> Forgetting:
    """Return the one for what was deleted, has ended or has been answered, and is still there."""

    def ages() -> dict[str, int]:
        now = services.now()
        return {
            "objects": now - OBJECTS_KEPT_DAYS * DAY_MS,
            "answers": now - DAY_MS,
            "codes": now - CODES_KEPT_DAYS * DAY_MS,
            "templates": now - TEMPLATES_KEPT_MS,
            "dead": now - DEAD_KEPT_DAYS * DAY_MS,
        }

    return Forgetting(services.ports.statements("left_behind"), LEFT_BEHIND, ages)
