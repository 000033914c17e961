"""Where atoms are gathered for an object of a store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from servioticy.domain.workflows.objects import Object
from servioticy.ports.atoms import Queue


class Gathered(Protocol):
    """Keeps atoms until their object is written. Every call may raise Unavailable."""

    def gather(
        self, queue: Queue, instance: int, ids: Sequence[int], step: int, now_ms: int
    ) -> int:
        """Keep atoms for the object of this hour; returns how many were still its own.

        In one transaction with their end. Who writes objects is at this step.
        """

    def sealed(self, queue: Queue, object_: Object) -> list[bytes]:
        """Let nothing more come into an object, and return all that it has, in order."""

    def written(self, queue: Queue, instance: int, id_: int, object_: Object) -> int:
        """Let go what is in the store now, with its ticket; 0: another one has that."""
