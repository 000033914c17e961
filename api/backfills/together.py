"""Grows many trees of history at a time, by the engine's own evaluator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from api.backfills.trees import Entry, Stored, Tree
from api.replaying.replay import Means
from sandbox import TookTooLong
from sandbox.trees import Bounds, Call, Event, Last, Made
from servioticy.domain.known_streams import Region
from servioticy.domain.model import StreamRef
from servioticy.domain.timing import becomes_last
from servioticy.refusals import Refused

SECONDS = 10.0
"""Some trees together may take so long; then fewer are taken at once."""


class Together:
    """A region of code alone; with None there is none, and nothing comes of anything."""

    def __init__(
        self,
        region: Region | None,
        lasts: Mapping[StreamRef, Stored],
        bounds: Bounds,
        means: Means,
    ) -> None:
        """`lasts` are what the last updates of streams were before."""
        self.region = region
        self._bounds = bounds
        self._means = means
        streams = enumerate(() if region is None else region.streams)
        self._numbers = {each.ref: number for number, each in streams if each is not None}
        self._lasts: dict[int, Last] = {}
        for each in lasts.values():
            self.becomes(each)

    def known(self, tree: Tree) -> list[Entry]:
        """Return what of a tree comes into the region."""
        return [each for each in tree if each.update.stream in self._numbers]

    def ref(self, made: Made) -> StreamRef:
        """Return the stream of which this is an update."""
        if self.region is None:
            raise KeyError(made.node)
        return self.region.stream(made.node).ref

    def made(self, trees: Sequence[Tree]) -> Iterator[Sequence[Made]]:
        """Yield what comes of each. Raises Refused where code is too slow, or makes too much."""
        waiting = [trees] if trees else []
        while waiting:
            some = waiting.pop()
            try:
                found = self._made(some)
            except TookTooLong as error:
                if len(some) == 1:
                    raise too_slow(some[0]) from error
                half = len(some) // 2
                waiting += [some[half:], some[:half]]
                continue
            yield from found

    def becomes(self, update: Stored) -> None:
        """Note that this is its stream's last update, if it is not older."""
        if update.stream in self._numbers:
            number = self._numbers[update.stream]
            self._becomes(Last(number, update.timestamp, update.document))

    def _made(self, trees: Sequence[Tree]) -> list[Sequence[Made]]:
        entries = [self.known(tree) for tree in trees]
        grown = iter(self._grown([each for each in entries if each]))
        found: list[Sequence[Made]] = []
        for each in entries:
            made = next(grown) if each else ()
            found.append(made)
            for update, _path in each:
                self.becomes(update)
            for one in made:
                self._becomes(Last(one.node, one.timestamp, one.document, one.state))
        return found

    def _grown(self, trees: Sequence[Tree]) -> Sequence[Sequence[Made]]:
        if self.region is None or not trees:
            return ()
        events = [[self._event(*entry) for entry in tree] for tree in trees]
        lasts = list(self._lasts.values())
        call = Call(self.region.wiring, self.region.names, lasts, events, self._bounds)
        (grown,) = self._means.javascript.evaluate(self._means.tenant, [call], SECONDS)
        if grown.failed:
            at = trees[len(grown.made)][0].update.timestamp
            raise Refused(f"What is computed at {at} is too much for one update")
        return grown.made

    def _event(self, update: Stored, path: tuple[int, ...]) -> Event:
        return Event(self._numbers[update.stream], update.timestamp, update.document, path)

    def _becomes(self, new: Last) -> None:
        last = self._lasts.get(new.node)
        if last is None or becomes_last(new.timestamp, last.timestamp):
            state = new.state if last is None or new.state is not None else last.state
            self._lasts[new.node] = new._replace(state=state)


def too_slow(tree: Tree) -> Refused:
    """Return that code is too slow for one tree."""
    return Refused(f"What is computed at {tree[0].update.timestamp} takes too long")
