"""Programs and calls to bytes. Updates are passed through, never read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import orjson

from sandbox.program import Binding, Call, ChannelCode, Computation, Path, Program, Step
from sandbox.text import well_formed

MAX_SAFE_INTEGER = 2**53 - 1
"""The last integer up to which JavaScript's numbers leave none out. Later timestamps, such as
nanoseconds, go to the runner as places in a sorted list."""


def encode_program(program: Program) -> bytes:
    """Write a program as JSON, which program_of() reads."""
    try:
        return orjson.dumps(program)
    except TypeError:  # half a surrogate pair, for which there is no UTF-8
        return well_formed(json.dumps(asdict(program), ensure_ascii=False)).encode()


def program_of(raw: dict[str, Any]) -> Program:
    """Read a program from its parsed JSON, as encode_program() writes it."""
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
    """Make a path of lists, as JSON has it, a path of tuples."""
    return tuple(_path(each) if isinstance(each, list) else each for each in raw)


def encode_calls(calls: Sequence[Call], slots: Mapping[str, int]) -> bytes:
    """Write the calls as the runner's run() reads them; `slots` has their programs' numbers."""
    return b"[" + b",".join([_encode(call, slots[call.program.id]) for call in calls]) + b"]"


def _encode(call: Call, slot: int) -> bytes:
    """Write a call: [slot, previous, its timestamp, updates, steps, texts of large timestamps]."""
    last = call.previous_timestamp
    times = b""
    steps = call.steps
    if max(last or 0, *map(_latest, steps), 0) > MAX_SAFE_INTEGER:
        ordered = sorted({last or 0, *(time for step in steps for time in _times(step))})
        places = {time: at for at, time in enumerate(ordered)}
        steps = tuple(_placed(step, places) for step in steps)
        last = None if last is None else places[last]
        times = b"," + orjson.dumps([str(each) for each in ordered])
    listed = orjson.dumps(
        [
            (step.trigger, step.timestamp, step.floor, *step.inputs)
            if isinstance(step, Computation)
            else (step.update, step.timestamp)
            for step in steps
        ]
    )
    return b"[%d,%b,%b,[%b],%b%b]" % (
        slot,
        call.previous or b"null",
        b"null" if last is None else b"%d" % last,
        b",".join(call.updates),
        listed,
        times,
    )


def _latest(step: Step) -> int:
    return step.floor if isinstance(step, Computation) else step.timestamp


def _times(step: Step) -> tuple[int, ...]:
    return (step.timestamp, step.floor) if isinstance(step, Computation) else (step.timestamp,)


def _placed(step: Step, places: Mapping[int, int]) -> Step:
    if isinstance(step, Computation):
        return step._replace(timestamp=places[step.timestamp], floor=places[step.floor])
    return step._replace(timestamp=places[step.timestamp])
