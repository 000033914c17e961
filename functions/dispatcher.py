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
from functools import partial
from typing import Protocol, TypeAlias

import orjson
from cachetools import LRUCache

from functions.accounts import Accounts
from functions.hands import Hands
from functions.instance import Done, Instance, Queues
from functions.limits import LEASE_MS, RENEW_SECONDS, Limits
from functions.planning import Situation, has_place, plan, waits
from functions.steps import Step, Task
from servioticy.domain.documents.errors import BadDocument
from servioticy.domain.workflows.model import Workflow
from servioticy.domain.workflows.reading import parse_workflow
from servioticy.errors import Unavailable
from servioticy.ports.atoms import NO_QUEUE, Atom, Begun, Queue, Waiting

PREPARED = 2
"""Instances that the first atom of a workflow with one procedure needs."""
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

    def begin(
        self,
        queue: Queue,
        may: Callable[[Mapping[Queue, int]], bool],
        now_ms: int,
        ends_ms: int,
        until_ms: int,
    ) -> Begun | None:
        """Return a new instance that has taken an atom, where it may begin."""

    def elsewhere(self, instances: Collection[int], now_ms: int) -> Mapping[Queue, int]:
        """Return by queue how many instances there are that are none of these."""

    def renew(self, instances: Collection[int], ends_ms: int) -> None:
        """Let these be instances until then."""

    def warm(self) -> None:
        """Have what this thread needs open."""

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
        self._hands = Hands(close)
        self._woken = threading.Event()
        self._lock = threading.Lock()
        self._running: set[Instance] = set()
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

    def prepare(self) -> None:
        """Open what the first atom would wait for, in this thread and for two instances.

        Where the store is away that is done when it is needed.
        """
        for _ in range(PREPARED):
            self._hands.prepare(lambda: self._patiently(self._store.warm))
        self._patiently(self._look_around)
        self._patiently(lambda: self._store.document(NO_QUEUE))
        self._patiently(lambda: self._store.begin(NO_QUEUE, lambda _: False, 0, 0, 0))

    def _look_around(self) -> None:
        self._situation(self._store.waiting(self._now()), (), {}, {})

    @property
    def running(self) -> int:
        """How many instances there are."""
        return len(self._running)

    def run(self) -> None:
        """Work until nothing has waited for a while, or `stop`."""
        idle_since = settled = forgotten = renewed = time.monotonic()
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
            if now - renewed >= RENEW_SECONDS:
                self._renew(LEASE_MS)
                renewed = now
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
                every = [each.number for each in self._running]
                running = [each for each in self._running if not each.ends]
            elsewhere = self._store.elsewhere(every, self._now())
            workflows = self._known(waiting, running, elsewhere)
            situation = self._situation(waiting, running, workflows, elsewhere)
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
                self._begin(queue, workflows)
        except Unavailable as error:
            log.warning("atoms_not_seen", extra={"why": str(error)[:200]})
            return AGAIN_SECONDS
        if not waiting:
            return None
        now = self._now()
        later = [(each.due_ms - now) / 1000 for each in waiting if not each.ready]
        soonest = max(0.0, min(later, default=AGAIN_SECONDS))
        if any(each.ready for each in waiting):
            return min(soonest, AGAIN_SECONDS)
        if not self._running and soonest > self._limits.idle_seconds:
            return None  # who waits for us begins another process then
        return soonest

    def _situation(
        self,
        waiting: Sequence[Waiting],
        running: Sequence[Instance],
        workflows: Workflows,
        elsewhere: Mapping[Queue, int],
    ) -> Situation:
        with self._lock:
            counts = Counter(each.task.queue for each in self._running)
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
            elsewhere,
        )

    def _known(
        self,
        waiting: Sequence[Waiting],
        running: Sequence[Instance],
        elsewhere: Collection[Queue],
    ) -> Workflows:
        """Return the workflows of which something may be done now.

        They are read where they are not remembered; atoms go whose version is gone. However many
        there are, what is found in one look is not forgotten in it.
        """
        found = {
            (each.task.queue.workflow, each.task.queue.version): each.task.workflow
            for each in running
        }
        ready = [each.queue for each in waiting if each.ready]
        for queue in (*ready, *elsewhere):
            key = queue.workflow, queue.version
            if key in found:
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

    def _begin(self, queue: Queue, workflows: Workflows) -> None:
        workflow = workflows[queue.workflow, queue.version]
        now, most = self._now(), self._limits.of_a_tenant
        is_free = partial(has_place, queue, workflows=workflows, most=most)
        until = now + self._limits.visibility_ms
        begun = self._store.begin(queue, is_free, now, now + LEASE_MS, until)
        if begun is None:
            return
        place = "" if waits(queue, workflow) else self._place(queue.tenant)
        task = Task(queue, workflow, place, begun.instance)
        step = self._step_of(workflow, queue.step)
        instance = Instance(
            begun.instance, task, step, self._store, self._limits, self._noted, self._clock
        )
        with self._lock:
            self._running.add(instance)
        self._begun += 1
        self._served[queue.tenant] = self._begun
        if len(self._served) > MAX_WORKFLOWS * 10:
            self._served.pop(min(self._served, key=lambda each: self._served[each]))
        self._hands.give(lambda: self._live(instance, begun.atoms))

    def _place(self, tenant: int) -> str:
        """Return a name that no other instance of the tenant has now, and one before has had: its
        sandbox process is warm."""
        with self._lock:
            taken = {each.task.place for each in self._running}
        number = 0
        while f"{tenant}.{number}" in taken:
            number += 1
        return f"{tenant}.{number}"

    def _end(self, turns: Mapping[int, int], running: Sequence[Instance]) -> None:
        for tenant, count in turns.items():
            own = [each for each in running if each.task.queue.tenant == tenant and not each.ends]
            for each in own[:count]:
                each.ends = True

    def _live(self, instance: Instance, atoms: Sequence[Atom]) -> None:
        try:
            instance.run(atoms)
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
                self._running.discard(instance)
            self._woken.set()

    def _noted(self, task: Task, done: Done) -> None:
        self._accounts.note(task, done)
        if done.made:
            self._woken.set()

    def _end_all(self) -> None:
        with self._lock:
            for each in self._running:
                each.ends = True
        self._renew(int(END_SECONDS * 1000))
        until = time.monotonic() + END_SECONDS
        while True:
            self._woken.clear()
            if not self.running:
                return
            if (left := until - time.monotonic()) <= 0:
                break
            self._woken.wait(left)
        log.warning("instances_left", extra={"count": self.running})

    def _renew(self, lease_ms: int) -> None:
        with self._lock:
            every = [each.number for each in self._running]
        if every:
            self._patiently(lambda: self._store.renew(every, self._now() + lease_ms))

    def _patiently(self, ask: Callable[[], object]) -> None:
        try:
            ask()
        except Unavailable as error:
            log.warning("atoms_not_seen", extra={"why": str(error)[:200]})

    def _now(self) -> int:
        return int(self._clock() * 1000)
