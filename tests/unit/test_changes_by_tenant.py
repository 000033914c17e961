"""The right to change the graph goes around by tenant: nobody is behind all of another's."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from memory.platform import MemoryPlatform
from new_service_objects import new_service_object
from waiting import until

from servioticy.changes import Changes
from servioticy.errors import Unavailable

SIMPLE = {"streams": {"a": {"channels": {"x": {"type": "number"}}}}}
MANY, ONE = 1, 2


class Holding:
    """Somebody who has the right, until told to let it go."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._has, self._ends = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._hold, daemon=True)
        self._thread.start()
        assert self._has.wait(60)

    def let_go(self) -> None:
        self._ends.set()
        self._thread.join(60)

    def _hold(self) -> None:
        self._changes.create(new_service_object(MANY, "held", SIMPLE), self._along())

    @contextmanager
    def _along(self) -> Iterator[None]:
        self._has.set()
        self._ends.wait(60)
        yield


def test_another_waits_for_one_of_a_tenants_changes_and_not_for_all() -> None:
    platform = MemoryPlatform()
    changes = platform.changes
    holding = Holding(changes)
    threads = []

    def begin(tenant: int, id_: str) -> None:
        new = new_service_object(tenant, id_, SIMPLE)
        threads.append(threading.Thread(target=changes.create, args=(new,), daemon=True))
        threads[-1].start()
        waiting = changes._turns._waiting
        until(lambda: sum(map(len, waiting.values())) == len(threads))

    for number in range(3):
        begin(MANY, f"many{number}")
    begin(ONE, "one")
    holding.let_go()
    for each in threads:
        each.join(60)

    made = [record.service_object for _, record in platform.records(0)]
    assert made == ["held", "many0", "one", "many1", "many2"]


def test_who_waits_too_long_is_told_so() -> None:
    platform = MemoryPlatform()
    changes = Changes(platform.graph, platform.change_store, platform.log, wait_seconds=0.01)
    holding = Holding(changes)

    with pytest.raises(Unavailable, match="too many changes are being made"):
        changes.create(new_service_object(ONE, "one", SIMPLE))
    holding.let_go()
    changes.create(new_service_object(ONE, "one", SIMPLE))
