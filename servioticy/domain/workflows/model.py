"""The nouns of workflows (SPSC, section III): atoms, procedures, links, one source, one sink."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from servioticy.domain.model import StreamRef
from servioticy.domain.program_code import ProgramCode

SOURCE, SINK = "source", "sink"
"""What links call the beginning and the end; no procedure is called so."""

HTTP, STREAM, FILES = "http", "stream", "files"
"""Kinds of sources; a stream may be a sink, too."""
CALLBACK, COLLECT, NONE, TABLE = "callback", "collect", "none", "table"
"""Kinds of sinks, beside a stream and PARQUET."""

LOOK, CUT = -2, -1
"""Steps before the first procedure, where the source is files: an atom of LOOK is a look at the
store, one of CUT is a file that is to be cut into atoms."""

CSV, NDJSON, PARQUET = "csv", "ndjson", "parquet"

MAX_ATOM_BYTES = 32_768
"""Of an atom as JSON. What a procedure makes of one has at most twice as many characters."""
MAX_MADE = 100
"""Atoms that a procedure makes of one."""

CODE_MEMORY, CODE_MEMORIES = 64, (32, 64, 128, 256)
"""MiB that code of a procedure may have: usually, and all that can be chosen."""

SOURCE_ATTEMPTS = 10
"""At a file that cannot be read; what is wrong with the file itself is told at once."""
SINK_ATTEMPTS = 20
"""At the sink of a workflow; what it refuses because of the atom itself is dead at once."""


@dataclass(frozen=True, slots=True)
class Procedure:
    """Stateless: it makes none, one or several atoms of one."""

    name: str
    code: str
    """JavaScript; empty where a program is run."""
    attempts: int
    """So often an atom is tried before it is a dead letter."""
    delay_ms: int
    """So long an atom waits before it is to be taken."""
    reserved: int
    """Of its tenant's instances so many are for nobody else."""
    memory_mib: int = CODE_MEMORY
    """What its code may have, one of CODE_MEMORIES; of a program its manifest tells."""
    program: ProgramCode | None = None
    """The tenant's own program that is run in the place of code; None: code is."""


@dataclass(frozen=True, slots=True)
class Files:
    """Files of a store, each of which is cut into atoms once."""

    store: str
    """What the operator calls a folder, or a part of a bucket."""
    prefix: str
    """What the names of the files begin with, in the store."""
    format: str
    """CSV, NDJSON or PARQUET"""
    separator: str
    """Between cells of CSV."""
    every_ms: int
    """Between two looks at the store."""
    reserved: int
    """Of its tenant's instances so many are for these files."""


@dataclass(frozen=True, slots=True)
class SinkFiles:
    """Objects of a store, of the atoms of an hour each."""

    store: str
    """As Files has it; its operator lets it be written to."""
    prefix: str


@dataclass(frozen=True, slots=True)
class SinkTable:
    """A table whose rows atoms become."""

    database: str
    """What the operator calls it."""
    table: str
    key: Sequence[str]
    """Columns: an atom takes the place of the row that has the same there. None: each is one."""


@dataclass(frozen=True, slots=True)
class Workflow:
    """A checked document. A *step* is a procedure by its number, in an order in which every link
    leads on; the step behind the last procedure is the sink."""

    procedures: Sequence[Procedure]
    """in the order of steps"""
    links: Mapping[str, Sequence[int]]
    """Of the source, and of each procedure, the steps that its atoms go to."""
    source: StreamRef | None
    """The stream whose updates are atoms; None: they come otherwise."""
    sink: str
    """STREAM, CALLBACK, COLLECT, NONE, PARQUET or TABLE"""
    sink_stream: StreamRef | None = None
    files: Files | None = None
    """The files that are cut into atoms; None: they come otherwise."""
    sink_url: str = ""
    """Where atoms are sent to; empty: they go elsewhere."""
    sink_files: SinkFiles | None = None
    """The objects that atoms become; None: they go elsewhere."""
    sink_table: SinkTable | None = None
    """The table whose rows atoms become; None: they go elsewhere."""

    @property
    def sink_step(self) -> int:
        """The number of the step that is the sink."""
        return len(self.procedures)

    @property
    def first_steps(self) -> Sequence[int]:
        """Where atoms of the source go to."""
        return self.links[SOURCE]

    def name_of(self, step: int) -> str:
        """Return what people call a step."""
        if step < 0:
            return SOURCE
        return self.procedures[step].name if step < len(self.procedures) else SINK

    def delay_of(self, step: int) -> int:
        """Return how many milliseconds an atom waits before this step may take it."""
        return self.procedures[step].delay_ms if 0 <= step < len(self.procedures) else 0

    def attempts_of(self, step: int) -> int:
        """Return how often an atom is tried there before it is a dead letter."""
        if step < 0:
            return SOURCE_ATTEMPTS
        return self.procedures[step].attempts if step < len(self.procedures) else SINK_ATTEMPTS

    def links_of(self, step: int) -> Sequence[int]:
        """Return the steps that atoms made there go to."""
        if step == LOOK:
            return (CUT,)
        return () if step >= self.sink_step else self.links[self.name_of(step)]

    def reserved_of(self) -> Mapping[int, int]:
        """Return the steps that have instances for themselves, and how many."""
        found = {n: each.reserved for n, each in enumerate(self.procedures) if each.reserved}
        if self.files is not None and self.files.reserved:
            found[CUT] = self.files.reserved
        return found
