"""Programs as the store has them: which a tenant may use, their files, and how they run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from operators import manifest
from operators.errors import NotAnOperator
from operators.line import Running
from servioticy.domain.model import StreamRef
from servioticy.ports.programs import Manifest, Program
from servioticy.ports.stored_programs import Run, StoredPrograms, Wanted

PRINTED = 4096
"""Characters of what a program has printed that are kept in the store."""

_NOT_TEXT = re.compile(r"[^\n\t -~\u00a0-\ud7ff\ue000-\uffff]")


class Registry:
    """Programs in the store; KnownPrograms, and what the shelf is filled from."""

    def __init__(self, stored: StoredPrograms) -> None:
        self._stored = stored

    def manifests(self, programs: Sequence[Program]) -> Mapping[Program, Manifest]:
        """Return the manifest of each that its tenant may use now. Raises Unavailable."""
        found = {}
        for program, kept in self._stored.found(programs).items():
            try:
                found[program] = manifest.read(kept.manifest.encode()).manifest
            except NotAnOperator:
                continue  # of a release that took more
        return found

    def digest(self, program: Program) -> str | None:
        """Return the digest of its files; None: its tenant may not use it. Raises Unavailable."""
        found = self._stored.found([program]).get(program)
        return None if found is None else found.digest

    def archive(self, program: Program) -> tuple[str, bytes] | None:
        """Return the same with its archive. Raises Unavailable."""
        digest = self.digest(program)
        archive = None if digest is None else self._stored.archive(program, digest)
        return None if digest is None or archive is None else (digest, archive)

    def tell(self, node: str, running: Sequence[Running]) -> None:
        """Note how programs are on a node. Raises Unavailable."""
        self._stored.tell(node, [_run(each) for each in running])

    def spend(self, seconds: Mapping[tuple[int, str], float]) -> None:
        """Charge what programs have used, by tenant and stream. Raises Unavailable."""
        microseconds = {key: round(1e6 * used) for key, used in seconds.items()}
        used = {(tenant, _stream(name)): us for (tenant, name), us in microseconds.items() if us}
        if used:
            self._stored.spend(used)

    def wanted(self, partition: int, seconds: float) -> Sequence[Wanted]:
        """Return what was wanted since the last call, as StoredPrograms has it."""
        return self._stored.wanted(partition, seconds)

    def tell_warmed(self, node: str, running: Running, reason: str) -> None:
        """Note how a program is, and what came of its being wanted. Raises Unavailable."""
        self._stored.tell(node, [_run(running)._replace(warmed=_plain(reason))])


def _stream(name: str) -> StreamRef:
    service_object, _, stream = name.partition("/")
    return StreamRef(service_object, stream)


def _run(running: Running) -> Run:
    return Run(
        running.program,
        running.state,
        running.restarts,
        _plain(running.problem),
        _plain(running.printed.decode(errors="replace"))[-PRINTED:],
    )


def _plain(text: str) -> str:
    return _NOT_TEXT.sub("?", text)
