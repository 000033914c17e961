"""Programs for tests, in this process: what one makes of an event, and how they answer by whim.

And a plain interpreter of the log, which says what has to come of them and shares nothing with
the engine.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from log_oracle import value_of

from servioticy.domain.records import AnswerRecord, DefinitionRecord, LogRecord, UpdateRecord
from servioticy.ports.programs import Manifest, Program, ProgramOutput, Question, Reply

DAY_MS = 86_400_000
WHIM = "whim"
SIDE = "q"
"""How streams begin whose updates a program makes that is another one's: q0 is beside p0."""


class Raised(Exception):
    """The program has raised an error."""


def played(version: int, counts: dict[str, int], timestamp: int, value: int) -> list[Any]:
    """What the program makes of an event: timestamps and channels. It counts by what values leave
    over. Raises Raised; then it has counted nothing."""
    if value % 12 == 6:
        raise Raised(f"{value} is unbearable")
    key = str(value % 3)
    counts[key] = counts.get(key, 0) + 1
    made = 1000 * sum(counts.values()) + 10 * counts[key] + version
    if value >= 60 and value % 12 == 10:
        return [(None, {"v": made}), (timestamp + 3, {"v": made + 7}, SIDE)]
    if value >= 60 and value % 12 == 11:
        return [(None, {"v": made + 9}, SIDE)]
    return {
        0: [],
        1: [(timestamp, {"v": made}), (timestamp + 1, {"v": made + 1})],
        2: [(None, {"v": made, "w": 1})],
        3: [(None, {"v": "a text"})],
        4: [(2**70, {"v": made})],
        5: [(timestamp - 1, {"v": made})],
        7: [(timestamp + DAY_MS + 1, {"v": made})],
        8: [(None, {"v": float("nan")})],
        9: [(timestamp + 2, {"v": made}), (timestamp, {"v": made})],
    }.get(value % 12, [(None, {"v": made})])


class Whimsical:
    """Programs that answer by whim: late, twice, or have no room.

    What they keep has a whim of its own, on which depends what they make next: two that are asked
    the same go on differently.
    """

    def __init__(self, whim: Callable[[int], int]) -> None:
        """`whim` returns a number below the one that it is given."""
        self._whim = whim
        self._open: list[Question] = []
        self._again: list[Reply] = []
        self.asked: list[Question] = []
        self.ahead = 0
        """Questions that were asked before that which they come after was answered."""

    def ask(self, question: Question) -> bool:
        before = [each.id for each in self._open if each[1:3] == question[1:3]]
        assert question.after is None or question.after == before[-1], "none is passed over"
        if self._whim(4) == 0:
            return False
        self.ahead += question.after is not None
        self._open.append(question)
        self.asked.append(question)
        return True

    def replies(self, _wait_seconds: float) -> Sequence[Reply]:
        found, self._again = self._again, []
        for each in list(self._open):
            first = next(other for other in self._open if other[1:3] == each[1:3])
            if self._whim(3) and first.id == each.id:
                reply = self._answer(first)
                found.append(reply)
                if self._whim(3) == 0:
                    self._again.append(reply)
        return found

    def _answer(self, question: Question) -> Reply:
        """Answer the oldest of its composite; what comes after it goes on with what it leaves."""
        self._open.remove(question)
        reply = answer(question, self._whim(5))
        self._open = [
            each._replace(state=reply.state, after=None) if each.after == question.id else each
            for each in self._open
        ]
        return reply

    def die(self) -> None:
        """What it was asked by a worker that is gone is answered to the next one."""
        while self._open:
            self._again.append(self._answer(self._open[0]))

    def forget(self, _program: Program) -> None:
        raise AssertionError

    def close(self) -> None:
        raise AssertionError


def answer(question: Question, whim: int | None = None) -> Reply:
    """What comes of a question, and a whim that is kept."""
    counts = json.loads(question.state or b"{}")
    outputs: list[ProgramOutput] = []
    try:
        for number, text in enumerate(question.events):
            event = json.loads(text)
            value = event["channels"]["v"]
            for timestamp, channels, *to in played(
                question.program.version, counts, event["timestamp"], value
            ):
                text = json.dumps(channels).encode()
                side = "".join([each + question.composite[-1] for each in to])
                outputs.append(ProgramOutput(number, timestamp, text, side))
    except Raised as error:
        return Reply(question.id, (), question.state, str(error), 0.001)
    if whim is not None:
        counts[WHIM] = whim
    return Reply(question.id, outputs, json.dumps(counts).encode(), "", 0.001)


class KnownToAll:
    """Manifests by version; of others the program is not there."""

    def __init__(self, manifests: Mapping[int, Manifest]) -> None:
        self.manifests_by_version = manifests

    def manifests(self, programs: Sequence[Program]) -> Mapping[Program, Manifest]:
        known = self.manifests_by_version
        return {each: known[each.version] for each in programs if each.version in known}


def a_manifest(batch: int = 100, *, keeps_state: bool = True) -> Manifest:
    return Manifest("python", keeps_state, batch, 0.0, 10.0, 2**26, 4)


class _Waits:
    """One composite that a program computes, as the interpreter knows it."""

    def __init__(self) -> None:
        self.queue: deque[tuple[int, int]] = deque()
        self.answered = self.states = 0
        self.last = ""
        self.counts: dict[str, int] = {}
        self.left_by: int | None = None
        self.has_begun = False


class Interpreter:
    """Takes the log of one tenant's object, one record at a time."""

    def __init__(
        self,
        reads: dict[str, tuple[str, ...]],
        programs: set[str],
        versions: Sequence[int],
        keeps_state: Mapping[int, bool],
    ) -> None:
        """`reads` are those of each composite; those of `programs` are computed by one, of the
        n-th of `versions` by the object's n-th, and others add one."""
        self._reads, self._versions, self._keeps_state = reads, versions, keeps_state
        self.waits = {each: _Waits() for each in programs}
        self._version = 0
        self.stored: dict[tuple[str, int], int] = {}
        self.emitted: list[tuple[str, int, int]] = []
        self.verdicts: Counter[tuple[str, str]] = Counter()
        self._last: dict[str, int] = {}

    def take(self, record: LogRecord) -> None:
        if isinstance(record, DefinitionRecord):
            self._version = self._versions[record.version - 1]
        elif isinstance(record, UpdateRecord):
            value = value_of(bytes(record.update))
            self._grow([(record.stream, record.timestamp, value)])
        elif isinstance(record, AnswerRecord):
            self._answered(record)

    def _forget(self, waits: _Waits) -> None:
        """Of a composite to which something has come; else there is nothing to forget."""
        if waits.has_begun:
            waits.states += 1
            waits.counts, waits.last = {}, ""

    def _answered(self, record: AnswerRecord) -> None:
        if record.forgets:
            self._forget(self.waits[record.stream])
            return
        waits, first = self.waits[record.stream], record.events[0].number
        asked = first, record.states, record.version
        if asked != (waits.answered, waits.states, self._version):
            return
        if record.after not in ("", waits.last):
            return
        waits.last = record.question
        waits.states += 1
        waits.answered += len(record.events)
        if waits.left_by not in (None, self._version) and not self._keeps_state[self._version]:
            waits.counts = {}
        counts = dict(waits.counts)
        for _ in record.events:
            timestamp, value = waits.queue.popleft()
            try:
                made = played(self._version, counts, timestamp, value)
            except Raised:
                assert len(record.events) == 1, "the others are answered"
                self.verdicts[record.stream, "error"] += 1
                continue
            self._grow(self._right(record.stream, timestamp, made))
        if record.state is not None:
            counts[WHIM] = json.loads(record.state)[WHIM]
        waits.counts, waits.left_by = counts, self._version

    def _right(self, stream: str, timestamp: int, made: list[Any]) -> list[tuple[str, int, int]]:
        lasts, found = dict(self._last), []
        for given, channels, *to in made:
            other = SIDE + stream[-1] if to else stream
            if other not in self._reads:
                self.verdicts[stream, "error"] += 1
                return []
            last = lasts.get(other, -1)
            at = timestamp if given is None else given
            if given is None and isinstance(channels.get("v"), int) and len(channels) == 1:
                if at <= last:
                    self.verdicts[stream, "stale"] += 1
                    return []
            elif given is None or not last < at <= timestamp + DAY_MS:
                self.verdicts[stream, "error"] += 1
                return []
            found.append((other, at, channels["v"]))
            lasts[other] = at
        self.verdicts[stream, "emitted" if found else "filtered"] += 1
        return found

    def _grow(self, roots: list[tuple[str, int, int]]) -> None:
        arrivals: deque[tuple[str, int, int]] = deque()
        for each in roots:
            self._make(*each, arrivals)
        while arrivals:
            composite, timestamp, value = arrivals.popleft()
            if composite in self.waits:
                self.waits[composite].queue.append((timestamp, value))
                self.waits[composite].has_begun = True
                self.verdicts[composite, "collected"] += 1
            elif timestamp <= self._last.get(composite, -1):
                self.verdicts[composite, "stale"] += 1
            else:
                self.verdicts[composite, "emitted"] += 1
                self._make(composite, timestamp, value + 1, arrivals)

    def _make(self, stream: str, timestamp: int, value: int, arrivals: Any) -> None:
        self.stored[stream, timestamp] = value
        self.emitted.append((stream, timestamp, value))
        self._last[stream] = max(timestamp, self._last.get(stream, -1))
        for composite, reads in self._reads.items():
            if stream in reads:
                arrivals.append((composite, timestamp, value))
