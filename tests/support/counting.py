"""An operator for tests: it counts by what values leave over, and is woken when it is long silent.

And the same as a plain interpreter of the log, which shares nothing with the engine.
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from log_oracle import value_of

from sandbox.trees import Event
from servioticy.domain.evaluators.operators import Answer, Ends, Entries, Output, Step
from servioticy.domain.model import StreamRef
from servioticy.domain.operator_code import OperatorCode
from servioticy.domain.records import LogRecord, TickRecord, UpdateRecord

KEYS = 3
SILENT_MS = 7
"""How long after the newest update of a key the operator is woken for it."""


def document(value: int, timestamp: int) -> bytes:
    body = {"channels": {"v": {"current-value": value}}, "lastUpdate": timestamp}
    return json.dumps(body, separators=(",", ":")).encode()


class Counting:
    """Counts; of each fourth of a key nothing comes out, and the seventh is an error.

    With `knows` it says beforehand what it will look at.
    """

    takes_answers = False

    def __init__(self, *, knows: bool = True) -> None:
        self._knows = knows

    def keys(self, _code: OperatorCode, argument: int | None, event: Event) -> Sequence[bytes]:
        if argument is None or not self._knows:
            return ()
        return [b"%d" % (value_of(event.document) % KEYS), b"all"]

    def step(self, step: Step, entries: Entries) -> Answer:
        whole = int(entries.get(b"all") or 0) + 1
        entries.put(b"all", b"%d" % whole)
        if step.due is not None:
            count = int(entries.get(step.due) or 0)
            entries.drop(step.due)
            return self._made(-count, step.trigger.timestamp)
        assert step.trigger.document is not None
        value = value_of(step.trigger.document)
        key = b"%d" % (value % KEYS)
        count = int(entries.get(key) or 0) + 1
        entries.put(key, b"%d" % count, step.trigger.timestamp + SILENT_MS)
        if count % 7 == 0:
            raise Ends("error", "seven")
        if count % 4 == 0:
            return Answer()
        return self._made(count * 1000 + whole, step.trigger.timestamp)

    @staticmethod
    def _made(value: int, timestamp: int) -> Answer:
        return Answer([Output(timestamp, document(value, timestamp))])


class Counted:
    """The store, which says of some composites that the operator computes them."""

    def __init__(self, store: Any, counted: set[tuple[str, str]]) -> None:
        self._store, self._counted = store, counted

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def service_objects(self, ids: Sequence[str]) -> Any:
        return map(self._with_operators, self._store.service_objects(ids))

    def _with_operators(self, service_object: Any) -> Any:
        definition = service_object.definition
        streams = tuple(
            replace(
                each, composite=replace(each.composite, evaluator="counting", operator="count")
            )
            if each.composite is not None and tuple(each.ref) in self._counted
            else each
            for each in definition.streams
        )
        return replace(service_object, definition=replace(definition, streams=streams))


class Interpreter:
    """Takes the log of one tenant's object, one record at a time."""

    def __init__(self, reads: dict[str, tuple[str, ...]], counted: set[str]) -> None:
        """`reads` are those of each composite, in order of document: the value of those that are
        not `counted` is that of what has woken them, and one more."""
        self._reads, self._counted = reads, counted
        self.kept: dict[tuple[str, str], tuple[int, int | None]] = {}
        self.stored: dict[tuple[str, int], int] = {}
        self.emitted: list[tuple[str, int, int]] = []
        self.verdicts: defaultdict[tuple[str, str], int] = defaultdict(int)
        self._last: dict[str, int] = {}

    def take(self, record: LogRecord) -> None:
        arrivals: deque[tuple[str, int, int, str | None]] = deque()
        if isinstance(record, UpdateRecord):
            self._make(record.stream, record.timestamp, value_of(bytes(record.update)), arrivals)
        elif isinstance(record, TickRecord) and record.stream in self._counted & {*self._reads}:
            for key in record.keys:
                arrivals.append((record.stream, record.timestamp, 0, key.decode()))
        while arrivals:
            composite, timestamp, value, due = arrivals.popleft()
            if composite in self._counted:
                made = self._count(composite, timestamp, value, due)
            elif timestamp <= self._last.get(composite, -1):
                self.verdicts[composite, "stale"] += 1
                continue
            else:
                made = value + 1
            if made is not None:
                self.verdicts[composite, "emitted"] += 1
                self._make(composite, timestamp, made, arrivals)

    def _count(self, composite: str, timestamp: int, value: int, due: str | None) -> int | None:
        if due is not None:
            count, at = self.kept.get((composite, due), (0, None))
            if at is None or at > timestamp:
                return None
        whole = self.kept.get((composite, "all"), (0, None))[0] + 1
        self.kept[composite, "all"] = whole, None
        if due is not None:
            del self.kept[composite, due]
            return -count
        key = str(value % KEYS)
        count = self.kept.get((composite, key), (0, None))[0] + 1
        if count % 7 == 0:
            self.verdicts[composite, "error"] += 1
            return self._undone(composite, whole)
        self.kept[composite, key] = count, timestamp + SILENT_MS
        if count % 4 == 0:
            self.verdicts[composite, "collected"] += 1
            return None
        return count * 1000 + whole

    def _undone(self, composite: str, whole: int) -> None:
        """What ends with an error has kept nothing."""
        if whole == 1:
            del self.kept[composite, "all"]
        else:
            self.kept[composite, "all"] = whole - 1, None

    def _make(self, stream: str, timestamp: int, value: int, arrivals: Any) -> None:
        self.stored[stream, timestamp] = value
        self.emitted.append((stream, timestamp, value))
        self._last[stream] = max(timestamp, self._last.get(stream, -1))
        for composite, reads in self._reads.items():
            if stream in reads and composite != stream:
                arrivals.append((composite, timestamp, value, None))


def entries_of(state: Any, service_object: str) -> dict[tuple[str, str], tuple[int, int | None]]:
    """What a twin's state keeps of an object's streams."""
    names = {state.stored_as(n): StreamRef(*ref) for ref, n in state.streams.items()}
    return {
        (names[stream].stream, key.decode()): (int(each.value), each.due)
        for (stream, key), each in state.kept_entries.items()
        if names[stream].service_object == service_object
    }
