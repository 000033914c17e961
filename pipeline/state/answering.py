"""What a program has answered, as a record of the log that whoever reads it can take in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import orjson

from servioticy.domain.documents.updates import MAX_TIMESTAMP
from servioticy.domain.model import StreamRef
from servioticy.domain.records import AnsweredEvent, AnsweredOutput, AnswerRecord
from servioticy.ports.programs import MAX_STATE_BYTES, Program, ProgramOutput, Reply

MAX_BYTES = 1_200_000
"""Of all that one answer makes: it is one record of the log, with the state a third longer."""

MAX_OUTPUTS = 100
"""Of one event: so many updates come out at one place of the log."""

MAX_STREAM = 200
MAX_ERROR = 500
"""Characters."""


class Asked(NamedTuple):
    """What a program was asked."""

    id: bytes
    program: Program
    stream: StreamRef
    begun: int
    """The queue, the number of its first event that was asked about, and of the state."""
    first: int
    states: int
    state: bytes | None
    timestamps: Sequence[int]
    """Of each event."""
    leaves_state: bool = False
    """Whether there is a state, and the program was to begin with none."""
    after: bytes = b""
    """The id of the question that it is asked behind, from the state that this one leaves; empty:
    none."""
    traces: Sequence[str] = ()
    """Of each event the trace context; empty: none has one."""


class _Wrong(Exception):
    """The answer as a whole is none."""


def answer_of(asked: Asked, reply: Reply, at: int) -> AnswerRecord | None:
    """Return the record, at this time of the log.

    None where there is something wrong with the answer to several events: each may be asked
    about alone, so that the others are answered.
    """
    try:
        events = _events(asked, reply)
    except _Wrong as error:
        if len(asked.timestamps) > 1:
            return None
        wrong = str(error).replace("\0", "")[:MAX_ERROR]
        wrong = wrong.encode("utf-8", "replace").decode()
        events = [AnsweredEvent(asked.first, asked.timestamps[0], (), wrong)]
        reply = reply._replace(state=asked.state)
    keeps = reply.state == asked.state and not asked.leaves_state
    return _record(asked, at, events, reply.state, keeps=keeps)


def refusal(asked: Asked, why: str, at: int) -> AnswerRecord:
    """Return the record that answers each of these events with an error."""
    events = [
        AnsweredEvent(number, timestamp, (), why)
        for number, timestamp in enumerate(asked.timestamps, asked.first)
    ]
    return _record(asked, at, events, None, keeps=True)


def _record(
    asked: Asked, at: int, events: Sequence[AnsweredEvent], state: bytes | None, *, keeps: bool
) -> AnswerRecord:
    return AnswerRecord(
        *asked.stream,
        at,
        asked.program.name,
        asked.program.version,
        asked.begun,
        asked.states,
        tuple(events),
        None if keeps else state,
        keeps,
        question=asked.id.decode(),
        after=asked.after.decode(),
        traces=tuple(asked.traces),
    )


def _events(asked: Asked, reply: Reply) -> list[AnsweredEvent]:
    """What was made of each event. Raises _Wrong."""
    if reply.error:
        raise _Wrong(reply.error)
    if len(reply.state or b"") > MAX_STATE_BYTES:
        raise _Wrong(f"a program keeps {MAX_STATE_BYTES} bytes at most")
    if sum([len(each.channels) for each in reply.outputs]) > MAX_BYTES:
        raise _Wrong(f"the outputs of an answer have {MAX_BYTES} bytes at most")
    made: list[list[ProgramOutput]] = [[] for _ in asked.timestamps]
    for each in reply.outputs:
        if not 0 <= each.event < len(made):
            raise _Wrong("an output is of an event that was not asked about")
        made[each.event].append(each)
    return [
        _event(asked.first + number, timestamp, outputs)
        for number, (timestamp, outputs) in enumerate(zip(asked.timestamps, made, strict=True))
    ]


def _event(number: int, timestamp: int, outputs: Sequence[ProgramOutput]) -> AnsweredEvent:
    wrong = _wrong(outputs)
    if wrong:
        return AnsweredEvent(number, timestamp, (), wrong)
    made = [
        AnsweredOutput(each.timestamp, msgspec.Raw(each.channels), each.stream) for each in outputs
    ]
    return AnsweredEvent(number, timestamp, tuple(made))


def _wrong(outputs: Sequence[ProgramOutput]) -> str:
    """What of an event's outputs no record of the log can have; "": nothing."""
    if len(outputs) > MAX_OUTPUTS:
        return f"a program makes {MAX_OUTPUTS} updates of one at most"
    for each in outputs:
        if each.timestamp is not None and not 0 <= each.timestamp <= MAX_TIMESTAMP:
            return "the timestamp of an output is an integer from 0 to 2^63 - 1"
        if len(each.stream) > MAX_STREAM or not each.stream.isprintable():
            return f"the stream of an output is a name of {MAX_STREAM} characters at most"
        try:
            if not isinstance(orjson.loads(each.channels), dict):
                return "the channels of an output are an object of values by their names"
        except orjson.JSONDecodeError as error:
            return f"the channels of an output are no JSON: {error}"
    return ""
