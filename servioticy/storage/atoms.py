"""The queues of workflows in Postgres: `FOR UPDATE SKIP LOCKED`, with a visibility timeout.

Every method may raise Unavailable. All but what is between tenants names the tenant.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

import orjson

from servioticy.domain.workflows.looking import Place
from servioticy.domain.workflows.model import CUT, LOOK, Workflow
from servioticy.ports.atoms import (
    NO_QUEUE,
    Atom,
    Begun,
    Look,
    Product,
    Queue,
    Seen,
    Waiting,
    Works,
)
from servioticy.storage.arrays import columns, numbers, texts
from servioticy.storage.database import Database, Prepared, Row
from servioticy.storage.gathered import PostgresGathered
from servioticy.storage.queries import queries

MAX_DEAD = 1_000
"""Dead letters of one workflow."""
MAX_COLLECTED = 1_000
"""Atoms that a sink of one workflow keeps."""
MAX_FILES = 100_000
"""Files of one workflow that are kept in mind; further ones come when others have gone."""
MOST_FILES = 300_000
"""The same of a tenant, if nothing else is said (the quota `files-known`)."""
NOTHING_LEFT = (
    "the folder is empty, and had files; if they come back as they were they are not new"
)
MAX_REASON = 500
COUNTED = 200
"""Of what may be taken in a queue no more is counted: it is enough for all instances of a time."""
CHANNEL = "atoms"
"""Where it is notified that some have come."""
_PLACES = 1_701_023  # class of our advisory locks: any number that nothing else uses
_PAUSES = 0.0, 0.005, 0.01, 0.02, 0.04
"""Seconds before each try to hold a tenant's places: that of a machine that vanished over them may
be held for long, and whoever waits for it would hold up all others here."""


class PostgresAtoms:
    """Puts atoms, and lets them be taken."""

    def __init__(self, database: Database, most_files: int = MOST_FILES) -> None:
        """`most_files` are kept in mind of a tenant of which nothing else is said."""
        self._database = database
        self._most_files = most_files
        self._sql = queries("atoms")

    # Who brings them

    def held(self, tenant: int) -> tuple[int, int]:
        """Return how many atoms, and bytes of them, wait for a tenant in all its workflows."""
        ((atoms, size),) = self._rows("held", {"tenant": tenant})
        return int(atoms), int(size)

    def in_force(self, tenant: int, workflow: str) -> tuple[int, str] | None:
        """Return version and document of a workflow; None: there is none."""
        rows = self._rows("in_force", {"tenant": tenant, "workflow": workflow})
        return (int(rows[0][0]), str(rows[0][1])) if rows else None

    def put(
        self,
        tenant: int,
        workflow: str,
        version: int,
        read: Workflow,
        atoms: Sequence[tuple[bytes, int]],
        now_ms: int,
    ) -> bool:
        """Let atoms come in, each with the time of its entry; False: another version is in force.

        `read` is what that version says.
        """
        values = {
            "tenant": tenant,
            "workflow": workflow,
            "version": version,
            "bodies": texts([body for body, _ in atoms]),
            "entered": numbers(entered for _, entered in atoms),
            "steps": numbers(read.first_steps),
            "delays": numbers(read.delay_of(each) for each in read.first_steps),
            "now": now_ms,
        }
        ((count, _),) = self._rows("put", values)
        return int(count) > 0

    def refuse(
        self, tenant: int, workflow: str, version: int, atom: bytes, reason: str, now_ms: int
    ) -> None:
        """Keep as a dead letter what could not come in."""
        whose = {"tenant": tenant, "workflow": workflow}
        values = {**whose, "version": version, "reason": reason, "now": now_ms}
        with self._database.transaction():
            self._rows("refuse", {**values, "body": atom.decode()})
            self._rows("forget_dead", {**whose, "most": MAX_DEAD})

    # Who takes them

    def heard(self, seconds: float) -> None:
        """Return when some have come, or after so long; at once where it was not listened yet."""
        self._database.heard(CHANNEL, seconds)

    def due(self) -> int | None:
        """Return when the first of all may be taken, in milliseconds since 1970."""
        ((due,),) = self._rows("due", {})
        return None if due is None else int(due)

    def waiting(self, now_ms: int) -> list[Waiting]:
        """Return all queues in which something is."""
        rows = self._rows("waiting", {"now": now_ms, "most": COUNTED})
        return [
            Waiting(Queue(*row[:4]), *map(int, row[4:])) for row in rows if row[-1] is not None
        ]

    def gathered(self) -> dict[int, int]:
        """Return by tenant how many bytes of atoms wait for an object to be written."""
        return PostgresGathered(self._database).held()

    def document(self, queue: Queue) -> str | None:
        """Return the document of its version; None: it is gone."""
        rows = self._rows("document", _of(queue))
        return str(rows[0][0]) if rows else None

    def drop(self, queue: Queue) -> None:
        """Let the atoms go whose version is gone."""
        self._rows("drop", _of(queue))

    def forget(self, now_ms: int) -> None:
        """Let go instances that were killed, counts of what is gone, and what became a dead letter
        as a whole object, with that."""
        self._rows("end_old", {"now": now_ms})
        self._rows("forget_counts", {})
        PostgresGathered(self._database).forget(now_ms)

    def begin(
        self,
        queue: Queue,
        may: Callable[[Mapping[Queue, int]], bool],
        now_ms: int,
        ends_ms: int,
        until_ms: int,
    ) -> Begun | None:
        """Return a new instance that has taken an atom, which nobody else sees until that time.

        `may` is told how many instances the tenant's queues have, on all machines, and says
        whether there is a place for one more: no other is begun for the tenant meanwhile.
        `ends_ms` is when it is none any more, unless it is renewed. None: there is no place, or
        nothing to take, or others begin some for the tenant.
        """
        whose = {"tenant": queue.tenant}
        with self._database.transaction():
            if not any(map(partial(self._holds_places, whose), _PAUSES)):
                return None
            found = self._rows("places", {**whose, "now": now_ms})
            if not may({Queue._make((queue.tenant, *row[:3])): int(row[3]) for row in found}):
                return None
            ((number,),) = self._rows("begin", {**_of(queue), "now": now_ms, "ends": ends_ms})
            atoms = self.take(queue, int(number), 1, now_ms, until_ms)
            if not atoms:
                self.end(queue, int(number))
        return Begun(int(number), atoms) if atoms else None

    def _holds_places(self, whose: Mapping[str, object], pause: float) -> bool:
        time.sleep(pause)
        ((is_held,),) = self._rows("hold_places", {**whose, "class": _PLACES})
        return bool(is_held)

    def elsewhere(self, instances: Collection[int], now_ms: int) -> dict[Queue, int]:
        """Return by queue how many instances there are that are none of these."""
        values = {"instances": numbers(instances), "now": now_ms}
        return {Queue._make(row[:4]): int(row[4]) for row in self._rows("elsewhere", values)}

    def renew(self, instances: Collection[int], ends_ms: int) -> None:
        """Let these be instances until then."""
        self._rows("renew", {"instances": numbers(instances), "ends": ends_ms})

    def warm(self) -> None:
        """Have this thread's connection open, and what instances ask known to it."""
        self.take(NO_QUEUE, 0, 1, 0, 0)
        self.finish(NO_QUEUE, 0, [], [], 0)
        self.collect(NO_QUEUE, 0, [], 0)

    def end(self, queue: Queue, instance: int) -> None:
        """Note that an instance is no more."""
        self._rows("end", {"tenant": queue.tenant, "instance": instance})

    def take(
        self, queue: Queue, instance: int, most: int, now_ms: int, until_ms: int
    ) -> list[Atom]:
        """Return some atoms, the oldest first, which nobody else sees until that time."""
        values = {**_of(queue), "instance": instance, "most": most}
        values |= {"now": now_ms, "until": until_ms}
        sql = Prepared("take_atoms", self._sql["take"], values)
        found = [
            Atom(id_, entered, attempts, body.encode())
            for id_, entered, attempts, body in self._database.rows(sql)
        ]
        return sorted(found)

    def finish(
        self,
        queue: Queue,
        instance: int,
        ids: Sequence[int],
        products: Sequence[Product],
        now_ms: int,
    ) -> int:
        """Atoms are done, and what was made of them waits; returns how many were still its own.

        Both in one transaction: of an atom that somebody else has taken meanwhile nothing is.
        """
        parents, steps, delays, bodies = columns(products, 4)
        values = {
            **_of(queue),
            "instance": instance,
            "ids": numbers(ids),
            "parents": numbers(parents),
            "steps": numbers(steps),
            "delays": numbers(delays),
            "bodies": texts(bodies),
            "now": now_ms,
        }
        return self._count("finish", values)

    def collect(self, queue: Queue, instance: int, ids: Sequence[int], now_ms: int) -> int:
        """Keep atoms as results; returns how many were still its own."""
        values = {**_of(queue), "instance": instance, "ids": numbers(ids), "now": now_ms}
        with self._database.transaction():
            count = self._count("collect", values)
            self._rows("forget_collected", {**_of(queue), "most": MAX_COLLECTED})
        return count

    def give_back(
        self, queue: Queue, instance: int, at_ms: Mapping[int, int], *, counts: bool
    ) -> None:
        """Let atoms be taken again, each from a time on; `counts`: it was an attempt."""
        values = {
            "tenant": queue.tenant,
            "instance": instance,
            "ids": numbers(at_ms),
            "times": numbers(at_ms.values()),
            "uncounted": 0 if counts else 1,
        }
        self._rows("give_back", values)

    def bury(self, queue: Queue, instance: int, reasons: Mapping[int, str], now_ms: int) -> None:
        """Make atoms dead letters, each with its reason; the oldest go where there are many."""
        told = [each[:MAX_REASON].replace("\0", "\ufffd") for each in reasons.values()]
        values = {
            "tenant": queue.tenant,
            "instance": instance,
            "ids": numbers(reasons),
            "reasons": texts([each.encode("utf-8", "replace") for each in told]),
            "now": now_ms,
        }
        with self._database.transaction():
            self._rows("bury", values)
            self._rows("forget_dead", {**_of(queue), "most": MAX_DEAD})

    def look(
        self, queue: Queue, instance: int, id_: int, look: Look, every_ms: int, now_ms: int
    ) -> int:
        """Let new files wait to be cut, and the store be looked at again; returns how many wait.

        In one transaction with the end of the atom that this look was. Where there is more of the
        list it goes on, at once or with the next look (`looking.py`); of another version than that
        in force no further look is made.
        """
        whose = {"tenant": queue.tenant, "workflow": queue.workflow}
        with self._database.transaction():
            self._rows("hold_looks", whose)
            if not self._rows("hold", {**whose, "id": id_, "instance": instance}):
                return 0
            new: Sequence[Seen] = ()
            place, waits, is_full = look.place.again(), True, False
            known = int(self._rows("known", whose)[0][0])
            if self._is_doubtful(whose, look):
                place = Place()  # of what is behind a name the whole list tells
                if not look.place.after:
                    look = look._replace(trouble=NOTHING_LEFT)
            elif not look.trouble:
                new, known, is_full = self._seen(whose, look, known)
                names = [each.key for each in look.files]
                place, waits = look.place.following(names, look.upto, bool(new))
            products = [Product(id_, CUT, 0, _ticket(each)) for each in new]
            in_force = self.in_force(queue.tenant, queue.workflow)
            if in_force is not None and in_force[0] == queue.version:
                products.append(Product(id_, LOOK, every_ms if waits else 0, place.body()))
            trouble = look.trouble[:MAX_REASON].replace("\0", "\ufffd")
            told = {"trouble": trouble, "is_full": is_full, "known": known, "now": now_ms}
            self._rows("note_look", {**whose, **told})
            self.finish(queue, instance, [id_], products, now_ms)
        return len(new)

    def _is_doubtful(self, whose: Mapping[str, object], look: Look) -> bool:
        """Whether all is gone that was known there, of what may be away as well."""
        if look.is_sure or look.files or look.upto is not None or look.trouble:
            return False
        return bool(self._rows("knows_behind", {**whose, "after": look.place.after}))

    def _seen(
        self, whose: Mapping[str, object], look: Look, known: int
    ) -> tuple[list[Seen], int, bool]:
        """Keep in mind which files there are.

        Returns the new ones, how many of the workflow are known now of as many as were `known`,
        and whether there are too many.
        """
        keys = [each.key for each in look.files]
        stretch = {"after": look.place.after, "upto": look.upto, "keys": keys}
        known -= self._count("forget_files", {**whose, **stretch})
        had = dict(self._rows("known_files", {**whose, "keys": keys}))
        ((others, most),) = self._rows("room", {**whose, "most": self._most_files})
        room = max(0, min(MAX_FILES, int(most) - int(others)) - known)
        unknown = set([each for each in keys if each not in had][:room])
        wanted = [
            each
            for each in look.files
            if (each.key in unknown or had.get(each.key, each.etag) != each.etag)
        ]
        values = {"keys": [each.key for each in wanted], "etags": [each.etag for each in wanted]}
        new = {key for (key,) in self._rows("see_files", {**whose, **values})} if wanted else set()
        is_full = len(had) + len(unknown) < len(keys)
        return [each for each in wanted if each.key in new], known + len(new - had.keys()), is_full

    def public_id(self, tenant: int) -> str:
        """Return by what others know a tenant; empty: it is gone."""
        rows = self._rows("public_id", {"tenant": tenant})
        return str(rows[0][0]) if rows else ""

    def note(self, works: Works) -> None:
        """Add to the account of the present hour."""
        names = ("tenants", "workflows", "steps", "atoms", "made", "failed", "dead")
        told = columns(works, 9)
        amounts = ("processor_us", "mebibyte_ms")
        values = dict(zip((*names, *amounts), map(list, told), strict=True))
        self._rows("note", values)

    def _count(self, name: str, values: Mapping[str, object]) -> int:
        ((count,),) = self._rows(name, values)
        return int(count)

    def _rows(self, name: str, values: Mapping[str, object]) -> list[Row]:
        return self._database.rows(self._sql[name], values)


def _of(queue: Queue) -> dict[str, object]:
    return queue._asdict()


def _ticket(file: Seen) -> bytes:
    """Return the atom that says: cut this file."""
    return orjson.dumps({"key": file.key, "etag": file.etag, "size": file.size})
