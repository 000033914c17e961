"""On whose behalf something is stored, for the audit log: a request's, or the platform's own."""

from __future__ import annotations

from contextvars import ContextVar
from typing import NamedTuple


class Actor(NamedTuple):
    """A tenant, and which of its tokens."""

    tenant: int
    token: str
    """Its id, which is no secret."""


_present: ContextVar[Actor | None] = ContextVar("actor", default=None)


def current_actor() -> Actor | None:
    """Return who acts now; None: the platform by itself, or its operator."""
    return _present.get()


def set_actor(actor: Actor | None) -> None:
    """Let whatever this thread stores from now on be on behalf of the actor."""
    _present.set(actor)
