"""The programs of the composite streams that a partition computes."""

from __future__ import annotations

from collections.abc import Iterable

from sandbox.program import Program
from servioticy.domain.model import Composite, StreamRef
from servioticy.domain.scripts import program


class Programs:
    """Keeps the program of each composite stream, which is made once a version."""

    def __init__(self) -> None:
        self._programs: dict[str, dict[tuple[str, int], Program]] = {}

    def of(self, ref: StreamRef, version: int, composite: Composite) -> Program:
        """The program of this version of a stream."""
        service_object, stream = ref
        theirs = self._programs.get(service_object)
        if theirs is None:
            theirs = self._programs[service_object] = {}
        key = (stream, version)
        if key not in theirs:
            theirs[key] = program(ref, version, composite)
        return theirs[key]

    def drop(self, service_objects: Iterable[str]) -> None:
        """Forget the programs of these Service Objects; they are made anew when needed."""
        for each in service_objects:
            self._programs.pop(each, None)
