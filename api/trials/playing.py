"""A version as it is played: stored updates, one after the other, and what came of each.

It is played by the interpreter that takes one computation after the other
(`servioticy/domain/evaluators/stepwise.py`), as what every single one comes to is to be told. The
log's time is that of the updates, and never goes back; what windows are due by it comes between
them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from api.replaying.moments import moment
from api.replaying.replay import Means
from api.trials.trial import Found, Trial, Update
from api.trials.version import Version
from api.trials.watched import MESSAGE, Watched
from api.trials.wholeness import Whole
from sandbox.revisions import Revision, revision_of
from sandbox.trees import Ended, Event, Grown, Made
from servioticy.domain.known_streams import Region
from servioticy.domain.model import StreamRef, Timestamp
from servioticy.domain.verdicts import COLLECTED, EMITTED


class Ending(NamedTuple):
    """What came of a composite."""

    verdict: str
    message: str
    timestamp: Timestamp | None = None
    document: bytes | None = None
    """Of the last update that it made, if it made any."""


class Result(NamedTuple):
    """Of which windows something came, or of what is derived from them."""

    stream: StreamRef
    timestamp: Timestamp
    revision: Revision | None


class Played(NamedTuple):
    """What came of one update, and of the time that passed until then."""

    endings: Mapping[StreamRef, Ending]
    results: Mapping[Result, Ending]
    """What came when windows ended, whatever has come then."""
    kinds: Mapping[str, int]
    """How computations ended, and how many did."""
    seconds: float
    """Of the processor: running code."""


NOTHING = Played({}, {}, {}, 0.0)


class Playing:
    """A version, update after update."""

    def __init__(
        self,
        version: Version,
        trial: Trial,
        found: Found,
        means: Means,
        behind_windows: Collection[StreamRef],
    ) -> None:
        """`behind_windows` are streams of which it is told when windows end, in any version."""
        self._version = version
        region = version.region()
        self._behind_windows = behind_windows
        self.whole = Whole(version, found, trial.now)
        self._wall = trial.now
        self._watch: Watched | None = None
        if region is not None:
            self._watch = Watched(region, found.lasts, trial.hops, means, self.whole)

    def play(self, update: Update, until: float) -> Played:
        """What comes of it, by that moment of the monotonic clock. Raises Enough."""
        watch = self._watch
        number = None if watch is None else watch.numbers.get(update.stream)
        if watch is None or number is None:
            return NOTHING
        if update.stream in self._version.concerned and not update.is_before:
            return NOTHING
        came = _Came(watch.region, self._behind_windows, self.whole)
        before = watch.processor()
        self._pass_to(moment(update.timestamp, self._wall) or 0, until, came)
        event = Event(number, update.timestamp, update.document)
        if update.played and update.stream in self._version.triggers:
            events = [event]
        else:
            events = watch.into_windows(event)
        came.add(events, watch.tree(events))
        return came.played(watch.processor() - before)

    def finish(self, until: float) -> Played:
        """What comes as time goes on until now. Raises Enough."""
        watch = self._watch
        if watch is None:
            return NOTHING
        came = _Came(watch.region, self._behind_windows, self.whole)
        before = watch.processor()
        self._pass_to(self._wall, until, came)
        return came.played(watch.processor() - before)

    def _pass_to(self, at: int, until: float, came: _Came) -> None:
        """Let time pass; what is due until then comes first."""
        if self._watch is not None:
            self._watch.until = until
            for event, grown in self._watch.pass_to(at):
                came.add([event], grown, by_time=True)


class _Came:
    """Puts together what came of some trees."""

    def __init__(
        self, region: Region, behind_windows: Collection[StreamRef], whole: Whole
    ) -> None:
        self._region = region
        self._whole = whole
        self._behind_windows = behind_windows
        self._endings: dict[StreamRef, Ending] = {}
        self._results: dict[Result, Ending] = {}
        self._kinds: Counter[str] = Counter()

    def add(self, events: Sequence[Event], grown: Grown, *, by_time: bool = False) -> None:
        """Take what came of a tree; what came of windows that are not whole is not told."""
        left_out = self._left_out(len(events), grown.made[0])
        parents = [(each.timestamp, each.document) for each in events]
        parents += [(each.timestamp, each.document) for each in grown.made[0]]
        for each in grown.ended:
            stream = self._region.stream(each.node)
            if stream.feeds is None:
                self._kinds[each.kind] += each.times
                if each.parent not in left_out:
                    self._ended(stream.ref, each, *parents[each.parent])
            elif each.kind != EMITTED:  # else what its code makes of them is told
                self._kinds[each.kind] += each.times
                if each.kind != COLLECTED:
                    self._problem(stream.feeds.ref, each, parents[each.parent][0], by_time)
        for number, made in enumerate(grown.made[0], len(events)):
            stream = self._region.stream(made.node)
            if stream.feeds is None and number not in left_out:
                ending = Ending(EMITTED, "", made.timestamp, made.document)
                if stream.ref in self._behind_windows:
                    revision = revision_of(made.document) if stream.revises else None
                    self._results[Result(stream.ref, made.timestamp, revision)] = ending
                else:
                    self._endings[stream.ref] = ending

    def played(self, seconds: float) -> Played:
        """Return it."""
        return Played(self._endings, self._results, self._kinds, seconds)

    def _left_out(self, first: int, made: Sequence[Made]) -> set[int]:
        """The numbers, in the tree, of windows that are not whole, and of what came of these."""
        found: set[int] = set()
        for number, each in enumerate(made, first):
            stream = self._region.stream(each.node)
            if stream.feeds is not None:
                if each.document and not self._whole.has(stream.ref, each):
                    found.add(number)
            elif each.parent in found:
                found.add(number)
        return found

    def _ended(self, ref: StreamRef, ended: Ended, timestamp: int, document: bytes) -> None:
        """How a computation of a composite ended, and what had woken it."""
        ending = Ending(ended.kind, ended.message[:MESSAGE])
        if ref not in self._behind_windows:
            if ref not in self._endings or self._endings[ref].verdict != EMITTED:
                self._endings[ref] = ending
        elif ended.kind != EMITTED:
            windowed = self._region.wiring.nodes[ended.node].windowed
            result = Result(ref, timestamp, revision_of(document) if windowed else None)
            self._results.setdefault(result, ending)

    def _problem(self, ref: StreamRef, ended: Ended, timestamp: int, by_time: bool) -> None:
        """Why nothing is taken into windows, or comes of them."""
        ending = Ending(ended.kind, ended.message[:MESSAGE])
        if by_time:
            self._results.setdefault(Result(ref, timestamp, None), ending)
        else:
            self._endings[ref] = ending
