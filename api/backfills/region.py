"""What a backfill computes: a composite and all that is derived from it."""

from __future__ import annotations

from collections.abc import Sequence

from api.backfills.plan import MOST_STREAMS
from api.backfills.span import reaches_back
from api.replaying.composites import read_by, region_of, windows_of, without_followers
from sandbox.trees import ROOT, Path
from servioticy.domain.borders import BORDER
from servioticy.domain.graph import Graph
from servioticy.domain.known_streams import Region
from servioticy.domain.model import ServiceObject, StreamRef, WindowRef
from servioticy.refusals import Refused


class Concerned:
    """The composites that a backfill makes anew, and the streams that they read."""

    def __init__(self, service_objects: Sequence[ServiceObject], filled: StreamRef) -> None:
        """Raises Refused where this cannot be filled."""
        self.graph = graph = Graph(service_objects)
        graph.regions()  # which says of each composite whether it settles
        if not graph.knows(filled) or graph.stream(filled).composite is None:
            raise Refused(f"{filled} is not computed from other streams: there is nothing to fill")
        own = [each for each in (WindowRef(*filled), filled) if graph.knows(each)]
        every = without_followers(frozenset(own) | graph.reachable(own), graph)
        self.windows = windows_of(every, graph)
        """Those among them, each as a stream of its own, and what is told of silence."""
        self._behind = frozenset(self.windows) | graph.reachable(self.windows)
        self._before = every - self._behind
        self.before_windows()
        self.behind_windows()
        self.computed = frozenset([each for each in every if not isinstance(each, WindowRef)])
        self.read = read_by(every, graph) - every
        self.outside = sorted(each for each in self.read if not graph.knows(each))
        """Those that are other tenants', or gone."""
        count = len(self.read | self.computed)
        if count > MOST_STREAMS:
            raise Refused(
                f"This concerns {count} streams, and a backfill concerns {MOST_STREAMS} at most"
            )
        self.reach_back = [ref for ref, code in self.windows.items() if reaches_back(code)]
        """The windows that are told of what is before the span."""

    def reader_of(self, read: StreamRef) -> StreamRef:
        """Return the first of its composites that reads a stream."""
        return min(each for each in self.computed if read in self._reads(each))

    def _reads(self, composite: StreamRef) -> frozenset[StreamRef]:
        window = WindowRef(*composite)
        own = [each for each in (composite, window) if self.graph.knows(each)]
        return read_by(own, self.graph)

    @property
    def streams(self) -> Sequence[StreamRef]:
        """All that have updates, sorted."""
        return sorted(self.read | self.computed)

    def before_windows(self) -> Region | None:
        """Return what reads no windows, as one region; None: there is none. Raises Refused."""
        return region_of(self._before, self.graph)

    def behind_windows(self) -> Region | None:
        """Return windows and what is derived from them, the same."""
        return region_of(self._behind, self.graph)

    def paths(self, root: StreamRef) -> dict[StreamRef, Path]:
        """Return the way of an update through its tree to what was made because of it.

        To that which is not computed anew: the first way, or the last one where it settles.
        """
        found: dict[StreamRef, Path] = {root: (BORDER,) if root in self.outside else ROOT}
        waiting = [root]
        for origin in waiting:
            for number, wake in enumerate(self.graph.wakes(origin)):
                ref = wake.composite
                if ref in self.computed or ref == root:
                    continue
                known, path = ref in found, (*found[origin], number)
                if isinstance(ref, WindowRef):
                    path = (*path, 0)  # the first that comes of a computation
                if not known or self.graph.stream(ref).settles:
                    found[ref] = path
                if not known:
                    waiting.append(ref)
        return found
