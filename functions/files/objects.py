"""The sink that is Parquet in a store: atoms are gathered, and an object is written of them.

Both are steps: to gather ends atoms as they are kept for an object, in one transaction; to write
is told by a *ticket*, which comes when the hour is over. Of a sealed object it is certain what it
has, so whoever is killed over it writes the same once more.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from functions.files.apart import ask_in_turn
from functions.files.opening import Opening, opened
from functions.files.store import FileRefused, StoreAway, StoreRefuses, TakesTooMuch
from functions.steps import Failure, Result, Task
from servioticy.apart import asking
from servioticy.apart.asking import OtherProcess
from servioticy.domain.workflows.model import SinkFiles
from servioticy.domain.workflows.objects import Object
from servioticy.domain.workflows.stores import Bucket, Folder, Store
from servioticy.ports.atoms import Atom
from servioticy.ports.gathered import Gathered
from servioticy.settings.loading import PREFIX
from servioticy.turns import Turns

SECONDS = 30.0
"""For the process to make a file of an object."""
WRITING_SECONDS = 20.0
"""After so long no further object of those that were taken is begun."""
MAX_FILE_BYTES = 256 * 1024 * 1024
AWAY_MS, REFUSED_MS = 5_000, 60_000
NO_STORE = "there is no such store for you any more, or nothing may be written there"
MAX_TENANTS = 1_000

log = logging.getLogger("functions")


class Writer:
    """Makes Parquet, in a process apart. Threads take turns, by tenant."""

    def __init__(self) -> None:
        self._turns = Turns(SECONDS)
        self._process = OtherProcess(
            asking.command("functions.files.table_process"),
            SECONDS,
            "the process that makes Parquet",
            {each: "" for each in os.environ if each.startswith(PREFIX)},
            MAX_FILE_BYTES,
        )

    def file(self, rows: Sequence[bytes], whose: int) -> tuple[bytes, int]:
        """Return these as a file, and the microseconds of the processor that it took.

        Raises StoreAway where the turn does not come, and TakesTooMuch.
        """
        told = ask_in_turn(self._turns, whose, self._process, b"\n".join(rows))
        used, _, content = told.partition(b"\n")
        return content, int(used)

    def close(self) -> None:
        """End the process."""
        self._process.stop()


class Objects:
    """The step for both."""

    def __init__(
        self,
        gathered: Gathered,
        stores: Mapping[str, Store],
        public_id: Callable[[int], str],
        writer: Writer | None = None,
        opening: Opening = opened,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`public_id` tells by what others know a tenant."""
        self._gathered = gathered
        self._stores = stores
        self._public_id = lru_cache(MAX_TENANTS)(public_id)
        self._writer = writer or Writer()
        self._open = opening
        self._clock = clock

    def work(self, task: Task, atoms: Sequence[Atom]) -> Result:
        """Gather these, or write the objects that they are tickets of. Raises Unavailable."""
        workflow, queue = task.workflow, task.queue
        if workflow.sink_files is None:
            raise ValueError("the sink is no store")
        if queue.step == workflow.sink_step:
            ids, now = [each.id for each in atoms], int(self._clock() * 1_000)
            step = workflow.sink_step + 1
            return Result(settled=self._gathered.gather(queue, task.instance, ids, step, now))
        until = time.monotonic() + WRITING_SECONDS
        failed: dict[int, Failure] = {}
        later: dict[int, int] = {}
        used = 0
        for atom in atoms:
            if time.monotonic() >= until:
                later[atom.id] = 0
                continue
            own = self._write(task, workflow.sink_files, atom)
            failed |= own.failed
            later |= own.later
            used += own.processor_us
        return Result(failed=failed, later=later, processor_us=used)

    def close(self) -> None:
        """End what was begun."""
        self._writer.close()

    def _write(self, task: Task, files: SinkFiles, atom: Atom) -> Result:
        """Write the object that this is the ticket of, and charge for it wherever it gets to."""
        queue, object_, used = task.queue, Object.read(atom.body), 0
        try:
            at = self._at(queue.tenant, files)
            rows = self._gathered.sealed(queue, object_)
            if rows:
                content, used = self._writer.file(rows, queue.tenant)
                name = object_.name(files.prefix, queue.workflow, queue.version)
                self._open(at).write(name, content)
            self._gathered.written(queue, task.instance, atom.id, object_)
        except TakesTooMuch as error:
            failure = Failure(f"the object cannot be made: {error}")
            return Result(failed={atom.id: failure}, processor_us=int(1e6 * error.seconds))
        except StoreAway as error:
            log.warning("store_away", extra={"tenant": queue.tenant, "why": str(error)[:200]})
            return Result(later={atom.id: AWAY_MS}, processor_us=used)
        except (FileRefused, StoreRefuses) as error:
            log.warning("store_refuses", extra={"tenant": queue.tenant, "why": str(error)[:200]})
            return Result(later={atom.id: REFUSED_MS}, processor_us=used)
        return Result(processor_us=used)

    def _at(self, tenant: int, files: SinkFiles) -> Folder | Bucket:
        """Return where the tenant may write. Raises StoreRefuses."""
        store = self._stores.get(files.store)
        at = None if store is None else store.of(self._public_id(tenant))
        if store is None or at is None or not store.is_writable:
            raise StoreRefuses(NO_STORE)
        return at
