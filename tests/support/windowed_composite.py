"""A stream over windows by itself: the operator, with the entries it keeps, and no pipeline."""

from __future__ import annotations

import json
from typing import Any

from sandbox.trees import Kept, Last
from servioticy.domain.documents.errors import WHOLE
from servioticy.domain.documents.windows import parse_window
from servioticy.domain.evaluators.evaluator import Lacking
from servioticy.domain.evaluators.operators import Answer, Entries, Step
from servioticy.domain.evaluators.windows.head import HEAD
from servioticy.domain.evaluators.windows.operator import Windows
from servioticy.domain.evaluators.windows.told import told
from servioticy.domain.operator_code import OperatorCode
from servioticy.domain.windowed import WindowsOf
from servioticy.domain.windows.model import Window

BASE = 1_700_000_000
STREAM = WHOLE.at("streams", "c", words="stream c")


class Composite:
    """A stream over windows of some streams; what it keeps is known once it is asked for."""

    def __init__(self, window: dict[str, Any], *members: str, code: str = "") -> None:
        self.members = members or ("a",)
        self.entries: dict[bytes, tuple[bytes, int | None]] = {}
        self.asked = 0
        self.be(window, code)

    def be(self, window: dict[str, Any], code: str = "") -> None:
        """From here on it has this window."""
        if window["type"] == "silence":
            self.window = Window("silence", gap=window["after"])
        else:
            self.window = parse_window(STREAM, window, [code])
        operator = WindowsOf(self.window, tuple((each,) for each in self.members))
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
        last = Last(1, BASE + timestamp, document)
        return self._step(Step(self.code, int(log * 1000), argument, last, None, member, (), None))

    def tick(self, at: float) -> Answer:
        """A time of the log that the composite has set itself."""
        now = int((BASE + at) * 1000)
        return self._step(Step(self.code, now, None, Last(1, now, b""), HEAD, "", (), None))

    @property
    def due(self) -> float | None:
        """When it is to be woken, in seconds from the beginning on."""
        due = self.entries[HEAD][1]
        return None if due is None else due / 1000 - BASE

    def told(self) -> dict[str, Any]:
        return told(self.entries[HEAD][0], self.window)

    def _step(self, step: Step) -> Answer:
        known: dict[tuple[int, bytes], Kept] = {}
        for _ in range(100):
            entries = Entries(0, known)
            try:
                answer = Windows().step(step, entries)
            except Lacking as lacking:
                self.asked += 1
                for _node, key in lacking.keys:
                    known[0, key] = Kept(0, key, *self.entries.get(key, (None, None)))
                continue
            for each in entries.changed:
                if each.value is None:
                    self.entries.pop(each.key, None)
                else:
                    self.entries[each.key] = each.value, each.due
            return answer
        raise AssertionError("it never knows enough")
