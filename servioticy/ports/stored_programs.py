"""Programs of tenants' own as they are kept: their files, and how they run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from servioticy.domain.model import StreamRef
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
    warmed: str | None = None
    """what came of it where it was wanted: "" it is ready, or what is wrong; None: as it was"""


class Wanted(NamedTuple):
    """A program that is to be begun before it takes over."""

    program: Program
    payer: str
    """the stream that it is to compute, `SERVICE_OBJECT/STREAM`: one of these, who pays"""


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

    def is_listened_to(self, partition: int) -> bool:
        """Tell whether somebody hears what is wanted of a partition. Raises Unavailable."""

    def spend(self, used: Mapping[tuple[int, StreamRef], int]) -> None:
        """Add microseconds of the processor to the accounts of tenants and their streams.

        Raises Unavailable.
        """

    def want(self, partition: int, wanted: Wanted) -> int:
        """Say that a program is to be begun before it takes over; nothing of it is kept.

        Return when that was, as the store counts. Raises Unavailable.
        """

    def wanted(self, partition: int, seconds: float) -> Sequence[Wanted]:
        """Return what was wanted since the last call, within so many seconds of silence.

        Listens from the first call on, in this thread. Raises Unavailable.
        """

    def warmed(self, partition: int, program: Program, since: int) -> str | None:
        """Return what is told to be wrong with it since then; "": nothing, None: nothing is told.

        Raises Unavailable.
        """
