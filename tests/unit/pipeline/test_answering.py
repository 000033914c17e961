"""What programs answer is a record of the log, or is told as wrong, and then stops nobody."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from pipeline.state.answering import MAX_BYTES, MAX_OUTPUTS, Asked, answer_of
from sandbox.trees import Event, Last
from servioticy.domain.evaluators.operators import Answer, Ends, Entries, Nothing, Step
from servioticy.domain.evaluators.programs import (
    HEAD,
    MAX_EVENT_BYTES,
    MAX_OUTPUT_BYTES,
    MAX_WAITING,
    STATE,
    Head,
    Programs,
    entry,
    queue_of,
)
from servioticy.domain.model import Channel, StreamRef
from servioticy.domain.operator_code import OperatorCode
from servioticy.domain.program_code import ProgramCode
from servioticy.domain.records import AnswerRecord, read_record, write
from servioticy.ports.programs import MAX_STATE_BYTES, Program, ProgramOutput, Reply

CODE = OperatorCode(
    ProgramCode("p", 1),
    ("d0",),
    (Channel("n", "number"), Channel("t", "string"), Channel("a", "array[number]")),
)
AT = 1_000_000_000_000
"""Of the log, in ms; what the tests' updates count is no time."""


def asked(events: int = 1, state: bytes | None = None) -> Asked:
    return Asked(
        b"1", Program(1, "p", 1), StreamRef("so", "s"), AT, 0, 0, state, [10] * events, False
    )


def a_reply(outputs: Sequence[Any] = (), state: bytes | None = None, error: str = "") -> Reply:
    made = [
        ProgramOutput(n, at, c if isinstance(c, bytes) else json.dumps(c).encode())
        for n, at, c in outputs
    ]
    return Reply(b"1", made, state, error, 0.0)


class Stream:
    """One that a program computes, with what it keeps."""

    def __init__(self) -> None:
        self.kept: dict[tuple[int, bytes], Any] = {}
        self.last: int | None = None

    def step(self, argument: int | None, timestamp: int, document: bytes) -> Answer:
        entries = Entries(0, Nothing(self.kept))
        own = None if self.last is None else Last(0, self.last, b"{}")
        step = Step(CODE, AT, argument, Last(1, timestamp, document), None, "so/d0", [], own)
        found = Programs().step(step, entries)
        self.kept.update({(0, each.key): each for each in entries.changed})
        return found

    def update(self, timestamp: int = 10, value: Any = 1) -> Answer:
        body = {"channels": {"v": {"current-value": value}}, "lastUpdate": timestamp}
        return self.step(0, timestamp, json.dumps(body).encode())

    def answered(self, reply: Reply, to: Asked | None = None) -> Answer:
        record = answer_of(to or asked(), reply, AT)
        assert record is not None
        read = read_record(write(record))
        assert isinstance(read, AnswerRecord)
        (one,) = read.singly()
        return self.step(None, one.events[0].timestamp, write(one))

    @property
    def queue(self) -> Head:
        return queue_of(self.kept[0, HEAD].value)


WRONG: dict[str, tuple[int | None, Any]] = {
    "another type": (None, {"n": "one"}),
    "a truth for a number": (None, {"n": True}),
    "an object": (None, {"n": {"x": 1}}),
    "an array of texts": (None, {"a": ["x"]}),
    "NaN": (None, b'{"n":NaN}'),
    "infinite": (None, b'{"n":1e999}'),
    "no JSON": (None, b"\xff{"),
    "no object": (None, [1]),
    "no channel": (None, {}),
    "an unknown channel": (None, {"n": 1, "m": 1}),
    "half a surrogate pair": (None, b'{"t":"\\ud800"}'),
    "NUL": (None, {"t": "\0"}),
    "NUL in a name": (None, {"\0": 1}),
    "nested": (None, b'{"a":' + b"[" * 2000 + b"]" * 2000 + b"}"),
    "too large": (None, {"t": "x" * MAX_OUTPUT_BYTES}),
    "2^70": (2**70, {"n": 1}),
    "2^63": (2**63, {"n": 1}),
    "below zero": (-1, {"n": 1}),
    "in the past": (5, {"n": 1}),
    "of now": (9, {"n": 1}),
    "far ahead": (10 + 86_400_001, {"n": 1}),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_an_error_of_its_event(wrong: tuple[int | None, Any]) -> None:
    """And the event is answered: nothing comes of it again."""
    stream = Stream()
    stream.last = 9
    stream.update()
    found = stream.answered(a_reply([(0, *wrong)], b"state"))

    assert (found.outputs, found.kind) == ((), "error")
    assert found.message
    assert stream.queue.waiting == 0
    assert stream.kept[0, entry(0)].value is None
    assert stream.kept[0, STATE].value == b"state"


def test_one_wrong_output_is_an_error_of_all_of_the_event() -> None:
    stream = Stream()
    stream.update()
    found = stream.answered(a_reply([(0, 10, {"n": 1}), (0, 10, {"n": 2})]))
    assert (found.outputs, found.kind) == ((), "error")


def test_what_is_right_comes_out_in_order() -> None:
    stream = Stream()
    stream.update()
    found = stream.answered(a_reply([(0, None, {"n": 2**70}), (0, 11, {"t": "x", "a": [1]})]))
    assert [each.timestamp for each in found.outputs] == [10, 11]
    assert [json.loads(each.document)["channels"] for each in found.outputs] == [
        {"n": {"current-value": 2.0**70}},
        {"t": {"current-value": "x"}, "a": {"current-value": [1]}},
    ]


@pytest.mark.parametrize(
    "reply",
    [
        a_reply(error="it \0 broke \ud800"),
        a_reply(state=b"x" * (MAX_STATE_BYTES + 1)),
        a_reply([(0, None, {"t": "x" * MAX_BYTES})]),
        a_reply([(2, None, {"n": 1})]),
        a_reply([(-1, None, {"n": 1})]),
    ],
    ids=["error", "state", "large", "event", "below-zero"],
)
def test_what_is_wrong_as_a_whole_is_asked_of_fewer_events(reply: Reply) -> None:
    """Until it is of one alone, whose error it is; the state stays."""
    assert answer_of(asked(2), reply, AT) is None

    stream = Stream()
    stream.update()
    found = stream.answered(reply)

    assert (found.outputs, found.kind) == ((), "error")
    assert stream.queue.waiting == 0
    assert (0, STATE) not in stream.kept, "it had none"


def test_an_event_makes_so_many_outputs_at_most() -> None:
    for count, kind in ((MAX_OUTPUTS, "filtered"), (MAX_OUTPUTS + 1, "error")):
        stream = Stream()
        stream.update()
        found = stream.answered(a_reply([(0, 10 + n, {"n": n}) for n in range(count)]))
        assert found.kind == kind
        assert len(found.outputs) == (count if kind == "filtered" else 0)


def test_a_state_may_be_as_large_as_said() -> None:
    stream = Stream()
    stream.update()
    state = b"\0" * MAX_STATE_BYTES
    assert stream.answered(a_reply(state=state)).kind == "filtered"
    assert stream.kept[0, STATE].value == state


def test_an_update_that_is_too_large_is_an_error_and_does_not_wait() -> None:
    stream = Stream()
    room = MAX_EVENT_BYTES - len('{"v":""}')
    assert stream.update(value="x" * room).kind == "collected"
    with pytest.raises(Ends, match="60000 bytes"):
        stream.update(value="x" * (room + 1))
    assert stream.queue.waiting == 1


def test_so_many_wait_and_no_more() -> None:
    stream = Stream()
    for _ in range(MAX_WAITING):
        stream.update()
    with pytest.raises(Ends, match="10000 updates") as ends:
        stream.update()
    assert ends.value.kind == "unanswered"

    stream.answered(a_reply())
    assert stream.update().kind == "collected"


def test_so_many_bytes_wait_and_no_more() -> None:
    stream = Stream()
    with pytest.raises(Ends) as ends:
        for _ in range(1000):
            stream.update(value="x" * 50_000)
    assert ends.value.kind == "unanswered"
    assert 8_000_000 < stream.queue.size <= 8 * 1024 * 1024


@pytest.mark.parametrize(
    "other",
    [
        {"begun": AT - 1},
        {"first": 1},
        {"states": 1},
        {"program": Program(1, "p", 2)},
        {"program": Program(1, "q", 1)},
    ],
    ids=str,
)
def test_what_answers_something_else_does_nothing(other: dict[str, Any]) -> None:
    stream = Stream()
    stream.update()
    stream.update()
    before = dict(stream.kept)
    found = stream.answered(a_reply([(0, None, {"n": 1})], b"s"), asked()._replace(**other))
    assert (found.outputs, found.kind) == ((), "")
    assert stream.kept == before


def test_what_comes_twice_does_nothing() -> None:
    stream = Stream()
    stream.update()
    assert stream.answered(a_reply([(0, None, {"n": 1})], b"1")).outputs
    assert stream.answered(a_reply([(0, None, {"n": 1})], b"2")).kind == ""
    assert stream.kept[0, STATE].value == b"1"


def test_an_answer_to_nothing_is_none() -> None:
    assert Stream().answered(a_reply()).kind == ""


def test_what_an_answer_looks_at_is_known_beforehand() -> None:
    record = answer_of(asked(), a_reply(state=b"s"), AT)
    assert record is not None
    event = Event(1, 10, write(record))
    assert Programs().keys(CODE, None, event) == [HEAD, entry(0), STATE]
    assert Programs().keys(CODE, 0, Event(1, 10, b"{}")) == [HEAD]


def test_the_name_of_a_stream_is_bounded_and_has_to_be_one_of_its_own() -> None:
    """Else it is the error of its event alone."""
    for name in ("nobody", "x" * 201, "a\0"):
        stream = Stream()
        stream.update()
        reply = Reply(b"1", [ProgramOutput(0, None, b'{"n":1}', name)], None, "", 0.0)
        found = stream.answered(reply)
        assert (found.outputs, found.kind) == ((), "error")
        assert "stream" in found.message
        assert stream.queue.waiting == 0
