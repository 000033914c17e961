"""Which windows of a trial are whole: what was not played cannot have been in them.

Of a stream all updates are there behind some time, its *horizon*: of what is stored that is where
the playing begins; of what comes of windows it is where the last one ends that reaches back to the
horizon of what they read. A window that begins behind that is whole. All times here are in ns
since 1970, as streams may count in several units.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import orjson

from api.replaying.moments import moment
from api.trials.trial import Found
from api.trials.version import Version
from sandbox.trees import Made
from servioticy.domain.model import StreamRef, Timestamp
from servioticy.domain.time_units import PER_SECOND, unit_of
from servioticy.domain.windowed import WindowsOf
from servioticy.domain.windows.grid import grid_of
from servioticy.domain.windows.model import Silence, Window

NS = 10**9
ROUNDS = 100
"""So often a horizon is worked out anew; what has none then goes round in a circle."""


class Whole:
    """Tells it of the windows of one version."""

    def __init__(self, version: Version, found: Found, now: int) -> None:
        self._now = now
        self._windows = version.windows
        self._horizons = _Horizons(version, found, now)
        self._reached: dict[StreamRef, float] = {}
        """Of sessions: how far those go that what was not played may have begun."""
        self.left_out: set[tuple[StreamRef, Timestamp]] = set()
        """The results of windows that have ended and may not be whole."""

    def takes(self, windows: StreamRef, timestamp: Timestamp) -> None:
        """Note an update that comes into windows: of sessions it may be in an earlier one."""
        window = self._windows[windows].window
        if isinstance(window, Window) and window.kind == "session":
            reached = self._reach(windows)
            at = self._in_ns(timestamp)
            if at is not None and at - _gap(window) < reached:
                self._reached[windows] = max(reached, at)

    def has(self, windows: StreamRef, made: Made) -> bool:
        """Whether this window, or what is told of silence, is whole; that it is not is noted."""
        window = self._windows[windows].window
        horizon = self._horizons.of_inputs(windows)
        if horizon == -math.inf or (isinstance(window, Window) and window.kind == "count"):
            return True
        if isinstance(window, Silence):
            return self._begins_behind(made.timestamp, horizon)
        document = orjson.loads(made.document)
        first = document["windows"][0]
        if window.kind == "global":
            is_whole = False
        elif window.kind == "session":
            is_whole = self._is_whole_session(windows, window, first["start"], first["end"])
        else:
            is_whole = self._begins_behind(first["start"], horizon)
        if not is_whole and "early" not in document:
            self.left_out.add((windows, made.timestamp))
        return is_whole

    def notes(self) -> list[str]:
        """Return what is to be known of windows that are told, or that never are."""
        found = []
        for ref, code in self._windows.items():
            horizon = self._horizons.of_inputs(ref)
            is_all, is_late = horizon == -math.inf, horizon == math.inf
            notes = _notes(code, is_all=is_all, is_late=is_late)
            found += [f"{StreamRef(*ref)}: {each}" for each in notes]
        return found

    def _is_whole_session(
        self, windows: StreamRef, window: Window, start: Timestamp, end: Timestamp
    ) -> bool:
        begin, until, reached = self._in_ns(start), self._in_ns(end), self._reach(windows)
        if begin is None or until is None:
            return False
        if begin - _gap(window) >= reached:
            return True
        is_full = until - begin >= (window.max or 0) * (NS // 1000)
        self._reached[windows] = max(reached, until - 1 if is_full else until - _gap(window))
        return False

    def _reach(self, windows: StreamRef) -> float:
        return self._reached.get(windows, self._horizons.of_inputs(windows))

    def _begins_behind(self, begin: Timestamp, horizon: float) -> bool:
        at = self._in_ns(begin)
        return at is not None and at > horizon

    def _in_ns(self, timestamp: Timestamp) -> int | None:
        unit = unit_of(timestamp, self._now / 1000)
        return None if unit is None else timestamp * (NS // PER_SECOND[unit])


class _Horizons:
    """How far back all updates of the streams of a version are there: behind which time."""

    def __init__(self, version: Version, found: Found, now: int) -> None:
        since = -math.inf
        if found.since is not None:
            at = moment(found.since, now)
            since = math.inf if at is None else at * (NS // 1000)
        self._found: dict[StreamRef, float] = dict.fromkeys(version.reads, since)
        self._found |= dict.fromkeys(found.missed & version.reads, math.inf)
        self._reads = {each: version.read_by(each) for each in version.concerned}
        self._late = {
            each
            for each, code in version.windows.items()
            if isinstance(code.window, Silence) and self._reads[each] & version.behind_windows
        }
        """Where it is told who is silent of those whose results come later than they say: when
        the last one came is not stored."""
        self._work_out(version.windows)

    def of_inputs(self, composite: StreamRef) -> float:
        """Return it of all that the composite reads together."""
        found = max([self._found.get(each, -math.inf) for each in self._reads[composite]])
        return math.inf if composite in self._late and found > -math.inf else found

    def _work_out(self, windows: Mapping[StreamRef, WindowsOf]) -> None:
        readers: dict[StreamRef, list[StreamRef]] = {}
        for composite, read in self._reads.items():
            for each in read:
                readers.setdefault(each, []).append(composite)
        waiting = dict.fromkeys(sorted(self._reads))
        number = 0
        while waiting:
            grown: dict[StreamRef, None] = {}
            for composite in waiting:
                horizon = self.of_inputs(composite)
                if composite in windows:
                    horizon = _behind(windows[composite], horizon)
                if number >= ROUNDS:
                    horizon = math.inf
                if horizon > self._found.get(composite, -math.inf):
                    self._found[composite] = horizon
                    grown.update(dict.fromkeys(readers.get(composite, ())))
            waiting = grown
            number += 1


def _behind(code: WindowsOf, horizon: float) -> float:
    """Return where that is of what comes of windows, if it is there of what they read."""
    window = code.window
    if math.isinf(horizon):
        return horizon
    if isinstance(window, Silence):
        return horizon + 1  # in a circle it has none
    if window.kind not in ("tumbling", "hopping", "sliding"):
        return math.inf
    grid = grid_of(window, NS)
    return grid.last_end(grid.pane_of(int(horizon))) - 1


def _gap(window: Window) -> int:
    return (window.gap or 0) * (NS // 1000)


def _notes(code: WindowsOf, *, is_all: bool, is_late: bool) -> Iterable[str]:
    window = code.window
    if isinstance(window, Silence):
        if is_late:
            yield "when the last windows came is not stored: who was silent is left out"
        return
    if window.time == "arrival":
        yield "when updates arrived is not stored: it is cut by lastUpdate here"
    if is_all:
        return
    if window.kind == "count":
        yield "where windows of so many updates begin depends on where the playing begins"
    if window.kind == "global":
        yield "a global window holds updates that were not played: it is left out"
