"""The operator of programs: what is to be asked of them waits, and their answers are taken in.

A program answers when it answers (decision 0070). An update that wakes the composite is stored as
an entry behind others that wait; whoever computes the stream asks the program once that is so
(`pipeline/state/asking.py`), and the answer comes as a record of the log: at its place outputs and
state are stored, and what it answers waits no more. So nothing here asks anybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import msgspec
import orjson

from sandbox.trees import Event
from servioticy.domain.documents.errors import BadDocument
from servioticy.domain.documents.json_texts import refuse_nul
from servioticy.domain.documents.updates import MAX_TIMESTAMP
from servioticy.domain.evaluators.operators import (
    MAX_VALUE_BYTES,
    Answer,
    Ends,
    Entries,
    Output,
    Step,
    to_ask_since,
)
from servioticy.domain.operator_code import OperatorCode
from servioticy.domain.program_code import ProgramCode, SideCode
from servioticy.domain.records import AnsweredEvent, AnswerRecord, read_answer
from servioticy.domain.scripts import stream_of
from servioticy.domain.time_units import PER_SECOND, unit_of
from servioticy.domain.values import fits
from servioticy.domain.verdicts import ERROR, FILTERED, STALE, UNANSWERED

HEAD = b"program"
"""The key of what is known of all that waits."""

STATE = b"program.state"
"""That of what the program keeps."""

MAX_WAITING = 10_000
MAX_WAITING_BYTES = 8 * 1024 * 1024
"""Of updates of one composite that wait for its program."""

MAX_EVENT_BYTES = 60_000
"""Of the channels of an update that a program is asked about."""

MAX_OUTPUT_BYTES = 262_144
"""Of an update that a program makes."""

MAX_AHEAD_SECONDS = 86_400
"""How far an output's own timestamp may be ahead of what woke the composite, and of the log."""

NOTHING = Answer(kind="")
"""Nobody is told: this answer is not, or no more, to a question that is open."""


class Waiting(msgspec.Struct, array_like=True):
    """An update that waits to be answered."""

    timestamp: int
    stream: str
    input: str
    """Its name in the document."""
    channels: bytes
    """JSON: their values by their names."""
    trace: str = ""
    """The trace context that it came with; empty: none."""


class Head(msgspec.Struct, array_like=True):
    """What waits of one composite, and whose state it has."""

    begun: int
    """The log's time when its first update ever came: what is erased begins another one."""
    first: int = 0
    """The number of the oldest that waits."""
    next: int = 0
    """That of the one that will come next."""
    size: int = 0
    """Bytes of the entries that wait."""
    states: int = 0
    """How many answers have left a state."""
    program: str = ""
    version: int = 0
    """Who has left the last one."""
    answered: str = ""
    """The question whose answer has been taken in last; empty: what it leaves is not kept."""

    @property
    def waiting(self) -> int:
        """How many updates wait."""
        return self.next - self.first


_queues = msgspec.msgpack.Decoder(Head)
_waiting = msgspec.msgpack.Decoder(Waiting)
_encode = msgspec.msgpack.Encoder().encode


def queue_of(value: bytes) -> Head:
    """Return what an entry under HEAD says."""
    return _queues.decode(value)


def waiting_of(value: bytes) -> Waiting:
    """Return what an entry of an update that waits says."""
    return _waiting.decode(value)


def entry(number: int) -> bytes:
    """Return the key of the update that waits under this number."""
    return b"program.%016x" % number


class Programs:
    """The operator."""

    takes_answers = True

    def keys(self, code: OperatorCode, argument: int | None, event: Event) -> Sequence[bytes]:
        """What a computation looks at."""
        if isinstance(code.operator, SideCode):
            return ()
        if argument is not None:
            return [HEAD]
        answer = read_answer(event.document)
        if answer.forgets:
            return [HEAD, STATE]
        looked_at = [HEAD, *[entry(each.number) for each in answer.events]]
        return [*looked_at, STATE] if answer.ends else looked_at

    def step(self, step: Step, entries: Entries) -> Answer:
        """Let an update wait, or take in the answer to one.

        What wakes a stream whose updates another one's program makes does nothing.
        """
        if isinstance(step.code.operator, SideCode):
            return NOTHING
        value = entries.get(HEAD)
        queue = None if value is None else queue_of(value)
        if step.argument is None:
            return NOTHING if queue is None else _taken_in(step, entries, queue)
        return _let_wait(step, entries, queue or Head(step.at))


def _let_wait(step: Step, entries: Entries, queue: Head) -> Answer:
    """Put an update behind those that wait. Raises Ends where there is no room for it."""
    channels = _channels(step.trigger.document or b"{}")
    if len(channels) > MAX_EVENT_BYTES:
        reason = f"a program is asked about {MAX_EVENT_BYTES} bytes of channels at most"
        raise Ends(ERROR, reason)
    name = step.code.arguments[cast(int, step.argument)]
    value = _encode(Waiting(step.trigger.timestamp, step.source, name, channels, step.trace))
    if queue.waiting >= MAX_WAITING or queue.size + len(value) > MAX_WAITING_BYTES:
        reason = f"{queue.waiting} updates, {queue.size} bytes, wait for its program"
        raise Ends(UNANSWERED, reason)
    entries.add(entry(queue.next), value)
    queue.next += 1
    queue.size += len(value)
    since = entries.due(HEAD) if queue.waiting > 1 else None
    entries.put(HEAD, _encode(queue), to_ask_since(step.at) if since is None else since)
    return Answer()


def _channels(document: bytes) -> bytes:
    """The values of an update's channels, by their names."""
    content = orjson.loads(document).get("channels", {})
    return orjson.dumps({name: each.get("current-value") for name, each in content.items()})


def _taken_in(step: Step, entries: Entries, queue: Head) -> Answer:
    """What comes of an answer, if it is one to the oldest that waits, of the program in force."""
    answer, code = read_answer(step.trigger.document or b""), cast(ProgramCode, step.code.operator)
    if answer.forgets:
        return _forget(entries, queue)
    (event,) = answer.events
    asked = answer.begun, event.number, answer.states, answer.program, answer.version
    if asked != (queue.begun, queue.first, queue.states, code.name, code.version):
        return NOTHING
    if answer.after and answer.after != queue.answered:  # of another state than is kept
        return NOTHING
    key = entry(event.number)
    queue.size -= len(entries.get(key) or b"")
    queue.first += 1
    entries.drop(key)
    wrong = _keep_state(answer, entries, queue) if answer.ends else ""
    entries.put(HEAD, _encode(queue), to_ask_since(step.at) if queue.waiting else None)
    return Answer(kind=ERROR, message=wrong) if wrong else _made(step, event)


def _forget(entries: Entries, queue: Head) -> Answer:
    """Keep nothing from here on, and take in no answer that goes on with what was kept."""
    queue.states += 1
    queue.answered = ""
    entries.drop(STATE)
    entries.put(HEAD, _encode(queue), entries.due(HEAD))
    return NOTHING


def _keep_state(answer: AnswerRecord, entries: Entries, queue: Head) -> str:
    """Keep what the program does from here on; or say what is wrong with that."""
    queue.states += 1
    queue.answered = ""
    if len(answer.state or b"") > MAX_VALUE_BYTES:
        return f"a program keeps {MAX_VALUE_BYTES} bytes at most"
    queue.program, queue.version = answer.program, answer.version
    queue.answered = answer.question
    if answer.keeps:
        return ""
    if answer.state is None:
        entries.drop(STATE)
    else:
        entries.put(STATE, answer.state)
    return ""


def _made(step: Step, event: AnsweredEvent) -> Answer:
    """The outputs; or how it ends where there are none, or one of them is wrong.

    What is taken in is so in either case: nothing is raised here.
    """
    if event.error:
        return Answer(kind=ERROR, message=event.error)
    codes = [step.code, *[each.code for each in step.sides]]
    types = [{each.name: each.type for each in code.channels} for code in codes]
    lasts = [last and last.timestamp for last in (step.own, *[each.own for each in step.sides])]
    streams = {"": 0, stream_of(step.name).stream: 0}
    for number, each in enumerate(step.sides, 1):
        streams[cast(SideCode, each.code.operator).name] = number
    made: list[Output] = []
    for output in event.outputs:
        given = output.timestamp
        timestamp = step.trigger.timestamp if given is None else given
        side = streams.get(output.stream)
        if side is None:
            reason = f"the program makes no updates of a stream {output.stream[:40]!r} here"
            return Answer(kind=ERROR, message=reason)
        last = lasts[side]
        document = _document(bytes(output.channels), types[side], timestamp)
        if isinstance(document, str):
            return Answer(kind=ERROR, message=document)
        if given is not None and (wrong := _too_far(step, given)):
            return Answer(kind=ERROR, message=wrong)
        if last is not None and timestamp <= last:
            reason = f"output {timestamp} is not newer than output {last}"
            return Answer(kind=STALE if given is None else ERROR, message=reason)
        lasts[side] = timestamp
        made.append(Output(timestamp, document, side))
    return Answer(made, FILTERED)


def _too_far(step: Step, timestamp: int) -> str:
    """Why a timestamp that the program has chosen is none, if so."""
    if not 0 <= timestamp <= MAX_TIMESTAMP:
        return "the timestamp of an output is an integer from 0 to 2^63 - 1"
    newest, unit = step.trigger.timestamp, unit_of(step.trigger.timestamp, step.at / 1000)
    per_second = PER_SECOND[unit or "milliseconds"]
    if unit is not None:
        newest = max(newest, step.at * per_second // 1000)
    if timestamp <= newest + MAX_AHEAD_SECONDS * per_second:
        return ""
    return f"output {timestamp} is more than a day ahead of {newest}"


def _document(channels: bytes, types: dict[str, str], timestamp: int) -> bytes | str:
    """An output as it is stored; or what is wrong with its channels."""
    try:
        values = orjson.loads(channels)
    except orjson.JSONDecodeError as error:
        return f"the channels of an output are no JSON: {error}"
    if not isinstance(values, dict) or not values:
        return "the channels of an output are an object of values by their names"
    for name, value in values.items():
        if name not in types:
            return f"the stream has no channel {name[:40]}"
        if not fits(value, types[name]):
            return f"channel {name[:40]} is declared {types[name]}: its value is of another type"
    content: dict[str, Any] = {name: {"current-value": value} for name, value in values.items()}
    document = orjson.dumps({"channels": content, "lastUpdate": timestamp})
    if len(document) > MAX_OUTPUT_BYTES:
        return f"an output has {MAX_OUTPUT_BYTES} bytes at most"
    try:
        refuse_nul(content, document)
    except BadDocument:
        return "an output has a NUL in a text"
    return document
