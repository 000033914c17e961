"""Code beside windows that makes one value: asked of the sandbox as a composite of its own."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from sandbox.program import Program
from sandbox.trees import ROOT, Bounds, Call, Event, Grown, Node, Wake, Wiring
from servioticy.domain.wirings import wiring

MAX_PROGRAMS = 1024


class _Value(msgspec.Struct, rename={"value": "current-value"}):
    value: msgspec.Raw


class _Made(msgspec.Struct):
    channels: dict[str, _Value]


_made = msgspec.json.Decoder(_Made)


def one_value(program: Program, name: str, timestamp: int, document: bytes) -> Call:
    """What is asked: the program of that name, of windows as the document brings them."""
    event = Event(1, timestamp, document, ROOT, 0)
    return Call(_wiring(program), (name, ""), (), [[event]], Bounds(1, 1))


def value_of(grown: Grown) -> bytes | None:
    """What it has made, as JSON; None: nothing."""
    if not grown.made[0]:
        return None
    (value,) = _made.decode(grown.made[0][0].document).channels.values()
    return bytes(value.value)


def how_it_ended(grown: Grown) -> tuple[str, str]:
    """The kind of verdict, and why, where it has made nothing."""
    (ended,) = grown.ended
    return ended.kind, ended.message


@lru_cache(MAX_PROGRAMS)
def _wiring(program: Program) -> Wiring:
    """A composite whose inputs all come with what wakes it."""
    inputs = tuple([(1,) for _ in program.arguments])
    return wiring((Node(code=program, inputs=inputs, windowed=True), Node((Wake(0, 0, 0),))))
