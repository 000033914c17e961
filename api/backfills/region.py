"""What a backfill computes: a composite and all that is derived from it, as one region."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from api.backfills.plan import MOST_STREAMS
from sandbox.trees import ROOT, Path
from servioticy.domain.graph import Graph
from servioticy.domain.known_streams import KnownStream, Region
from servioticy.domain.model import JAVASCRIPT, ServiceObject, StreamRef
from servioticy.domain.pauses import finished
from servioticy.domain.program_code import PROGRAMS
from servioticy.domain.regions import evaluator_of, whole
from servioticy.refusals import Refused


class Concerned:
    """The composites that a backfill makes anew, and the streams that they read."""

    def __init__(self, service_objects: Sequence[ServiceObject], filled: StreamRef) -> None:
        """Raises Refused where this cannot be filled."""
        self.graph = Graph(service_objects)
        self.graph.regions()  # which says of each composite whether it settles
        if not self.graph.knows(filled) or self.graph.stream(filled).composite is None:
            raise Refused(f"{filled} is not computed from other streams: there is nothing to fill")
        self.computed = frozenset({filled} | self.graph.reachable([filled]))
        self._check()
        self.read = frozenset(self._members(self.computed)) - self.computed
        if unknown := sorted(each for each in self.read if not self.graph.knows(each)):
            raise Refused(
                f"This reads {unknown[0]}, which is another tenant's or gone: "
                "what crosses a border is not filled"
            )
        count = len(self.read | self.computed)
        if count > MOST_STREAMS:
            raise Refused(
                f"This concerns {count} streams, and a backfill concerns {MOST_STREAMS} at most"
            )

    @property
    def streams(self) -> Sequence[StreamRef]:
        """All of them, sorted."""
        return sorted(self.read | self.computed)

    def region(self) -> Region:
        """Return all that it computes as one region."""
        members = [self.graph.stream(each) for each in sorted(self.computed)]
        return finished(whole(members, self._known, self.graph.wakes))

    def paths(self, root: StreamRef) -> dict[StreamRef, Path]:
        """Return the way of an update through its tree to what was made because of it.

        To that which is not computed anew: the first way, or the last one where it settles.
        """
        found: dict[StreamRef, Path] = {root: ROOT}
        waiting = [root]
        for origin in waiting:
            for number, wake in enumerate(self.graph.wakes(origin)):
                ref = wake.composite
                if ref in self.computed or ref == root:
                    continue
                known, path = ref in found, (*found[origin], number)
                if not known or self.graph.stream(ref).settles:
                    found[ref] = path
                if not known:
                    waiting.append(ref)
        return found

    def _known(self, ref: StreamRef) -> KnownStream | None:
        return self.graph.stream(ref) if self.graph.knows(ref) else None

    def _members(self, composites: Iterable[StreamRef]) -> Iterable[StreamRef]:
        for ref in composites:
            for each in self.graph.composite(ref).inputs:
                yield from each.members

    def _check(self) -> None:
        for ref in sorted(self.computed):
            stream = self.graph.stream(ref)
            composite = self.graph.composite(ref)
            if evaluator_of(stream) == PROGRAMS:
                raise Refused(
                    f"{ref} is computed by a program of its own, which a backfill does not ask"
                )
            if evaluator_of(stream) != JAVASCRIPT or composite.windowed:
                raise Refused(f"{ref} is computed over windows, or of silence: not yet filled")
            if composite.options.staleness == "input":
                raise Refused(f'{ref} has "staleness": "input": not yet filled')
