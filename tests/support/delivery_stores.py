"""Stores in memory for tests of delivery: they know every stream, and count what is asked."""

from __future__ import annotations

import threading

from servioticy.domain.model import LastUpdate, StreamKey, Timestamp
from servioticy.ports.addresses import Address

WAIT_SECONDS = 30.0


class Catalog:
    """`token-N` is tenant N's, and every tenant has every stream but those of `nothing`.

    What is asked for is found as the asker's own, but for `open` and `private`, which are
    tenant 9's. The catalog answers while it may.
    """

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.revoked: set[str] = set()
        self.may_answer = threading.Event()
        self.may_answer.set()

    def address(self, token: str, service_object: str, stream: str | None) -> Address | None:
        self.may_answer.wait(WAIT_SECONDS)
        self.asked.append(token)
        if not token.startswith("token-") or token in self.revoked:
            return None
        tenant = int(token.removeprefix("token-"))
        if service_object == "nothing":
            return Address(tenant, None, None, False, 1, 0, None)
        owner = 9 if service_object in ("open", "private") else tenant
        return Address(tenant, service_object, owner, service_object == "open", 1, 0, tenant)


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
        times = range(after + 1, min(after + fitting, self.updates) + 1)
        page = [LastUpdate(at, a_document(at, self.size)) for at in times]
        self.largest_page = max(self.largest_page, sum(len(each.document) for each in page))
        return page


def a_document(at: int, size: int = 0) -> bytes:
    """An update at a time, padded to a size where that is larger."""
    start = b'{"lastUpdate":%d,"v":"' % at
    return start + b"x" * (size - len(start) - 2) + b'"}'
