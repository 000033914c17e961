"""What crosses the socket between the platform and a program: frames of questions and replies.

A frame is its length in four bytes, the largest first, and so many bytes of JSON or MessagePack:

    the program, once      {"ready": true}
    the platform           {"questions": [{"id", "composite", "state", "events": [EVENT, ...]}]}
    the program            {"replies": [{"id", "outputs": [OUTPUT, ...], "state"}, or
                                        {"id", "error"}]}
    EVENT                  {"stream", "timestamp", "channels", "version", "correlation"}
    OUTPUT                 {"event", "channels"}, and "timestamp" if it is not the event's, and
                           "stream" if it is of another one than the composite

All questions of a frame are answered, in frames of one or several replies, before the next frame
comes. What a program sends is bounded before it is parsed, and everything of it is looked at.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

import msgspec

from operators.errors import Misbehaved
from servioticy.ports.programs import (
    MAX_OUTPUTS,
    MAX_REPLY_BYTES,
    MAX_STATE_BYTES,
    ProgramOutput,
    Question,
    Reply,
)

HEAD = struct.Struct(">I")
MAX_FRAME_BYTES = MAX_REPLY_BYTES + 1024 * 1024
"""Of what a program sends."""
MAX_ERROR = 500
MAX_TIMESTAMP = 2**63 - 1


class _Output(msgspec.Struct, forbid_unknown_fields=True):
    event: int
    channels: dict[str, Any]
    timestamp: int | None = None
    stream: str = ""


class _Reply(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    outputs: list[_Output] = []
    state: Any = msgspec.UNSET
    error: str = ""


class _Said(msgspec.Struct, forbid_unknown_fields=True):
    ready: bool = False
    replies: list[_Reply] = []


class Spelling:
    """JSON or MessagePack."""

    def __init__(self, message: str) -> None:
        """`message` as in the manifest."""
        self._packed = message == "msgpack"
        self._decoder: Any = (
            msgspec.msgpack.Decoder(_Said) if self._packed else msgspec.json.Decoder(_Said)
        )

    def frame(self, questions: Sequence[tuple[str, Question]]) -> bytes:
        """Return the frame that asks these, each by the id that crosses."""
        body = b'{"questions":[' + b",".join([_asked(*each) for each in questions]) + b"]}"
        if self._packed:
            body = msgspec.msgpack.encode(msgspec.json.decode(body))
        return HEAD.pack(len(body)) + body

    def said(self, body: bytes) -> _Said:
        """Parse a frame of a program. Raises Misbehaved."""
        try:
            said: _Said = self._decoder.decode(body)
        except (msgspec.DecodeError, msgspec.ValidationError, RecursionError) as error:
            raise Misbehaved(f"it sent what is no frame: {error}") from error
        except UnicodeDecodeError as error:
            raise Misbehaved("it sent text that is not UTF-8") from error
        return said


def _asked(name: str, question: Question) -> bytes:
    composite = msgspec.json.encode(question.composite)
    state = b"null" if question.state is None else question.state
    head = b'{"id":"%b","composite":%b,"state":%b,"events":[' % (name.encode(), composite, state)
    return head + b",".join(question.events) + b"]}"


class Reader:
    """Cuts what comes into frames; of one that has begun only so much is kept as it may have."""

    def __init__(self, most: int = MAX_FRAME_BYTES) -> None:
        self._most = most
        self._come = bytearray()

    def feed(self, content: bytes) -> Iterator[bytes]:
        """Yield the bodies of frames that are whole now. Raises Misbehaved where one is too long.

        To be gone through to its end before more is fed.
        """
        self._come += content
        while len(self._come) >= HEAD.size:
            (length,) = HEAD.unpack_from(self._come)
            if length > self._most:
                raise Misbehaved(f"it sent a frame of {length} bytes, {self._most} at most")
            end = HEAD.size + length
            if len(self._come) < end:
                return
            body = bytes(memoryview(self._come)[HEAD.size : end])
            del self._come[:end]
            yield body


def replies(said: _Said, open_ones: Mapping[str, Question]) -> list[tuple[str, Reply]]:
    """What a program has answered, by the ids that crossed. Raises Misbehaved.

    An answer that breaks a rule of its own question alone is that question's error; one to what
    was not asked ends the program.
    """
    found = []
    seen = set()
    if len(said.replies) > len(open_ones):
        raise Misbehaved("it answered more than was asked")
    for each in said.replies:
        question = open_ones.get(each.id)
        if question is None or each.id in seen:
            raise Misbehaved("it answered what was not asked, or twice")
        seen.add(each.id)
        found.append((each.id, _reply(question, each)))
    return found


class _Wrong(Exception):
    """A reply breaks a rule."""


def failed(question: Question, error: str) -> Reply:
    """Return a reply that says what is wrong, and changes nothing."""
    return Reply(question.id, (), question.state, _one_line(error), 0.0)


def _reply(question: Question, said: _Reply) -> Reply:
    if said.error:
        return failed(question, said.error)
    try:
        outputs = _outputs(question, said.outputs)
        state = question.state if said.state is msgspec.UNSET else _state(said.state)
    except _Wrong as error:
        return failed(question, str(error))
    return Reply(question.id, outputs, state, "", 0.0)


def _outputs(question: Question, said: Sequence[_Output]) -> list[ProgramOutput]:
    if len(said) > MAX_OUTPUTS:
        _wrong(f"{len(said)} outputs, {MAX_OUTPUTS} at most")
    outputs: list[ProgramOutput] = []
    size = least = 0
    for number, each in enumerate(said):
        if not least <= each.event < len(question.events):
            _wrong(f"output {number}: event {each.event}: events ascend, and were asked")
        least = each.event
        if each.timestamp is not None and not 0 <= each.timestamp <= MAX_TIMESTAMP:
            _wrong(f"output {number}: timestamp {each.timestamp} is none")
        channels = _json(each.channels, f"output {number}: channels")
        size += len(channels)
        if size > MAX_REPLY_BYTES:
            _wrong(f"outputs of more than {MAX_REPLY_BYTES} bytes")
        size += len(each.stream)
        outputs.append(ProgramOutput(each.event, each.timestamp, channels, each.stream))
    return outputs


def _state(value: Any) -> bytes | None:
    if value is None:
        return None
    state = _json(value, "state")
    if len(state) > MAX_STATE_BYTES:
        _wrong(f"a state of {len(state)} bytes, {MAX_STATE_BYTES} at most")
    try:  # the next version may spell otherwise than this one
        msgspec.msgpack.encode(msgspec.json.decode(state))
    except (msgspec.MsgspecError, OverflowError, RecursionError) as error:
        raise _Wrong(f"state: {error}") from error
    return state


def _json(value: Any, what: str) -> bytes:
    """Compact JSON; of what MessagePack has beside, bytes and dates become texts."""
    try:
        return msgspec.json.encode(value, enc_hook=_no_json)
    except (TypeError, ValueError, OverflowError, RecursionError, UnicodeError) as error:
        raise _Wrong(f"{what}: {error}") from error


def _no_json(value: Any) -> NoReturn:
    raise TypeError(f"{type(value).__name__} is no JSON")


def _wrong(message: str) -> NoReturn:
    raise _Wrong(message)


def _one_line(error: str) -> str:
    return "".join(c if c.isprintable() else " " for c in error[:MAX_ERROR]) or "it failed"
