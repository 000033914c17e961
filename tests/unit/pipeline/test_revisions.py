"""What comes out of windows before their end, and after it again: who is told, and what stays."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from memory import MemoryPlatform
from new_service_objects import new_service_object
from plain_trees import Ends
from put_off_runs import Runs, Whims
from python_evaluator import Compute, PythonEvaluator

from pipeline.accounting.accounts import Accounts
from pipeline.stages import rows
from servioticy.domain.evaluators.every import every
from servioticy.domain.evaluators.windows import retracting
from servioticy.domain.known_streams import KnownStream
from servioticy.domain.model import Composite, ServiceObjectKey, StreamRef
from servioticy.domain.records import UpdateRecord
from servioticy.ports.accounts import Use
from servioticy.ports.put_off import TreeKey

BASE = 1_700_000_000
WINDOW = {"type": "tumbling", "size": "4s", "emit": "updates", "lateness": "20s"}
EARLY = b'{"channels":{},"lastUpdate":9,"revision":1,"early":true}'
RETRACTED = b'{"channels":{},"lastUpdate":9,"revision":1,"retracted":true}'
REVISED = b'{"channels":{},"lastUpdate":9,"revision":2}'


def compute(_trigger: Any, documents: list[bytes | None]) -> int | None:
    """How many updates a window has; of others what the first input says."""
    if documents[0] is None:
        return None
    document = json.loads(documents[0])
    if "windows" in document:
        return int(document["windows"][0]["count"])
    return int(document["channels"]["v"]["current-value"])


class Platform:
    """d0 is counted by c0, which r reads together with d1; so does another window."""

    def __init__(self, window: Any = WINDOW, compute: Compute = compute, more: Any = None) -> None:
        self.platform = MemoryPlatform()
        number = {"type": "number"}
        code = {"type": "number", "current-value": "function(d0){return 1}"}
        read = {"type": "number", "current-value": "function(c0, d1){return 1}"}
        whole = {"type": "number", "current-value": "function(c0){return 1}"}
        document = {
            "version": "0.2.0",
            "streams": {
                "d0": {"channels": {"v": number}},
                "d1": {"channels": {"v": number}},
                "c0": {"window": window, "channels": {"v": code}},
                "r": {"channels": {"v": read}},
                "all": {"window": {"type": "global"}, "channels": {"v": whole}},
                **(more or {}),
            },
        }
        tenants = self.platform.tenants
        self.tenant = tenants.tenant_of(tenants.create_tenant("so")) or 0
        self.platform.changes.create(new_service_object(self.tenant, "so", document))
        evaluators = every(PythonEvaluator(compute))
        self.runs = Runs(self.platform, evaluators, Whims([]), {}, 1000, now=lambda: -1.0)
        self.runs.take(0, 0)
        self.take()

    def put(self, stream: str, timestamp: int, at: int | None = None, **more: Any) -> None:
        body = {"channels": {"v": {"current-value": 7}}, "lastUpdate": BASE + timestamp} | more
        update = msgspec.Raw(json.dumps(body, separators=(",", ":")).encode())
        log = (BASE + (timestamp if at is None else at)) * 1000
        record = UpdateRecord("so", stream, BASE + timestamp, update, at=log)
        self.platform.log.append(0, record)
        self.take()

    def take(self) -> None:
        """All that has come, and what was put off of it, as the machine was busy."""
        state = self.platform.state
        while state.progress[0].next_offset < len(state.log[0]):
            self.runs.take(state.progress[0].next_offset, len(state.log[0]))
            self.runs.finish()

    def stored(self, stream: str) -> dict[int, dict[str, Any]]:
        names = self.platform.state.readable()
        return {
            row.timestamp - BASE: json.loads(row.document)
            for _partition, row in self.platform.state.updates.values()
            if row.stream_id in names and names[row.stream_id][1] == stream
        }

    def verdicts(self, stream: str) -> dict[str, int]:
        names, every = self.platform.state.readable(), self.platform.state.verdicts.items()
        return {kind: n for (number, kind), (n, _last) in every if names[number][1] == stream}

    def sent(self, stream: str) -> list[tuple[int, Any, Any]]:
        said = [
            (each.timestamp, json.loads(bytes(each.update)))
            for each in self.platform.state.emitted
            if each.stream == stream
        ]
        return [
            (timestamp - BASE, document.get("revision"), document.get("early"))
            for timestamp, document in said
        ]


def values(stored: dict[int, dict[str, Any]]) -> dict[int, int]:
    return {at: each["channels"]["v"]["current-value"] for at, each in stored.items()}


def test_what_is_early_is_sent_and_kept_nowhere_and_wakes_nobody() -> None:
    p = Platform()
    p.put("d1", 0)
    p.put("d0", 1)
    p.put("d0", 2)
    p.put("d1", 3)

    assert p.sent("c0") == [(3, 1, True), (3, 2, True)]
    assert p.stored("c0") == p.stored("r") == p.stored("all") == {}


def test_a_revision_takes_the_place_of_the_result_and_who_reads_it_next_reads_it() -> None:
    p = Platform()
    p.put("d0", 1)
    p.put("d0", 5)
    assert values(p.stored("c0")) == {3: 1}
    assert values(p.stored("r")) == {3: 1}
    before = p.sent("r"), p.sent("all")
    p.put("d0", 2, at=6)

    assert p.sent("c0")[-1] == (3, 2, None)
    assert values(p.stored("c0")) == {3: 2}
    assert p.stored("c0")[3]["revision"] == 2
    assert (p.sent("r"), p.sent("all")) == before, "nobody is woken"
    p.put("d1", 7)
    assert values(p.stored("r")) == {3: 1, 7: 2}


def test_an_older_revision_is_no_last_output() -> None:
    p = Platform()
    for at in (1, 5, 9):
        p.put("d0", at)
    p.put("d0", 2, at=9)
    p.put("d1", 10)

    assert values(p.stored("c0")) == {3: 2, 7: 1}
    assert values(p.stored("r"))[10] == 1, "the window that ended last"


def test_a_task_that_begins_anew_knows_the_revised_one() -> None:
    p = Platform()
    p.put("d0", 1)
    p.put("d0", 5)
    p.put("d0", 2, at=6)
    p.runs.task = p.runs._new()
    p.put("d1", 7)

    assert values(p.stored("r"))[7] == 2


def test_what_is_erased_is_in_no_window_that_is_open() -> None:
    """Nor in one that is told again; what others read of it stays as it was."""
    p = Platform()
    p.put("d0", 1)
    p.put("d0", 5)
    p.put("d0", 6)
    key = ServiceObjectKey(p.tenant, "so")
    p.platform.changes.erase(key, "d0")
    p.take()
    p.put("d0", 7)
    p.put("d0", 2, at=7)

    assert [each[1] for each in p.sent("c0") if each[2]] == [1, 1, 2, 1]
    assert values(p.stored("c0")) == {3: 1}, "it was out, and takes nothing more in"
    p.put("d0", 9)
    assert values(p.stored("c0")) == {3: 1, 7: 1}


def test_what_is_erased_of_another_stream_changes_nothing() -> None:
    p = Platform()
    p.put("d0", 5)
    p.put("d1", 5)
    p.platform.changes.erase(ServiceObjectKey(p.tenant, "so"), "d1")
    p.take()
    p.put("d0", 6)
    p.put("d0", 9)

    assert values(p.stored("c0")) == {7: 2}
    assert "abandoned" not in p.verdicts("c0")


def test_what_somebody_writes_into_the_stream_is_stored_whatever_it_says() -> None:
    p = Platform()
    p.put("c0", 50, revision=1, early=True)

    assert p.stored("c0")[50]["early"] is True
    assert values(p.stored("r")) == {50: 7}


SESSIONS = {"type": "session", "gap": "3s", "lateness": "20s"}


@pytest.mark.parametrize("ending", ["filtered", "error"])
@pytest.mark.parametrize("is_last", [True, False])
def test_a_result_that_is_taken_back_goes_whatever_code_makes_of_that(
    ending: str, is_last: bool
) -> None:
    """Another version of it, say: the session that it was of is another one."""
    lets_through = [True]

    def computing(trigger: Any, documents: list[bytes | None]) -> int | None:
        if "c0" in trigger.name and not lets_through[0]:
            raise Ends(ending)
        return compute(trigger, documents)

    p = Platform(SESSIONS, computing)
    p.put("d0", 1)
    p.put("d0", 10)
    if not is_last:
        p.put("d0", 20)
    assert values(p.stored("c0")) == ({3: 1} if is_last else {3: 1, 12: 1})
    number = p.platform.state.streams["so", "c0"]
    lets_through[0] = False
    p.put("d0", 2, at=20)

    assert values(p.stored("c0")) == ({} if is_last else {12: 1})
    assert p.verdicts("c0")[ending] >= 1
    assert p.sent("c0") == [(each, None, None) for each in ([3] if is_last else [3, 12])]
    computed_from = p.platform.state.computed_from[number]
    assert computed_from.timestamp == BASE + (3 if is_last else 12)


def test_it_goes_whatever_somebody_has_written_behind_it() -> None:
    """What is written there may look as if it were early."""
    is_filtered = [False]

    def computing(trigger: Any, documents: list[bytes | None]) -> int | None:
        return None if "c0" in trigger.name and is_filtered[0] else compute(trigger, documents)

    p = Platform(SESSIONS, computing)
    p.put("d0", 1)
    p.put("d0", 10)
    p.put("c0", 50, at=20, revision=1, early=True)
    assert list(p.stored("c0")) == [3, 50]
    is_filtered[0] = True
    p.put("d0", 2, at=20)

    assert list(p.stored("c0")) == [50]


def test_a_result_goes_of_which_nobody_can_be_told_what_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As it was of windows that are too large to be noted."""
    monkeypatch.setattr(retracting, "MAX_TOLD_BYTES", 10)
    p = Platform(SESSIONS)
    p.put("d0", 1)
    p.put("d0", 10)
    p.put("d0", 2, at=20)

    assert values(p.stored("c0")) == {4: 2}
    assert p.sent("c0") == [(3, None, None), (4, None, None)]
    assert p.verdicts("c0").keys() == {"collected", "emitted"}


@pytest.mark.parametrize("at_once", [True, False])
def test_who_looks_into_history_finds_it_gone_however_the_log_is_cut(*, at_once: bool) -> None:
    """What stands in the store is what was there before the piece."""
    is_filtered = [False]

    def computing(trigger: Any, documents: list[bytes | None]) -> int | None:
        if "c0" in trigger.name and is_filtered[0]:
            return None
        document = json.loads(documents[0] or b"{}")
        if "argument" not in document:
            return compute(trigger, documents)
        then = document["windows"][1]
        return -1 if then is None else int(then["value"]["channels"]["v"]["current-value"])

    def over(*read: str) -> dict[str, Any]:
        code = f"function({', '.join(read)}){{return 1}}"
        return {"channels": {"v": {"type": "number", "current-value": code}}}

    more = {
        "c1": over("d1") | {"window": WINDOW},
        "f": over("c1", "c0") | {"follow": True},
    }
    p = Platform(SESSIONS, computing, more)
    for stream, at in (("d0", 1), ("d0", 10), ("d1", 4), ("d1", 10)):
        p.put(stream, at)
    is_filtered[0] = True
    take, p.take = p.take, (lambda: None) if at_once else p.take  # type: ignore[method-assign]
    p.put("d0", 2, at=10)
    p.put("d1", 5, at=10)
    take()

    assert values(p.stored("c0")) == {}
    assert values(p.stored("f"))[7] == -1


def a_stream() -> KnownStream:
    composite = Composite("function", (), (), windowed=True, revises=True)
    return KnownStream(StreamRef("so", "c"), 7, 1, 12, composite, read_in=(1,))


@pytest.mark.parametrize(
    ("document", "stored"), [(EARLY, []), (RETRACTED, [True]), (REVISED, [False])]
)
def test_what_is_early_is_no_row_and_does_not_cross_borders(
    document: bytes, stored: list[bool]
) -> None:
    row = (a_stream(), 9, document, TreeKey(3, 0), 1, (0, 0))

    updates = rows.updates([row])
    assert [(each.takes_back, each.ends_taken_back) for each in updates] == [
        (each, not each) for each in stored
    ]
    assert len(rows.emissions([row])) == 1
    assert len(rows.crossings([row], 0)) == len(stored)


def test_what_is_kept_nowhere_takes_no_bytes() -> None:
    accounts = Accounts()
    for document in (EARLY, REVISED, RETRACTED):
        accounts.note([(a_stream(), 9, document, TreeKey(3, 0), 1, (0, 0))], [])
    uses: dict[Any, Use] = {}
    accounts.add_to(uses)

    (use,) = uses.values()
    assert use.bytes == len(REVISED)
