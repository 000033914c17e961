"""A program is begun before anybody asks it, and what is wrong with it is known by then."""

from __future__ import annotations

import queue
from pathlib import Path
from typing import Any

import pytest
from operator_folders import PROGRAM, SECONDS, answers, fetched, node_of, question, until, write

from operators import attending
from operators.attending import Bounds
from operators.node import Node
from operators.room import Room

ECHO = """
from servioticy_operator import serve
serve(lambda event, state: event.channels)
"""

TOLD = """
from servioticy_operator import serve
def each(event, state):
    print(event.composite, event.stream, event.timestamp, event.channels, state.all())
    return event.channels
serve(each)
"""

RAISES = """
from servioticy_operator import serve
def each(event, state):
    raise ValueError("no model")
serve(each)
"""

EVENTS = [{"stream": "a", "channels": {"value": 5}}, {"stream": "a", "channels": {"value": 6}}]


def warmed(node: Node) -> str:
    """Begin the program, and return what was wrong."""
    told: queue.SimpleQueue[str] = queue.SimpleQueue()
    assert node.warm(PROGRAM, "so/s", told.put)
    return told.get(timeout=SECONDS)


def test_who_asks_then_asks_the_process_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of the warm-up is a reply to anybody, and all room is free again.

    It is paid by the stream for which it was, though that never asks.
    """
    monkeypatch.setattr(attending, "SETTLE_SECONDS", 0.0)
    folder = write(tmp_path / "a", TOLD, **{"warm-up": EVENTS})
    room = Room()
    with node_of({PROGRAM: folder}, tmp_path, room=room) as node:
        assert warmed(node) == ""
        (before,) = node.running()
        spent: dict[tuple[int, str], float] = {}

        def is_paid() -> bool:
            spent.update(node.spent())
            return bool(spent)

        until(is_paid)
        reply = answers(node, [question(1)])[b"q1"]
        assert node.replies(0.0) == []
        until(lambda: node.running()[0].printed.count(b"\n") > 2)
        (after,) = node.running()
        assert room.taken == 0

    assert reply.outputs[0].channels == b'{"value":1}'
    assert [*spent] == [(PROGRAM.tenant, "so/s")]
    assert spent[PROGRAM.tenant, "so/s"] > 0, "the time of the start is paid for"
    assert before.state == "idle"
    assert (before.pid, before.restarts) == (after.pid, 0)
    assert after.printed.startswith(b"warm-up a 0 {'value': 5} {}\nwarm-up a 0 {'value': 6} {}\n")


@pytest.mark.parametrize(
    ("main", "said", "reason"),
    [
        ("import nothing_like_this", {}, "ModuleNotFoundError"),
        (RAISES, {"warm-up": EVENTS}, "ValueError: no model"),
        ("import time\ntime.sleep(600)", {}, "it has not begun in time"),
        (ECHO, {"command": ["./none"]}, "there is no file ./none"),
    ],
)
def test_what_is_wrong_is_told_at_the_first_time(
    tmp_path: Path, main: str, said: dict[str, Any], reason: str
) -> None:
    """Who waits for it does not wait for three starts."""
    folder = write(tmp_path / "a", main, **said)
    bounds = Bounds(start_seconds=0.5 if "sleep" in main else 30.0)
    with node_of({PROGRAM: folder}, tmp_path, bounds) as node:
        assert reason in warmed(node)
        assert node.running()[0].restarts <= 1


def test_what_a_stream_asks_is_answered_beside_a_warm_up(tmp_path: Path) -> None:
    """In whatever order they come; a program that waits to be asked in bulk, too."""
    folder = write(tmp_path / "a", ECHO, batch={"max": 3, "wait": "100ms"})
    told: queue.SimpleQueue[str] = queue.SimpleQueue()
    with node_of({PROGRAM: folder}, tmp_path) as node:
        assert node.ask(question(1))
        assert node.warm(PROGRAM, "so/s", told.put)
        assert node.ask(question(2))
        assert node.ask(question(3))
        found = fetched(node, 3)
        assert told.get(timeout=SECONDS) == ""

    assert list(found) == [b"q1", b"q2", b"q3"]


def test_who_is_forgotten_is_told_so(tmp_path: Path) -> None:
    """Whoever waits is not left waiting."""
    folder = write(tmp_path / "a", "import time\ntime.sleep(600)")
    told: queue.SimpleQueue[str] = queue.SimpleQueue()
    with node_of({PROGRAM: folder}, tmp_path) as node:
        assert node.warm(PROGRAM, "so/s", told.put)
        node.forget(PROGRAM)
        assert told.get(timeout=SECONDS) == "it is asked no more"


def test_more_than_there_is_room_for_is_not_begun(tmp_path: Path) -> None:
    """Of a tenant, as with questions."""
    with node_of({}, tmp_path, room=Room(1000)) as node:
        assert not node.warm(PROGRAM, "so/s", print)


def test_a_process_that_has_answered_is_not_asked_again(tmp_path: Path) -> None:
    """Neither behind its warm-up nor behind a stream's question: it is known to answer."""
    folder = write(tmp_path / "a", TOLD, **{"warm-up": EVENTS})
    with node_of({PROGRAM: folder}, tmp_path) as node:
        assert warmed(node) == ""
        answers(node, [question(1)])
        assert warmed(node) == ""
        answers(node, [question(2)])
        until(lambda: b" 1002 " in node.running()[0].printed)
        (running,) = node.running()

    assert running.printed.count(b"warm-up ") == len(EVENTS)
