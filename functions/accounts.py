"""What steps have done, added up and stored now and then; what is not stored when we are killed is
lost, in favour of who would pay."""

from __future__ import annotations

import logging
import threading
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Protocol

from functions.instance import Done
from functions.steps import Task
from servioticy.domain.workflows.model import CALLBACK, SINK
from servioticy.errors import Unavailable
from servioticy.ports.atoms import Work, Works
from servioticy.ports.usage import Given, Spent

MAX_COUNTED = 10_000
"""Steps that are kept while the store is away; further ones are not counted."""

log = logging.getLogger("functions")


class Notes(Protocol):
    """Keeps what was done: `PostgresAtoms` does."""

    def note(self, works: Works) -> None:
        """Add to the account of the present hour."""


class Spends(Protocol):
    """Charges tenants: `PostgresUsage` does."""

    def spend(self, spent: Mapping[Spent, int]) -> None:
        """Add microseconds of processor time to the present hour's account."""

    def deliver(self, counted: Mapping[Given, int]) -> None:
        """Add what was given to receivers to the same."""


class Accounts:
    """Any thread may note."""

    def __init__(self, notes: Notes, usage: Spends) -> None:
        self._notes = notes
        self._usage = usage
        self._lock = threading.Lock()
        self._done: dict[tuple[int, str, str], list[int]] = defaultdict(lambda: [0] * 6)
        self._given: Counter[Given] = Counter()

    def note(self, task: Task, done: Done) -> None:
        """Add what an instance has done."""
        queue, workflow = task.queue, task.workflow
        key = queue.tenant, queue.workflow, workflow.name_of(queue.step)
        with self._lock:
            if key in self._done or len(self._done) < MAX_COUNTED:
                own = self._done[key]
                for place, each in enumerate(done):
                    own[place] += each
            if workflow.sink == CALLBACK and queue.step == workflow.sink_step and done.atoms:
                given = Given(queue.tenant, queue.tenant, f"workflow:{queue.workflow}", SINK)
                if given in self._given or len(self._given) < MAX_COUNTED:
                    self._given[given] += done.atoms

    def settle(self) -> None:
        """Store what has been noted; where the store is away it is kept."""
        with self._lock:
            done = dict(self._done)
            self._done.clear()
            given = Counter(self._given)
            self._given.clear()
        if not done:
            return
        works = [Work(*key, *counts) for key, counts in sorted(done.items())]
        spent = {
            Spent(each.tenant, f"workflow:{each.workflow}", each.step): each.processor_us
            for each in works
            if each.processor_us
        }
        try:
            self._notes.note(works)
        except Unavailable as error:
            log.warning("work_not_noted", extra={"why": str(error)[:200]})
            self._again(done, given)
            return
        try:
            if spent:
                self._usage.spend(spent)
            if given:
                self._usage.deliver(given)
        except Unavailable as error:
            log.warning("spending_not_noted", extra={"why": str(error)[:200]})

    def _again(
        self, done: Mapping[tuple[int, str, str], list[int]], given: Mapping[Given, int]
    ) -> None:
        with self._lock:
            for key, counts in done.items():
                if key in self._done or len(self._done) < MAX_COUNTED:
                    own = self._done[key]
                    for place, each in enumerate(counts):
                        own[place] += each
            for receiver, count in given.items():
                if receiver in self._given or len(self._given) < MAX_COUNTED:
                    self._given[receiver] += count
