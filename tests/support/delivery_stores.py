"""Stores in memory for tests of delivery: they know every stream, and count what is asked."""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Sequence
from typing import Any

from delivery.admission.capacity import Capacity
from servioticy.domain.model import LastUpdate, StreamKey, Timestamp
from servioticy.domain.quotas import LIVE_SUBSCRIPTIONS, SOCKETS, quotas
from servioticy.domain.tokens import digest
from servioticy.ports.access_changes import AccessChange
from servioticy.ports.addresses import Address, Lookup
from servioticy.settings import Settings

WAIT_SECONDS = 30.0


def a_capacity(sockets: int = 1_000, live: int = 10_000, **bounds: int) -> Capacity:
    """So many sockets, and subscriptions of them, of each tenant."""
    all_ = quotas(Settings())
    each = all_[SOCKETS]._replace(most=sockets), all_[LIVE_SUBSCRIPTIONS]._replace(most=live)
    return Capacity(*each, **bounds)


class Catalog:
    """`token-N` is tenant N's, and every tenant has every stream but those of `nothing`.

    What is asked for is found as the asker's own, but for `open` and `private`, which are
    tenant 9's. The catalog answers while it may. It keeps to `AccessChanges`, too: what the
    methods change is told.
    """

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.revoked: set[str] = set()
        self.deleted: set[str] = set()
        self.private: set[str] = set()
        self.expires: dict[str, float] = {}
        """When these tokens run out, by the clock of `time.monotonic`."""
        self.granted_until: dict[str, float] = {}
        """Until when others may read these, by that clock; nothing is told of the end."""
        self.questions = 0
        """How many were asked for many at once."""
        self._told: queue.Queue[AccessChange] = queue.Queue()
        self.may_answer = threading.Event()
        self.may_answer.set()

    def address(
        self, token: str, service_object: str | None, stream: str | None
    ) -> Address | None:
        self.may_answer.wait(WAIT_SECONDS)
        self.asked.append(token)
        left = self.expires.get(token, math.inf) - time.monotonic()
        if not token.startswith("token-") or token in self.revoked or left <= 0:
            return None
        tenant = int(token.removeprefix("token-").split("-")[0])
        until: dict[str, Any] = {"expires_in": left if token in self.expires else None}
        until["known_by"] = digest(token)
        if service_object == "nothing" or service_object in self.deleted:
            return Address(tenant, None, None, False, 1, 0, None, **until)
        owner = 9 if service_object in ("open", "private") else tenant
        is_public = service_object == "open" and service_object not in self.private
        if service_object in self.granted_until and owner != tenant:
            granted = self.granted_until[service_object] - time.monotonic()
            is_public = is_public and granted > 0
            until = {"expires_in": min(granted, left) if is_public else until["expires_in"]}
        return Address(tenant, service_object, owner, is_public, 1, 0, tenant, **until)

    def addresses(self, lookups: Sequence[Lookup]) -> list[Address | None]:
        self.questions += 1
        return [self.address(*each) for each in lookups]

    def wait(self, seconds: float) -> AccessChange:
        try:
            return self._told.get(timeout=seconds)
        except queue.Empty:
            return AccessChange()

    def tell(self, change: AccessChange) -> None:
        self._told.put(change)

    def revoke(self, token: str) -> None:
        self.revoked.add(token)
        self.tell(AccessChange([digest(token)]))

    def change(self, name: str) -> None:
        """Tell of another document."""
        self.tell(AccessChange((), [name]))

    def delete(self, name: str) -> None:
        self.deleted.add(name)
        self.tell(AccessChange((), [name]))

    def hide(self, name: str) -> None:
        self.private.add(name)
        self.tell(AccessChange((), [name]))


class History:
    """Holds of every stream so many updates of a size, made when they are asked for."""

    def __init__(self, updates: int = 0, size: int = 0) -> None:
        self.updates = updates
        self.size = size
        self.largest_page = 0

    def newest(self, stream: StreamKey) -> Timestamp | None:
        return self.updates or None

    def updates_after(
        self, stream: StreamKey, after: Timestamp, limit: int, max_bytes: int
    ) -> list[LastUpdate]:
        fitting = min(limit, max(1, max_bytes // max(1, self.size)))
        after = max(after, 0)  # the first one's timestamp is 1
        times = range(after + 1, min(after + fitting, self.updates) + 1)
        page = [LastUpdate(at, a_document(at, self.size)) for at in times]
        self.largest_page = max(self.largest_page, sum(len(each.document) for each in page))
        return page


def a_document(at: int, size: int = 0) -> bytes:
    """An update at a time, padded to a size where that is larger."""
    start = b'{"lastUpdate":%d,"v":"' % at
    return start + b"x" * (size - len(start) - 2) + b'"}'
