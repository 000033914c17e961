"""A stream over windows by itself: the operator, with the entries it keeps, and no pipeline."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from sandbox.trees import Kept, Last
from servioticy.domain.documents.errors import WHOLE
from servioticy.domain.documents.windows import parse_window
from servioticy.domain.evaluators import silence
from servioticy.domain.evaluators.evaluator import Lacking
from servioticy.domain.evaluators.operators import Answer, Entries, Operator, Run, Step
from servioticy.domain.evaluators.past import (
    Happened,
    Moment,
    Past,
    PastKey,
    PastUpdate,
    answer,
)
from servioticy.domain.evaluators.windows.head import HEAD
from servioticy.domain.evaluators.windows.operator import Windows
from servioticy.domain.evaluators.windows.told import told
from servioticy.domain.operator_code import OperatorCode
from servioticy.domain.windowed import WindowsOf
from servioticy.domain.windows.model import Fold, Silence, Window

BASE = 1_700_000_000
HERE = (0, 0, ())
"""The place of whatever comes."""
STREAM = WHOLE.at("streams", "c", words="stream c")


class Composite:
    """A stream over windows of some streams; what it keeps is known once it is asked for."""

    operator: Operator = Windows()
    head = HEAD
    fold: Fold | None = None
    run: Run | None = None
    """Who runs that."""
    read_as = 0
    """The newest number under which updates of its streams are stored."""
    outside: frozenset[str] = frozenset()
    """Those of its streams that are other tenants', of which nobody here knows the history."""

    def __init__(self, window: dict[str, Any], *members: str, code: str = "") -> None:
        self.members = members or ("a",)
        self.entries: dict[bytes, tuple[bytes, int | None]] = {}
        self.asked = 0
        self.history: dict[tuple[str, int], bytes] = {}
        """What streams have, as it is stored."""
        self.be(window, code)

    def be(self, window: dict[str, Any], code: str = "") -> None:
        """From here on it has this window."""
        self.lasts: dict[str, Last] = {}
        self._runs(replace(parse_window(STREAM, window, [code]), fold=self.fold))

    def _runs(self, window: Window | Silence) -> None:
        self.window = window
        inputs = tuple((each,) for each in self.members)
        operator = WindowsOf(window, inputs, outside=self.outside)
        self.code = OperatorCode(operator, self.members, ())

    def put(
        self,
        timestamp: int,
        value: Any = 1,
        member: str = "",
        at: float | None = None,
        **more: Any,
    ) -> Answer:
        """An update, `at` so many seconds of the log; times are from the beginning on."""
        member = member or self.members[0]
        channels = {"v": {"current-value": value}} | {
            name: {"current-value": each} for name, each in more.items()
        }
        document = json.dumps({"channels": channels, "lastUpdate": BASE + timestamp}).encode()
        log = BASE + (timestamp if at is None else at)
        argument = self.members.index(member)
        last = self.lasts[member] = Last(1, BASE + timestamp, document)
        inputs = [self.lasts.get(each) for each in self.members] if len(self.members) > 1 else []
        answer = self._step(
            Step(self.code, int(log * 1000), argument, last, None, member, inputs, None)
        )
        self.history[member, last.timestamp] = document
        return answer

    def put_ms(self, timestamp: int, value: Any = 1) -> Answer:
        """An update of a device that counts milliseconds, at that time of the log."""
        ms = (BASE + timestamp) * 1000
        document = json.dumps({"channels": {"v": {"current-value": value}}, "lastUpdate": ms})
        last = Last(1, ms, document.encode())
        return self._step(Step(self.code, ms, 0, last, None, self.members[0], (), None))

    def tick(self, at: float, key: bytes | None = None) -> Answer:
        """A time of the log that the composite has set itself, for this entry."""
        now = int((BASE + at) * 1000)
        due = self.head if key is None else key
        return self._step(Step(self.code, now, None, Last(1, now, b""), due, "", (), None))

    @property
    def due(self) -> float | None:
        """When it is to be woken, in seconds from the beginning on."""
        due = self.entries[self.head][1]
        return None if due is None else due / 1000 - BASE

    def told(self) -> dict[str, Any]:
        assert isinstance(self.window, Window)
        return told(self.entries[HEAD][0], self.window)

    def _past(self, key: PastKey) -> bytes | None:
        streams, begin, until, most, _is_newest = key.wanted
        if self.outside.intersection(streams):
            return None
        found = [
            PastUpdate(name, at, document)
            for (name, at), document in sorted(self.history.items())
            if name in streams and begin <= at <= until
        ]
        return answer(found) if len(found) <= most else None

    def _step(self, step: Step) -> Answer:
        known: dict[tuple[int, bytes], Kept] = {}
        for _ in range(100):
            entries = Entries(0, known)
            happened = Happened()
            happened.note(step.source, step.trigger.timestamp, step.trigger.document or b"", HERE)
            past = Past(entries.get, Moment(happened, HERE))
            step = step._replace(past=past, read_as=self.read_as)
            if self.run is not None:
                step = step._replace(run=self.run, name="so/c@1")
            try:
                answer = self.operator.step(step, entries)
            except Lacking as lacking:
                self.asked += 1
                for _node, key in lacking.keys:
                    if isinstance(key, PastKey):
                        known[0, key] = Kept(0, key, self._past(key))
                        continue
                    known[0, key] = Kept(0, key, *self.entries.get(key, (None, None)))
                continue
            for each in entries.changed:
                if each.value is None:
                    self.entries.pop(each.key, None)
                else:
                    self.entries[each.key] = each.value, each.due
            return answer
        raise AssertionError("it never knows enough")


class Watch(Composite):
    """A stream that is told when others are silent."""

    operator: Operator = silence.Silences()
    head = silence.HEAD

    def __init__(self, after: float, *members: str) -> None:
        """`after` so many seconds."""
        self.members = members
        self.entries = {}
        self.lasts = {}
        self.asked = 0
        self.history = {}
        self.after(after)

    def after(self, seconds: float) -> None:
        """From here on it is told after so long."""
        self._runs(Silence(int(seconds * 1000)))

    def told(self) -> dict[str, Any]:
        return silence.told(self.entries[self.head][0])


def windows(answer: Answer) -> list[tuple[int, int, int]]:
    """Beginning, end and count of what came out, all inputs together."""
    found = []
    for output in answer.outputs:
        each = json.loads(output.document)["windows"]
        assert output.timestamp == json.loads(output.document)["lastUpdate"]
        found.append(
            (
                each[0]["start"] - BASE,
                each[0]["end"] - BASE,
                sum(one.get("count", 0) for one in each),
            )
        )
    return found
