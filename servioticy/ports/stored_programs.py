"""Programs of tenants' own as they are kept: their files, and how they run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from servioticy.ports.programs import Program


class StoredProgram(NamedTuple):
    """What is kept of a version of a program."""

    manifest: str
    """its operator.json"""
    digest: str
    """of its files"""


class Run(NamedTuple):
    """How a program is on a node."""

    program: Program
    state: str
    restarts: int
    problem: str
    printed: str


class StoredPrograms(Protocol):
    """Keeps programs, for all machines."""

    def found(self, programs: Sequence[Program]) -> Mapping[Program, StoredProgram]:
        """Return those of these that their tenants may use. Raises Unavailable."""

    def owners(self, names: Sequence[str]) -> Mapping[str, int]:
        """Return who has these names now, of tenants that are there. Raises Unavailable."""

    def archive(self, program: Program, digest: str) -> bytes | None:
        """Return its archive; None if there is none any more. Raises Unavailable."""

    def tell(self, node: str, runs: Sequence[Run]) -> None:
        """Note how programs are on a node; those told of before and no more are forgotten in a
        minute. Raises Unavailable."""
