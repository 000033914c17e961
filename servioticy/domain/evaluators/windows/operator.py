"""The operator of windows: takes in updates and times, and tells what windows end by them.

What a window has is told by its number of the log: which updates came before, and what time it
was then. So a part of the log that is computed again makes the same windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, cast

import orjson

from sandbox.trees import Event
from servioticy.domain.evaluators.members import Members
from servioticy.domain.evaluators.operators import (
    MAX_CHANGES,
    Answer,
    Ends,
    Entries,
    Output,
    Step,
)
from servioticy.domain.evaluators.windows.again import Again, Repeated
from servioticy.domain.evaluators.windows.conditions import Conditions
from servioticy.domain.evaluators.windows.contents import Contents
from servioticy.domain.evaluators.windows.counted import Counted, Whole
from servioticy.domain.evaluators.windows.cutting import MAX_DROPPED, Closed, Cutting
from servioticy.domain.evaluators.windows.folding import Folds
from servioticy.domain.evaluators.windows.head import (
    HEAD,
    MEMBERS,
    NEVER,
    NOTHING,
    Gone,
    Head,
    panes_that_fit,
    read_head,
    write,
)
from servioticy.domain.evaluators.windows.inputs import Taken, channels_of
from servioticy.domain.evaluators.windows.retracting import Retractions
from servioticy.domain.evaluators.windows.sessions import Sessions
from servioticy.domain.evaluators.windows.timed import Timed
from servioticy.domain.evaluators.windows.watermark import Watermark
from servioticy.domain.operator_code import OperatorCode
from servioticy.domain.time_units import PER_SECOND, unit_of
from servioticy.domain.verdicts import ABANDONED, COLLECTED, ERROR, LATE, STALE
from servioticy.domain.windowed import WindowsOf
from servioticy.domain.windows.model import Uses, Window

MAX_CLOSED = 100
"""Windows that come out of one computation; what is more comes by a time that is due at once."""

MAX_DISCARDED = 200
"""Windows times inputs of which the contents are given up by one computation."""

MAX_GONE = 8
"""Versions with other windows whose panes are still to be given up."""

NONE = Uses()

CUTTINGS: dict[str, type[Cutting]] = {
    "tumbling": Timed,
    "hopping": Timed,
    "sliding": Timed,
    "session": Sessions,
    "count": Counted,
    "global": Whole,
}


class Windows:
    """The operator."""

    takes_answers = False

    def keys(self, _code: OperatorCode, _argument: int | None, _event: Event) -> Sequence[bytes]:
        """What every computation looks at."""
        return [HEAD]

    def step(self, step: Step, entries: Entries) -> Answer:
        """Take in an update, or a time that has come; what ends by it comes out."""
        if step.due not in (None, HEAD):  # of a version that was told of silence
            entries.drop(step.due)
            return Answer()
        return _Computation(step, entries).answer()


class _Computation:
    """One of them."""

    def __init__(self, step: Step, entries: Entries) -> None:
        self._step = step
        self._entries = entries
        self._code = _code(step.code)
        self._window = cast(Window, self._code.window)
        self._abandoned = ""
        self._head = self._known() or self._first()
        self._head.now = max(self._head.now, step.at)
        if step.argument is not None:
            self._count_in(self._per_second())
        members = Members(entries, self._code.members, self._head.members, NOTHING, MEMBERS)
        self._watermark = Watermark(self._window, self._head, members)
        uses, generation = self._window.uses, self._head.generation
        contents = Contents(entries, len(self._code.inputs), uses, generation)
        self._contents = contents
        self._retractions = Retractions(self._window, entries, self._head)
        self._folds = Folds(self._window.fold, step, entries, self._head)
        cutting = CUTTINGS[self._window.kind]
        try:
            most = panes_that_fit(self._window, self._code.members)
            self._cutting = cutting(self._window, self._head, contents, self._folds, most)
        except ValueError as error:
            raise Ends(ERROR, str(error)) from error

    def answer(self) -> Answer:
        """What comes of it."""
        kind, message = COLLECTED, ""
        if self._step.argument is not None:
            kind, message = self._take_in(self._step.argument)
        found = self._cutting.closed(self._watermark, self._most())
        is_clear = self._clear()
        conditions = Conditions(self._code, self._step, self._head)
        coming = [each for each in found.closed if each.fresh or not self._discards]
        pairs = conditions.let_out(coming, list(map(self._output, coming)))
        if self._discards:
            self._discard([closed for closed, _ in pairs])
        outputs = self._retractions.of_parts() + self._retractions.with_former(pairs)
        is_clear &= not self._retractions.give_up()
        self._keep(found.due if is_clear else self._head.now)
        if self._abandoned:
            return Answer(outputs, ABANDONED, self._abandoned)
        if found.problem:
            return Answer(outputs, ERROR, found.problem)
        return Answer(outputs, *(conditions.problem or (kind, message)))

    @property
    def _discards(self) -> bool:
        """Whether what has been told is kept no more."""
        return self._window.revisions == "discard"

    def _most(self) -> int:
        """How many windows may come out: what changes with them has to be a computation's."""
        if self._discards:
            return max(1, MAX_DISCARDED // len(self._code.inputs))
        return MAX_CLOSED // 2 if self._window.revisions == "retract" else MAX_CLOSED

    def _discard(self, told: Sequence[Closed]) -> None:
        """Keep nothing of what these windows have told, where they are open still."""
        begins = [each.number if self._window.kind == "session" else each.begin for each in told]
        panes = {each.begin: each for each in self._head.panes}
        for begin, closed in zip(begins, told, strict=True):
            if begin in panes:
                panes[begin].told += closed.fresh
                self._contents.discard(begin)

    def _keep(self, due: int | None) -> None:
        """Keep the head; what is due at once is so at another time than the one that has come.

        The log has been told of that one: the same would be told again only after a minute.
        """
        later = None if due is None else max(due, self._head.now + 1)
        self._entries.put(HEAD, write(self._head), later)

    def _known(self) -> Head | None:
        """What is kept; where that is another version's with other windows, or has updates of a
        stream that was erased, they are given up."""
        value = self._entries.get(HEAD)
        if value is None:
            return None
        found = read_head(value)
        code = _digest(self._code)
        before, now = found.read_as, max(found.read_as, self._step.read_as)
        found.read_as = now
        is_erased = bool(found.panes) and 0 < before < now
        if found.code == code and not is_erased:
            return found
        panes = [each.begin for each in found.panes]
        why = "with updates of a stream that was erased" if found.code == code else ""
        why = why or "of a version with other windows"
        self._abandoned = f"{len(panes)} panes {why}"
        left = Gone(found.generation, found.arguments, panes, found.folded, found.told)
        gone = [*found.gone, left]
        per_second, generation = found.per_second, found.generation + 1
        return Head(
            code,
            len(self._code.inputs),
            per_second,
            found.now,
            found.now,
            members=found.members,
            generation=generation,
            gone=[each for each in gone if each.is_left][-MAX_GONE:],
            closed=found.closed,
            over=max(found.over, found.closed),
            read_as=now,
        )

    def _first(self) -> Head:
        """At the first update. Raises Ends where its timestamp is no time."""
        at = self._step.at
        inputs, per_second = len(self._code.inputs), self._per_second()
        read_as = self._step.read_as
        return Head(_digest(self._code), inputs, per_second, at, at, read_as=read_as)

    def _clear(self) -> bool:
        """Give up some of what versions before have left; whether that is all."""
        gone = self._head.gone
        if gone:
            first = gone[0]
            contents = Contents(self._entries, first.arguments, NONE, first.generation)
            room = MAX_CHANGES - len(self._entries.changed) - 1  # that of what is said here
            del first.panes[: contents.drop(first.panes[:MAX_DROPPED], room, least=0)]
            room = MAX_CHANGES - len(self._entries.changed) - 1
            first.folded = self._folds.clear(first.generation, first.folded, room)
            room = MAX_CHANGES - len(self._entries.changed) - 1
            first.told = self._retractions.clear(first.generation, first.told, room)
            self._head.gone = gone if first.is_left else gone[1:]
        return not self._head.gone

    def _per_second(self) -> int:
        step = self._step
        if self._window.time == "arrival" or self._window.kind in ("count", "global"):
            return 1000
        unit = unit_of(step.trigger.timestamp, step.at / 1000) if step.at else None
        if unit is None:
            raise Ends(
                ERROR,
                f"lastUpdate {step.trigger.timestamp} is no time of these days: send "
                f"{', '.join(PER_SECOND)} since 1970",
            )
        return PER_SECOND[unit]

    def _count_in(self, per_second: int) -> None:
        """Timestamps are in this unit. Raises Ends where others that are open are in another."""
        head = self._head
        if head.per_second == per_second:
            return
        if head.panes:
            units = {number: unit for unit, number in PER_SECOND.items()}
            raise Ends(
                ERROR,
                f"timestamps of one window are in different units: this one is in "
                f"{units[per_second]}, those of the windows that are open in "
                f"{units[head.per_second]}; send all in one unit",
            )
        if head.closed != NEVER:  # what has come out in another unit is not to come once more
            head.closed = head.over = head.closed * per_second // head.per_second
        head.per_second, head.members = per_second, {}

    def _take_in(self, argument: int) -> tuple[str, str]:
        """Take an update in; how that ends where nothing comes out, and why."""
        step, head = self._step, self._head
        document = step.trigger.document or b"{}"
        timestamp = step.trigger.timestamp
        if self._window.time == "arrival":
            timestamp = step.at
        before = self._watermark.note(step.source, timestamp)
        order = head.taken + 1
        is_noted = (
            step.source in self._code.outside
            and self._window.time == "event"
            and self._window.kind != "count"  # takes only what is newer, so nothing comes twice
        )
        outside = step.source if is_noted else ""
        taken = Taken(argument, timestamp, document, channels_of(document), order, outside)
        streams = self._code.inputs[argument]
        again = Again(step, self._window, streams, taken, before, self._contents)
        try:
            late = self._cutting.take(taken, again)
        except Repeated as repeated:
            return STALE, str(repeated)
        head.taken = order
        if late and again.repeats_newest:
            return STALE, f"it repeats the newest update of its stream, {timestamp}"
        if late:
            return LATE, late
        return self._folds.problem or (COLLECTED, "")

    def _output(self, closed: Closed) -> Output:
        uses = self._window.uses
        windows = [
            {"count": 0, "start": closed.begin, "end": closed.end}
            if each is None
            else each.as_json(closed.begin, closed.end, uses)
            for each in closed.inputs
        ]
        document: dict[str, Any] = {"windows": windows, "lastUpdate": closed.timestamp}
        if closed.is_revision:
            document["revision"] = closed.updates
        if closed.is_early:
            document["early"] = True
            for each in windows:
                each["early"] = True
        if closed.state is not None:
            windows.append({"value": orjson.Fragment(closed.state)})
        return Output(closed.timestamp, orjson.dumps(document))


def _digest(code: WindowsOf) -> bytes:
    """What windows and inputs are told by: not the code that reads them, and not when it does."""
    return sha256(repr(code.cut).encode("utf-8", "surrogatepass")).digest()[:8]


def _code(code: OperatorCode) -> WindowsOf:
    return cast(WindowsOf, code.operator)
