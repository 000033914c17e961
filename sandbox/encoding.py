"""Calls to bytes and bytes to outcomes. Updates are passed through, never read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import orjson

from sandbox.program import (
    FAULT_KINDS,
    Binding,
    Call,
    ChannelCode,
    Computation,
    Fault,
    Outcome,
    Path,
    Program,
    Value,
)

LARGEST = 2**63 - 1


class Garbage(Exception):
    """A worker's answer does not fit the question."""


def encode_program(program: Program) -> bytes:
    """A program as JSON; program_of() knows the object."""
    try:
        return orjson.dumps(program)
    except TypeError:  # half a surrogate pair, which only the escaping encoder can write
        return json.dumps(asdict(program)).encode()


def program_of(raw: dict[str, Any]) -> Program:
    """A program from its parsed JSON, as the pool writes it."""
    return Program(
        **{
            **raw,
            "arguments": tuple(raw["arguments"]),
            "channels": tuple(ChannelCode(**each) for each in raw["channels"]),
            "bindings": tuple(
                Binding(each["name"], each["argument"], _path(each["path"]))
                for each in raw["bindings"]
            ),
        }
    )


def _path(raw: list[Any]) -> Path:
    """A path as it was before it became JSON."""
    return tuple(_path(each) if isinstance(each, list) else each for each in raw)


def encode_calls(calls: Sequence[Call], slots: Mapping[str, int]) -> bytes:
    """The calls as the runner's run() reads them."""
    return b"[" + b",".join([_encode(call, slots[call.program.id]) for call in calls]) + b"]"


def decode_ticks(line: bytes, calls: Sequence[Call]) -> list[int]:
    """The milliseconds of each call. Raises Garbage."""
    try:
        ticks = [max(0, int(each)) for each in line.split(b",")]
    except ValueError as error:
        raise Garbage("no milliseconds") from error
    if len(ticks) != len(calls):
        raise Garbage(f"{len(ticks)} times")
    return ticks


def decode_answer(answer: bytes, calls: Sequence[Call]) -> list[list[Outcome]]:
    """One outcome per step of each call. Raises Garbage."""
    lines = answer.split(b"\n")
    if len(lines) != sum(len(call.steps) for call in calls):
        raise Garbage(f"{len(lines)} lines")
    outcomes = [_outcome(line) for line in lines]
    if len(calls) == 1:
        return [outcomes]
    cut: list[list[Outcome]] = []
    at = 0
    for call in calls:
        cut.append(outcomes[at : at + len(call.steps)])
        at += len(call.steps)
    return cut


def _encode(call: Call, slot: int) -> bytes:
    steps = orjson.dumps(
        [
            (step.trigger, step.timestamp, step.floor, *step.inputs)
            if isinstance(step, Computation)
            else (step.update, step.timestamp)
            for step in call.steps
        ]
    )
    stamp = b"null" if call.previous_timestamp is None else b"%d" % call.previous_timestamp
    return b"[%d,%b,%b,[%b],%b]" % (
        slot,
        call.previous or b"null",
        stamp,
        b",".join(call.updates),
        steps,
    )


def _outcome(line: bytes) -> Outcome:
    first = line[:1]
    head, _, rest = line[1:].partition(b" ")
    if first == b"V":
        return _value(head, rest)
    if first == b"F":
        return _fault(head, rest)
    if line == b"N":
        return None
    raise Garbage("unknown line")


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _value(head: bytes, document: bytes) -> Value:
    """What a worker says may come from a hole in its engine: nothing is stored unseen."""
    if not head.removeprefix(b"-").isdigit() or abs(int(head)) > LARGEST:
        raise Garbage("no timestamp")
    try:
        orjson.loads(document)
    except orjson.JSONDecodeError:
        try:  # half a surrogate pair is JSON, too
            json.loads(document.decode(), parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            raise Garbage("not JSON") from error
    return Value(int(head), document)


def _fault(kind: bytes, message: bytes) -> Fault:
    name = kind.decode("ascii", "replace")
    if name not in FAULT_KINDS:
        raise Garbage("unknown kind of fault")
    try:
        text = orjson.loads(message)
    except orjson.JSONDecodeError:
        text = message.decode("utf-8", "replace")
    return Fault(name, str(text))
