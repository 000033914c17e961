"""What is remembered of tenants' programs: of whom there is most, some is forgotten."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Generic, TypeVar

Value = TypeVar("Value")


class ByTenant(Generic[Value]):
    """Values by tenant and name, a bounded number in all.

    Where there is no room, the tenant with most loses the older half of its own: however many
    one thinks of, the others' stay.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._count = 0
        self._kept: dict[str, dict[str, Value]] = {}

    def of(self, tenant: str) -> Mapping[str, Value]:
        """Return what is remembered of a tenant."""
        return self._kept.get(tenant, {})

    def put(self, tenant: str, name: str, value: Value) -> None:
        """Remember a value in the place of the one before."""
        if name not in self.of(tenant):
            if self._count >= self._most:
                self._make_room()
            self._count += 1
        self._kept.setdefault(tenant, {})[name] = value

    def all(self) -> dict[str, Value]:
        """Return the values of all tenants by name."""
        return {name: value for theirs in self._kept.values() for name, value in theirs.items()}

    def _make_room(self) -> None:
        largest = max(self._kept.values(), key=len)
        for name in list(islice(largest, (len(largest) + 1) // 2)):
            del largest[name]
            self._count -= 1
        self._kept = {tenant: theirs for tenant, theirs in self._kept.items() if theirs}
