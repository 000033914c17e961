"""The queues of workflows: atoms that wait for a step, each shown to one taker for a while.

Nouns alone: API, delivery and the program `functions` ask one class (`storage/atoms.py`), of which
there is no twin, as its promises are those of SQL: row locks, and one transaction for what is done
with what is made of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from servioticy.domain.workflows.looking import Place
from servioticy.domain.workflows.model import Workflow


class Queue(NamedTuple):
    """Of a step, in the version of a workflow by which its atoms came in."""

    tenant: int
    workflow: str
    version: int
    step: int


class Waiting(NamedTuple):
    """What is in a queue."""

    queue: Queue
    atoms: int
    """All of them, those too that somebody holds."""
    size: int
    """Their bytes."""
    ready: int
    """Those that may be taken now; of many only so many are counted."""
    due_ms: int
    """When the next one may be taken, in milliseconds since 1970."""


class Atom(NamedTuple):
    """An atom that was taken."""

    id: int
    entered_ms: int
    attempts: int
    """With this one."""
    body: bytes
    """JSON"""


NO_QUEUE = Queue._make((0, "", 0, 0))
"""Of no tenant: asked of to have ready what answers."""


class Begun(NamedTuple):
    """An instance, with what it has taken already: one atom at least."""

    instance: int
    atoms: Sequence[Atom]


class Product(NamedTuple):
    """An atom that was made of another."""

    parent: int
    """Its id."""
    step: int
    """Where it goes to."""
    delay_ms: int
    """How long it waits there at least."""
    body: bytes


class Seen(NamedTuple):
    """A file that a store has."""

    key: str
    etag: str
    """Which content it has."""
    size: int


class Look(NamedTuple):
    """What a store has of one stretch of its list, in the order of bytes."""

    files: Sequence[Seen] = ()
    place: Place = Place()
    """Where the list goes on."""
    upto: str | None = ""
    """The stretch ends with this name, which is its last one's; None: it goes to the end."""
    prefix: str = ""
    trouble: str = ""
    """Why nothing could be seen; then nothing has changed either."""
    is_sure: bool = True
    """Whether a list that is empty tells that there is nothing, and not that a mount is away."""


class Work(NamedTuple):
    """What a step has done since it was told last."""

    tenant: int
    workflow: str
    step: str
    atoms: int
    made: int
    failed: int
    dead: int
    processor_us: int
    mebibyte_ms: int = 0


Works = Sequence[Work]


class Atoms(Protocol):
    """Where atoms come in. Every call may raise Unavailable."""

    def held(self, tenant: int) -> tuple[int, int]:
        """Return how many atoms, and bytes of them, wait for a tenant in all its workflows."""

    def in_force(self, tenant: int, workflow: str) -> tuple[int, str] | None:
        """Return version and document of a workflow; None: there is none."""

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

    def refuse(
        self, tenant: int, workflow: str, version: int, atom: bytes, reason: str, now_ms: int
    ) -> None:
        """Keep as a dead letter what could not come in."""
