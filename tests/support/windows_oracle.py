"""Windows as a plain interpreter of the log, which shares nothing with the engine.

It remembers every update that has come, and works out everything anew at each record.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from log_oracle import value_of

from servioticy.domain.records import LogRecord, TickRecord, UpdateRecord


@dataclass(frozen=True)
class Shape:
    """A window over timestamps in seconds; times that pass are in seconds, too."""

    kind: str
    size: int = 0
    every: int = 0
    gap: int = 0
    most: int = 10**9
    delay: int = 0
    idle: int = 60
    arrival: bool = False
    lateness: int = 0
    early: int | None = None
    """So many seconds from one time to the next; 0: with each update."""
    fold: bool = False
    revisions: str = "accumulate"
    when: bool = False
    """Early results come out where `holds` becomes true of what comes of the window."""


def in_ms(shape: Shape) -> Shape:
    """The same window by the log's time, which is in ms."""
    return replace(shape, size=shape.size * 1000, every=shape.every * 1000, gap=shape.gap * 1000)


class Update(NamedTuple):
    timestamp: int
    value: int
    order: int
    input: str = ""
    seen: tuple[int, ...] = ()
    """What all inputs were when it came, where they had been anything."""


@dataclass
class Window:
    """The windows of one composite.

    What comes out are timestamps, updates, and a word where that is no final result.
    """

    shape: Shape
    members: tuple[str, ...]
    open: list[Update] = field(default_factory=list)
    sessions: list[list[Update]] = field(default_factory=list)
    newest: dict[str, int] = field(default_factory=dict)
    reached: dict[str, int] = field(default_factory=dict)
    sent: dict[str, float] = field(default_factory=dict)
    since: float | None = None
    now: float = 0
    closed: int = -(10**18)
    count: int = 0
    last: int | None = None
    silent: set[str] = field(default_factory=set)
    over: int = -(10**18)
    fresh: list[Update] = field(default_factory=list)
    """What has been in no early result."""
    told: int | None = None
    out: dict[tuple[str, int], Any] = field(default_factory=dict)
    """What each window told last: by its end, or of sessions by their first update."""
    discarded: set[int] = field(default_factory=set)
    """The updates that have been told, where the rest is discarded."""
    ended: dict[int, int] = field(default_factory=dict)
    """Where sessions ended that are out, by their first update."""
    taken_back: list[Any] = field(default_factory=list)
    held: set[tuple[str, int]] = field(default_factory=set)
    """The windows of which it was true: ends, or of sessions updates in them."""
    history: dict[str, dict[int, int]] = field(default_factory=dict)
    """What its members have by now, whether it is in a window or not."""

    def ends_of(self, timestamp: int) -> list[int]:
        """Where windows end that the update is in; of sliding ones those that are known."""
        shape = self.shape
        if shape.kind == "sliding":
            return [timestamp + 1]
        every = shape.every or shape.size
        first = timestamp // every * every
        return [
            begin + shape.size
            for begin in (first - n * every for n in range(shape.size // every + 1, -1, -1))
            if begin <= timestamp < begin + shape.size
        ]

    def told_by(self, made: list[Any]) -> list[Any]:
        """What is told of windows that come out, by what they told before."""
        found, self.taken_back = list(self.taken_back), []
        for timestamp, updates, *mark in made:
            kept = self._keeps_told(mark)
            name = ("end", timestamp)
            if self.shape.kind == "session" and kept:
                name = ("update", min(each.order for each in updates))
            before = self.out.pop(name, None) if kept else None
            if kept:
                self.out[name] = timestamp, updates, *mark
            if self.shape.revisions == "retract" and before is not None:
                found.append(_retracted(before))
            if self.shape.revisions == "discard":
                new = [each for each in updates if each.order not in self.discarded]
                self.discarded |= {each.order for each in updates}
                if new:
                    found.append((timestamp, new, *mark))
            else:
                found.append((timestamp, updates, *mark))
        if self.shape.kind == "session":
            open_ = {("update", min(each.order for each in one)) for one in self.sessions}
            self.out = {key: each for key, each in self.out.items() if key in open_}
        return found

    def _keeps_told(self, mark: list[str]) -> bool:
        shape = self.shape
        if shape.revisions == "retract":
            return True
        return shape.kind == "session" and bool(shape.lateness) and mark != ["early"]

    def is_idle(self, member: str) -> bool:
        return self.now - self.sent.get(member, self.since or 0) >= self.shape.idle

    def mark(self) -> float:
        if self.shape.arrival:
            return self.now * 1000 - self.shape.delay
        awake = [each for each in self.members if not self.is_idle(each)]
        if not awake:
            return int(self.now) - self.shape.delay
        return min(self.reached.get(each, -(10**15)) for each in awake) - self.shape.delay

    def take(
        self, update: Update, member: str, at: float, former: int | None = None
    ) -> tuple[str, list[Any]]:
        """How it ends where nothing comes out; and that: timestamp and updates of each window.

        `former` is what its stream had of that timestamp, if anything.
        """
        if self.since is None:
            self.since = at
        self.now = max(self.now, at)
        if self.shape.arrival:
            update = update._replace(timestamp=int(at * 1000))
        is_newest = update.timestamp > self.newest.get(member, -1)
        is_repeat = update.timestamp == self.newest.get(member) and not self.shape.arrival
        self.newest[member] = max(update.timestamp, self.newest.get(member, -1))
        reached = min(update.timestamp, int(self.now))
        self.reached[member] = max(reached, self.reached.get(member, -1))
        self.sent[member] = self.now
        if self.shape.kind == "silence":
            is_back = member in self.silent
            self.silent.discard(member)
            back = self._told([update.timestamp] if is_back else [])
            silent = self._fallen_silent()
            return "collected", [(at, len(self.silent)) for at, _ in (*back, *silent)]
        repeated = self._again(update, former)
        in_time = repeated == "replaced"
        if repeated == "there":
            ends = "stale"
        elif in_time:
            ends = "collected"
        else:
            in_time = not is_repeat and self._add(update, is_newest=is_newest)
            ends = "stale" if is_repeat else "collected" if in_time else "late"
        if self.shape.kind in ("count", "global"):
            return ends, self._full() if in_time else []
        changed = []
        if in_time and self.shape.kind in ("tumbling", "hopping"):
            some = [end for end in self.ends_of(update.timestamp) if end <= self.closed]
            changed = [(*self._until(end), "revised") for end in some if end > self.over]
        if in_time and self.shape.kind == "session" and self.shape.lateness:
            (mine,) = [each for each in self.sessions if _has(each, update)]
            if self._end_of(mine) <= self.closed:
                changed = [(self._end_of(mine) - 1, mine, "revised")]
                self.ended[min(each.order for each in mine)] = self._end_of(mine)
        if in_time and self.shape.early is not None:
            self.fresh.append(update)
        return ends, changed + self._close()

    def _again(self, update: Update, former: int | None) -> str:
        """Whether it is there already, and if so whether it takes the place of what was."""
        shape = self.shape
        if former is None or shape.arrival or shape.kind == "count":
            return ""
        if shape.kind == "session":
            return self._again_in_session(update, former)
        if shape.kind != "global" and max(self._needed(update)) <= self.over:
            return ""
        for place, each in enumerate(self.open):
            if (each.input, each.timestamp) == (update.input, update.timestamp):
                beside = [
                    one
                    for one in (self.open if self.discarded else ())
                    if self._needed(one) == self._needed(update)
                ]
                if former == update.value or not self._replaces(beside):
                    return "there"
                self.open[place] = each._replace(value=update.value)
                return "replaced"
        return ""

    def _replaces(self, some: Iterable[Update]) -> bool:
        """Whether these, of one piece, are counted anew: none of them may have been discarded."""
        return not self.shape.fold and self.discarded.isdisjoint(each.order for each in some)

    def _again_in_session(self, update: Update, former: int) -> str:
        """Sessions that are apart are what history has between their ends."""
        at = update.timestamp
        spans = [(min(each).timestamp, max(each).timestamp) for each in self.sessions]
        by_first = sorted(
            range(len(spans)), key=lambda n: min(each.order for each in self.sessions[n])
        )
        inside = [n for n in by_first if spans[n][0] <= at <= spans[n][1]]
        if not inside:
            return ""
        mine = inside[0]
        low, high = spans[mine]
        meeting = [first for first, last in spans if first <= high and low <= last]
        if former == update.value or len(meeting) > 1 or not self._replaces(self.sessions[mine]):
            return "there"
        known = {
            each.timestamp: each for each in self.sessions[mine] if each.input == update.input
        }
        new = [
            known.get(timestamp, update)._replace(timestamp=timestamp, value=value)
            for timestamp, value in self.history[update.input].items()
            if low <= timestamp <= high
        ]
        others = [each for each in self.sessions[mine] if each.input != update.input]
        self.sessions[mine] = others + new
        return "replaced"

    def _add(self, update: Update, *, is_newest: bool) -> bool:
        kind = self.shape.kind
        if kind == "count":
            if is_newest:
                self.open.append(update)
                self.count += 1
            return is_newest
        if kind == "session":
            return self._join(update)
        if kind != "global" and max(self._needed(update)) <= self.over:
            return False
        if kind == "sliding" and update.timestamp + 1 <= self.closed:
            return False
        self.open.append(update)
        return True

    def _needed(self, update: Update) -> list[int]:
        return self.ends_of(update.timestamp)

    def _join(self, update: Update) -> bool:
        gap, mine = self.shape.gap, [update]
        low = high = update.timestamp
        rest = []
        for each in sorted(self.sessions, key=lambda each: min(u.order for u in each)):
            oldest, newest = min(each).timestamp, max(each).timestamp
            wide = max(high, newest) - min(low, oldest)
            if oldest - gap < update.timestamp < newest + gap and wide < self.shape.most:
                mine = each + mine
                low, high = min(low, oldest), max(high, newest)
            else:
                rest.append(each)
        if len(mine) == 1 and update.timestamp + gap <= self.over:
            return False
        first = min(each.order for each in mine)
        parts = [each for each in self.sessions if each not in rest]
        self.sessions = [*rest, mine]
        for key in sorted(min(each.order for each in part) for part in parts):
            was = self.ended.get(key)
            if key != first or was != self._end_of(mine):
                self.ended.pop(key, None)
                if (key != first or was is not None) and ("update", key) in self.out:
                    self.taken_back.append((key != first, key))
        parts_first = sorted(self.taken_back, key=lambda each: (not each[0], each[1]))
        self.taken_back = [_retracted(self.out.pop(("update", key))) for _, key in parts_first]
        return True

    def _full(self) -> list[Any]:
        shape = self.shape
        if shape.kind == "count":
            every = shape.every or shape.size
            if self.count < shape.size or (self.count - shape.size) % every:
                return []
            some = self.open[-shape.size :]
        else:
            some = self.open
        newest = max(each.timestamp for each in some)
        self.last = newest if self.last is None or newest > self.last else self.last + 1
        return [(self.last, some)]

    def pass_time(self, now: float) -> list[Any]:
        if self.since is None or self.shape.kind in ("count", "global"):
            return []
        self.now = max(self.now, now)
        return self._fallen_silent() if self.shape.kind == "silence" else self._close()

    def _fallen_silent(self) -> list[Any]:
        ms = {each: round(at * 1000) + self.shape.gap * 1000 for each, at in self.sent.items()}
        some = [
            each
            for each in self.members
            if each in ms and each not in self.silent and ms[each] <= round(self.now * 1000)
        ]
        self.silent.update(some)
        return self._told([ms[each] // 1000 for each in some])

    def _told(self, timestamps: list[int]) -> list[Any]:
        """By timestamps of which each is later than the last; what is told is how many are."""
        made = []
        for each in timestamps:
            self.last = each if self.last is None or each > self.last else self.last + 1
            made.append((self.last, len(self.silent)))
        return made

    def _until(self, end: int) -> tuple[int, list[Update]]:
        begin = end - self.shape.size
        return end - 1, [each for each in self.open if begin <= each.timestamp < end]

    def _close(self) -> list[Any]:
        made = self._ended()
        if self.shape.lateness:
            self._give_up(came_out=bool(made))
        else:
            self.over = self.closed
        return made + self._early()

    def _give_up(self, *, came_out: bool) -> None:
        mark, lateness = self.mark(), self.shape.lateness
        if self.shape.kind == "session":
            if came_out or any(end + lateness <= mark for end in self.ended.values()):
                self.over = max(self.over, int(min(mark - lateness, self.closed)))
            gone = [first for first, end in self.ended.items() if end <= self.over]
            self.sessions = [
                each for each in self.sessions if min(u.order for u in each) not in gone
            ]
            for first in gone:
                del self.ended[first]
            return
        lasts = [max(self.ends_of(each.timestamp)) for each in self.open]
        kept = [each for each in lasts if self.over < each <= self.closed]
        if came_out or any(each + lateness <= mark for each in kept):
            self.over = max(self.over, int(min(mark - lateness, self.closed)))

    def _early(self) -> list[Any]:
        if self.shape.early is None:
            return []
        now, since = round(self.now * 1000), round((self.since or 0) * 1000)
        if now < (since if self.told is None else self.told) + self.shape.early * 1000:
            return []
        if self.shape.kind == "session":
            some = [
                each
                for each in self.sessions
                if any(_has(each, u) for u in self.fresh)
                and min(u.order for u in each) not in self.ended
            ]
            by_end = sorted(
                (self._end_of(each), min(u.order for u in each), each) for each in some
            )
            made = [(end - 1, each, "early") for end, _order, each in by_end]
        else:
            ends = {end for each in self.fresh for end in self.ends_of(each.timestamp)}
            made = [(*self._until(end), "early") for end in sorted(ends) if end > self.closed]
        if made:
            self.told = now
        self.fresh = []
        return [each for each in made if self._becomes_true(*each[:2])]

    def _becomes_true(self, timestamp: int, updates: list[Update]) -> bool:
        if not self.shape.when:
            return True
        names = {("end", timestamp)}
        if self.shape.kind == "session":
            names = {("update", each.order) for each in updates}
        before = not names.isdisjoint(self.held)
        now = holds(value_of_window(updates, fold=self.shape.fold))
        self.held = self.held | names if now else self.held - names
        return now and not before

    def _end_of(self, session: list[Update]) -> int:
        gap, most = self.shape.gap, self.shape.most
        return min(max(session).timestamp + gap, min(session).timestamp + most)

    def _ended(self) -> list[Any]:
        mark, made = self.mark(), []
        if self.shape.kind == "session":
            by_end = sorted(
                (self._end_of(each), min(u.order for u in each), each) for each in self.sessions
            )
            for end, order, each in by_end:
                if end <= mark and order not in self.ended:
                    if self.shape.lateness:
                        self.ended[order] = end
                    else:
                        self.sessions.remove(each)
                    self.closed = max(self.closed, end)
                    made.append((end - 1, each))
            return made
        ends = {
            end
            for each in self.open
            for end in self.ends_of(each.timestamp)
            if self.closed < end <= mark
        }
        if self.shape.kind == "sliding":  # what no window can have any more is over, too
            over = {each.timestamp + self.shape.size for each in self.open}
            ends |= {end for end in over if self.closed < end <= mark}
        for end in sorted(ends):
            self.closed = end
            if self.shape.kind == "sliding" and all(
                each.timestamp != end - 1 for each in self.open
            ):
                continue
            made.append(self._until(end))
        return made


def folded(state: int | None, seen: Iterable[int]) -> int:
    """What the fold of the tests makes of a state: it goes by the order, and by all inputs."""
    return ((state or 7) * 31 + sum(n * each for n, each in enumerate(seen, 1))) % 999_983


def value_of_window(updates: list[Update] | int, *, fold: bool = False) -> int:
    """What the code of the tests makes of a window, or of how many are silent."""
    if isinstance(updates, int):
        return updates
    if fold:
        state = None
        for each in sorted(updates, key=lambda each: each.order):
            state = folded(state, each.seen)
        return len(updates) * 10**6 + (state or 0)
    whole = len(updates) * 10**6 + sum(each.value for each in updates)
    if len({each.input for each in updates}) > 1:
        return whole
    return whole + max(updates, key=lambda each: (each.timestamp, each.order)).value


def holds(value: int) -> bool:
    """What the condition of the tests says of it: it comes and goes."""
    return value % 3 != 0


def _retracted(told: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*told[:2], "retracted early" if told[2:] == ("early",) else "retracted")


def _has(session: list[Update], update: Update) -> bool:
    return (update.input, update.timestamp) in [(u.input, u.timestamp) for u in session]


RESULT = "the window itself"
FOLLOWED = "an input that is revised"
AGAIN = "what is computed again"


def followed_value(values: Iterable[int | None]) -> int:
    """What the code of the tests makes of inputs, where it follows revisions."""
    return sum(n * each for n, each in enumerate(values, 2) if each is not None) % 10**12 + 1


class Interpreter:
    """Takes the log of one object, one record at a time."""

    def __init__(
        self,
        reads: dict[str, tuple[str, ...]],
        windows: dict[str, Shape],
        follow: Collection[str] = (),
    ) -> None:
        """What others make is the value of what has woken them, and one more.

        Those that follow revisions make theirs of all inputs.
        """
        self._reads = reads
        self._follow = follow
        self.windows = {
            name: Window(in_ms(each) if each.arrival else each, reads[name])
            for name, each in windows.items()
        }
        self.stored: dict[tuple[str, int], int] = {}
        self.emitted: list[tuple[str, int, int, str]] = []
        self.verdicts: defaultdict[tuple[str, str], int] = defaultdict(int)
        self._last: dict[str, int] = {}
        self._value: dict[str, int] = {}
        """Of each stream what it is computed from: its last one, though it was taken back."""
        self._taken: defaultdict[str, int] = defaultdict(int)

    def take(self, record: LogRecord) -> None:
        waiting: list[Any] = []
        if isinstance(record, UpdateRecord):
            at = record.at / 1000
            value = value_of(bytes(record.update))
            self._make(record.stream, record.timestamp, value, 0, waiting)
        elif isinstance(record, TickRecord):
            at = record.timestamp / 1000
            window = self.windows.get(record.stream)
            made = window.told_by(window.pass_time(at)) if window is not None else []
            self._results(record.stream, made, 2, waiting)
            if window is not None and not made and window.since is not None:
                self.verdicts[record.stream, "ticked"] += 1
        while waiting:
            first = min(waiting, key=lambda each: each[0])  # the first of the least depth
            waiting.remove(first)
            depth, composite, member, timestamp, value, more = first
            window = self.windows.get(composite)
            if member == RESULT:
                self._result(composite, timestamp, value, depth, waiting, more)
            elif member.startswith(FOLLOWED):
                values = [
                    value if member == FOLLOWED + each else self._then(each, timestamp)
                    for each in self._reads[composite]
                ]
                again = depth + 2, composite, AGAIN, timestamp, followed_value(values), more
                waiting.append(again)
            elif member == AGAIN:
                self._revised(composite, timestamp, value, depth, waiting, more)
            elif window is not None:
                self._taken[composite] += 1
                seen = tuple(
                    value if each == member else self._value[each]
                    for each in self._reads[composite]
                    if each == member or each in self._last
                )
                update = Update(timestamp, value, self._taken[composite], member, seen)
                window.history = {
                    each: {t: v for (name, t), v in self.stored.items() if name == each}
                    for each in self._reads[composite]
                }
                ends, made = window.take(update, member, at, former=more)
                made = window.told_by(made)
                if not made:
                    self.verdicts[composite, ends] += 1
                self._results(composite, made, depth, waiting)
            elif timestamp <= self._last.get(composite, -1):
                self.verdicts[composite, "stale"] += 1
            elif composite in self._follow:
                values = [
                    value if each == member else self._newest(each)
                    for each in self._reads[composite]
                ]
                self.verdicts[composite, "emitted"] += 1
                newest = self._latest(composite, member, timestamp)
                self._make(composite, newest, followed_value(values), depth, waiting)
            else:
                self.verdicts[composite, "emitted"] += 1
                newest = self._latest(composite, member, timestamp)
                self._make(composite, newest, value + 1, depth, waiting)

    def _results(self, composite: str, made: Any, depth: int, waiting: Any) -> None:
        """Each goes to the composite's code, a step behind its window, which is one itself."""
        for timestamp, updates, *revision in made:
            value = value_of_window(updates, fold=self.windows[composite].shape.fold)
            waiting.append((depth + 2, composite, RESULT, timestamp, value, *(revision or [""])))

    def _result(
        self,
        composite: str,
        timestamp: int,
        value: int,
        depth: int,
        waiting: Any,
        revision: str,
    ) -> None:
        if revision:
            self._revised(composite, timestamp, value, depth, waiting, revision)
            return
        if timestamp <= self._last.get(composite, -1):
            self.verdicts[composite, "stale"] += 1
            return
        self.verdicts[composite, "emitted"] += 1
        self._make(composite, timestamp, value, depth, waiting)

    def _revised(
        self, stream: str, timestamp: int, value: int, depth: int, waiting: Any, revision: str
    ) -> None:
        self.verdicts[stream, "emitted"] += 1
        self.emitted.append((stream, timestamp, value, revision))
        if revision not in ("revised", "retracted"):
            return
        self._becomes(stream, timestamp, value)
        if revision == "retracted":
            del self.stored[stream, timestamp]
        for composite in self._reads:
            if composite in self._follow and stream in self._reads[composite]:
                followed = depth + 1, composite, FOLLOWED + stream, timestamp, value, revision
                waiting.append(followed)

    def _latest(self, composite: str, member: str, timestamp: int) -> int:
        """The newest timestamp of what is read: others may have got one that has woken nobody."""
        others = [each for each in self._reads[composite] if each != member]
        return max([timestamp, *[self._last[each] for each in others if each in self._last]])

    def _newest(self, stream: str) -> int | None:
        """What a stream last had."""
        return self._value.get(stream)

    def _then(self, stream: str, timestamp: int) -> int | None:
        """What it last had at that time, as far as is known now."""
        times = [at for name, at in self.stored if name == stream and at <= timestamp]
        return self.stored[stream, max(times)] if times else None

    def _becomes(self, stream: str, timestamp: int, value: int) -> None:
        self.stored[stream, timestamp] = value
        if timestamp >= self._last.get(stream, -1):
            self._last[stream], self._value[stream] = timestamp, value

    def _make(self, stream: str, timestamp: int, value: int, depth: int, waiting: Any) -> None:
        former = self.stored.get((stream, timestamp))
        self.emitted.append((stream, timestamp, value, ""))
        self._becomes(stream, timestamp, value)
        for composite, reads in self._reads.items():
            if stream in reads and composite != stream:
                waiting.append((depth + 1, composite, stream, timestamp, value, former))
