"""Who is asked, and what is known of programs: asked for again and again, as they come and go."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, field

from servioticy.errors import Unavailable
from servioticy.ports.programs import KnownPrograms, Manifest, Program, Programs

log = logging.getLogger("servioticy.pipeline")

UNKNOWN_SECONDS = 2.0
"""Between two looks where it could not be known who is there; so old may be that one is not."""

MANIFEST_SECONDS = 10.0
"""So old may be what is known of a program."""

MAX_REMEMBERED = 10_000
"""Programs, and streams, of which something is remembered."""

MAX_SECONDS = 3600.0
"""Of the processor, that one answer may have taken."""


@dataclass(slots=True)
class AskedPrograms:
    """Who is asked; without `programs` nobody is, and what is to be asked waits."""

    programs: Programs | None = None
    known: KnownPrograms | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    """What composites' programs have taken of the processor, by the names of their code: of the
    newest of these. For other threads to copy."""

    def note(self, name: str, seconds: float) -> None:
        """Note that so much was taken; what cannot be is not."""
        if not 0 < seconds < math.inf:
            return
        self.seconds[name] = self.seconds.get(name, 0.0) + min(seconds, MAX_SECONDS)
        if len(self.seconds) > MAX_REMEMBERED:
            self.seconds.pop(next(iter(self.seconds)))


class Manifests:
    """What programs say of themselves, as it was lately."""

    def __init__(self, asked: AskedPrograms, clock: Callable[[], float]) -> None:
        self._known, self._clock = asked.known, clock
        self._found: dict[Program, tuple[float, Manifest | None]] = {}

    def of(self, programs: set[Program]) -> dict[Program, Manifest | None]:
        """What they say of themselves; None of those that may not be used, and nothing of those of
        which that could not be known."""
        now = self._clock()
        self._found = {
            program: found
            for program, found in self._found.items()
            if now - found[0] < (UNKNOWN_SECONDS if found[1] is None else MANIFEST_SECONDS)
        }
        unknown = list(programs - self._found.keys())
        if unknown and self._known is not None:
            try:
                found = self._known.manifests(unknown)
            except Unavailable as error:
                log.warning("programs_unknown", extra={"why": str(error)})
                unknown = []
            if len(self._found) > MAX_REMEMBERED:
                self._found.clear()
            self._found.update({each: (now, found.get(each)) for each in unknown})
        return {each: self._found[each][1] for each in programs & self._found.keys()}
