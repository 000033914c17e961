"""A procedure as a program of the sandbox, and what came of an atom there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec
import orjson

from sandbox import argument_names
from sandbox.program import ATOMS, ChannelCode, Program
from sandbox.trees import ROOT, Bounds, Call, Event, Grown, Node, Wake, Wiring
from servioticy.domain.scripts import identified
from servioticy.domain.wirings import wiring
from servioticy.domain.workflows.model import MAX_ATOM_BYTES, MAX_MADE

PROCEDURE = "procedure"
"""What messages of the sandbox call the code."""
MAX_WIRINGS = 1_024


class Made(NamedTuple):
    """What a procedure made of an atom."""

    atoms: Sequence[bytes] = ()
    """As JSON."""
    kind: str = ""
    """Why there are none where the procedure failed: a kind of fault, else empty."""
    reason: str = ""


class _Value(msgspec.Struct, rename={"value": "current-value"}):
    value: msgspec.Raw


class _Output(msgspec.Struct):
    channels: Mapping[str, _Value]


_outputs = msgspec.json.Decoder(_Output)
_lists = msgspec.json.Decoder(list[msgspec.Raw])


def program_of(code: str) -> Program:
    """Return the program of a procedure: a function of one atom."""
    arguments = argument_names(code)
    content = Program("", "function", arguments, (ChannelCode(PROCEDURE, code, ATOMS),))
    return identified(content, PROCEDURE)


def code_name(workflow: str, version: int, procedure: str) -> str:
    """Return what a procedure's code is called in accounts and suspensions.

    No other has the same: whoever ends processes is to be suspended alone.
    """
    return f"{workflow}/{procedure}@{version}"


def call_of(name: str, code: str, atom: bytes, entered_ms: int) -> Call:
    """Return the question to an evaluator: what is made of this atom by code of that name.

    The time that code finds is that at which the atom came into the workflow: however often it is
    tried, the same is made of it.
    """
    document = b'{"windows":[{"value":%b}],"lastUpdate":%d}' % (atom, entered_ms)
    event = Event(1, entered_ms, document, ROOT, 0)
    return Call(_wiring(code), (name, ""), (), [[event]], Bounds(1, 1))


def made_of(grown: Grown) -> Made:
    """Read the answer."""
    if not grown.made or not grown.made[0]:
        if not grown.ended:
            return Made(kind="error", reason="the sandbox has no answer")
        ended = grown.ended[-1]
        return Made(kind=ended.kind, reason=ended.message or ended.kind)
    (value,) = _outputs.decode(grown.made[0][0].document).channels.values()
    text = bytes(value.value)
    if text == b"null":
        return Made()
    atoms = [bytes(each) for each in _lists.decode(text)] if text.startswith(b"[") else [text]
    if len(atoms) > MAX_MADE:
        return Made(kind="error", reason=f"more than {MAX_MADE} atoms are made of one")
    for each in atoms:
        if fault := fault_of(each):
            return Made(kind="error", reason=fault)
    return Made(atoms)


def fault_of(atom: bytes) -> str:
    """Return what is wrong with an atom as JSON; empty: nothing."""
    if not atom.startswith(b"{"):
        return "an atom is a JSON object"
    if len(atom) > MAX_ATOM_BYTES:
        return f"an atom has at most {MAX_ATOM_BYTES} bytes"
    if b"\\u0000" in atom and _has_nul(orjson.loads(atom)):
        return "an atom has a NUL in it"
    return ""


def _has_nul(value: object) -> bool:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str) and "\0" in each:
            return True
        if isinstance(each, dict):
            waiting += [*each, *each.values()]
        elif isinstance(each, list):
            waiting += each
    return False


@lru_cache(MAX_WIRINGS)
def _wiring(code: str) -> Wiring:
    """The procedure as a composite whose only input comes with what wakes it."""
    node = Node(code=program_of(code), inputs=((1,),), windowed=True)
    return wiring((node, Node((Wake(0, 0, 0),))))
