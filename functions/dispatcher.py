"""Begins instances where atoms wait, and ends with the last of them: nothing runs for nobody.

One thread decides; each instance has one of its own. It is woken by what comes (NOTIFY), by what
instances have made, and when the first atom that was put off may be taken. Else it asks nothing.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol, TypeAlias

import orjson
from cachetools import LRUCache

from functions.accounts import Accounts
from functions.instance import Done, Instance, Queues
from functions.limits import Limits
from functions.planning import Situation, plan, waits
from functions.steps import Step, Task
from servioticy.domain.documents.errors import BadDocument
from servioticy.domain.workflows.model import Workflow
from servioticy.domain.workflows.reading import parse_workflow
from servioticy.errors import Unavailable
from servioticy.ports.atoms import Queue, Waiting

LOOK_SECONDS = 0.02
"""Between two looks at least: what came together is begun together."""
AGAIN_SECONDS = 1.0
"""After which is looked again where something waits for a place, or the store is away."""
SETTLE_SECONDS = 2.0
FORGET_SECONDS = 3_600.0
END_SECONDS = 20.0
"""For all instances to finish what they have in hand; what one holds then is shown again later, as
if it had been killed."""
MAX_WORKFLOWS = 256

log = logging.getLogger("functions")

Workflows: TypeAlias = dict[tuple[str, int], Workflow]
"""By id and version."""


class Store(Queues, Protocol):
    """What the dispatcher asks of the store: `PostgresAtoms` keeps to it."""

    def waiting(self, now_ms: int) -> list[Waiting]:
        """Return all queues in which something is."""

    def gathered(self) -> Mapping[int, int]:
        """Return by tenant how many bytes of atoms wait for an object to be written."""

    def document(self, queue: Queue) -> str | None:
        """Return the document of its version."""

    def drop(self, queue: Queue) -> None:
        """Let the atoms go whose version is gone."""

    def forget(self, now_ms: int) -> None:
        """Let go what was left by who was killed."""

    def begin(self, queue: Queue, now_ms: int, ends_ms: int) -> int:
        """Return the number of a new instance."""

    def end(self, queue: Queue, instance: int) -> None:
        """Note that an instance is no more."""


class Standing(Protocol):
    """How tenants stand to their quotas."""

    def resting(self) -> Collection[int]:
        """Return those whose code may not run now."""

    def full(self, held: Mapping[int, int]) -> Collection[int]:
        """Return those whose atoms, so many bytes, are too many."""

    def brimming(self, atoms: Mapping[int, int]) -> Collection[int]:
        """Return those of whom as many atoms wait as may."""

    def silent(self) -> Collection[int]:
        """Return those to whom nothing may be delivered now."""


class Dispatcher:
    """Decides who works."""

    def __init__(
        self,
        store: Store,
        step_of: Callable[[Workflow, int], Step],
        limits: Limits,
        accounts: Accounts,
        standing: Standing,
        clock: Callable[[], float] = time.time,
        close: Callable[[], None] = lambda: None,
    ) -> None:
        """`close` ends what a thread has open."""
        self._store = store
        self._step_of = step_of
        self._limits = limits
        self._accounts = accounts
        self._standing = standing
        self._clock = clock
        self._close = close
        self._woken = threading.Event()
        self._lock = threading.Lock()
        self._running: dict[int, Instance] = {}
        self._threads: dict[int, threading.Thread] = {}
        self._served: dict[int, int] = {}
        self._begun = 0
        self._workflows: LRUCache[tuple[str, int], Workflow] = LRUCache(MAX_WORKFLOWS)
        self._stops = threading.Event()

    def wake(self) -> None:
        """Look soon: something has come."""
        self._woken.set()

    def stop(self) -> None:
        """Let `run` return when all have finished what they have in hand."""
        self._stops.set()
        self._woken.set()

    @property
    def running(self) -> int:
        """How many instances there are."""
        return len(self._running)

    def run(self) -> None:
        """Work until nothing has waited for a while, or `stop`."""
        idle_since = settled = forgotten = time.monotonic()
        has_forgotten = False
        while not self._stops.is_set():
            self._woken.clear()
            wait = self._look()
            now = looked = time.monotonic()
            is_idle = wait is None and not self._running
            # The first time when nobody waits for it: not before what we were begun for.
            if now - forgotten >= FORGET_SECONDS or (is_idle and not has_forgotten):
                self._patiently(lambda: self._store.forget(self._now()))
                forgotten, has_forgotten = now, True
            if not is_idle:
                idle_since = now
            elif now - idle_since >= self._limits.idle_seconds:
                break
            if now - settled >= SETTLE_SECONDS:
                self._accounts.settle()
                settled = now
            left = self._limits.idle_seconds if wait is None else wait
            self._woken.wait(max(LOOK_SECONDS, min(left, SETTLE_SECONDS)))
            if self._woken.is_set():
                self._stops.wait(max(0.0, looked + LOOK_SECONDS - time.monotonic()))
        self._end_all()
        self._accounts.settle()

    def _look(self) -> float | None:
        """Begin and end what is to; return when to look again: None where nothing waits."""
        try:
            waiting = self._store.waiting(self._now())
            with self._lock:
                running = [each for each in self._running.values() if not each.ends]
            workflows = self._known(waiting, running)
            situation = self._situation(waiting, running, workflows)
            found = plan(situation, self._limits)
            for each in running:
                if each.task.queue in found.closed:
                    each.ends = True
            for turns, is_waiting in ((found.end, False), (found.end_waiting, True)):
                own = [
                    each
                    for each in running
                    if waits(each.task.queue, each.task.workflow) == is_waiting
                ]
                self._end(turns, own)
            for queue in found.begin:
                self._begin(queue, workflows[queue.workflow, queue.version])
        except Unavailable as error:
            log.warning("atoms_not_seen", extra={"why": str(error)[:200]})
            return AGAIN_SECONDS
        if not waiting:
            return None
        now = self._now()
        later = [(each.due_ms - now) / 1000 for each in waiting if not each.ready]
        if any(each.ready for each in waiting):
            later.append(AGAIN_SECONDS)
        soonest = max(0.0, min(later))
        if not self._running and soonest > self._limits.idle_seconds:
            return None  # who waits for us begins another process then
        return soonest

    def _situation(
        self, waiting: Sequence[Waiting], running: Sequence[Instance], workflows: Workflows
    ) -> Situation:
        counts = Counter(each.task.queue for each in self._running.values())
        sizes = {each.task.queue: each.size for each in running}
        held = Counter(self._store.gathered())
        counts_of: Counter[int] = Counter()
        for each in waiting:
            held[each.queue.tenant] += each.size
            if (
                each.queue.step >= 0
            ):  # files that wait to be cut hold up nobody: they are what waits
                counts_of[each.queue.tenant] += each.atoms
        return Situation(
            waiting,
            counts,
            sizes,
            workflows,
            self._standing.resting(),
            self._standing.full(held),
            self._standing.brimming(counts_of),
            self._standing.silent(),
            self._served,
        )

    def _known(self, waiting: Sequence[Waiting], running: Sequence[Instance]) -> Workflows:
        """Return the workflows of which something may be done now.

        They are read where they are not remembered; atoms go whose version is gone. However many
        there are, what is found in one look is not forgotten in it.
        """
        found = {
            (each.task.queue.workflow, each.task.queue.version): each.task.workflow
            for each in running
        }
        for each in waiting:
            queue = each.queue
            key = queue.workflow, queue.version
            if not each.ready or key in found:
                continue
            if key in self._workflows:
                found[key] = self._workflows[key]
                continue
            text = self._store.document(queue)
            if text is None:
                self._store.drop(queue)
                continue
            try:
                found[key] = self._workflows[key] = parse_workflow(orjson.loads(text))
            except BadDocument as error:  # of another release; its atoms wait
                log.error("workflow_not_understood", extra={"workflow": key[0], "why": str(error)})
        return found

    def _begin(self, queue: Queue, workflow: Workflow) -> None:
        now = self._now()
        number = self._store.begin(queue, now, now + self._limits.lifetime_ms)
        place = "" if waits(queue, workflow) else self._place(queue.tenant)
        task = Task(queue, workflow, place, number)
        step = self._step_of(workflow, queue.step)
        instance = Instance(
            number, task, step, self._store, self._limits, self._noted, self._clock
        )
        thread = threading.Thread(target=self._live, args=(instance,), daemon=True)
        with self._lock:
            self._running[number] = instance
            self._threads[number] = thread
        self._begun += 1
        self._served[queue.tenant] = self._begun
        if len(self._served) > MAX_WORKFLOWS * 10:
            self._served.pop(min(self._served, key=lambda each: self._served[each]))
        thread.start()

    def _place(self, tenant: int) -> str:
        """Return a name that no other instance of the tenant has now, and one before has had: its
        sandbox process is warm."""
        taken = {each.task.place for each in self._running.values()}
        number = 0
        while f"{tenant}.{number}" in taken:
            number += 1
        return f"{tenant}.{number}"

    def _end(self, turns: Mapping[int, int], running: Sequence[Instance]) -> None:
        for tenant, count in turns.items():
            own = [each for each in running if each.task.queue.tenant == tenant and not each.ends]
            for each in own[:count]:
                each.ends = True

    def _live(self, instance: Instance) -> None:
        try:
            instance.run()
        except Unavailable as error:
            log.warning("instance_ends", extra={"why": str(error)[:200]})
            time.sleep(AGAIN_SECONDS)
        except Exception:
            log.exception("instance_failed")
            time.sleep(AGAIN_SECONDS)
        finally:
            try:
                self._store.end(instance.task.queue, instance.number)
            except Unavailable:
                log.warning("instance_not_ended")
            with self._lock:
                self._running.pop(instance.number, None)
                self._threads.pop(instance.number, None)
            self._close()
            self._woken.set()

    def _noted(self, task: Task, done: Done) -> None:
        self._accounts.note(task, done)
        if done.made:
            self._woken.set()

    def _end_all(self) -> None:
        with self._lock:
            threads = list(self._threads.values())
            for each in self._running.values():
                each.ends = True
        until = time.monotonic() + END_SECONDS
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))
        if any(each.is_alive() for each in threads):
            log.warning("instances_left", extra={"count": self.running})

    def _patiently(self, ask: Callable[[], None]) -> None:
        try:
            ask()
        except Unavailable as error:
            log.warning("atoms_not_seen", extra={"why": str(error)[:200]})

    def _now(self) -> int:
        return int(self._clock() * 1000)
