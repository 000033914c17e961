"""The fixed list, as programs of the sandbox."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sandbox.program import Binding, ChannelCode, Program

LIST = Path(__file__).with_name("programs.txt")


@dataclass(frozen=True, slots=True)
class Hostile:
    """One line of the list: which it is, "body", "expression" or "text", and its text."""

    name: str
    kind: str
    text: str


def fixed() -> list[Hostile]:
    """Every line that is not a comment."""
    lines = LIST.read_text(encoding="utf-8").splitlines()
    return [
        Hostile(*(each.replace("\\u2028", "\u2028") + "  ").split(" ", 2))
        for each in lines
        if not each.startswith("#")
    ]


def program(hostile: Hostile, type_: str = "number") -> Program:
    """The program of one input, A (in expressions its value, $0)."""
    text = hostile.text.strip(" ")
    code = f"function(A){{{text}}}" if hostile.kind == "body" else text
    name = f"{hostile.name} {type_} {code}"
    channels = (ChannelCode("t", code, type_),)
    if hostile.kind == "expression":
        path = ("channels", "t", "current-value")
        return Program(name, "expression", ("A",), channels, bindings=(Binding("$0", 0, path),))
    return Program(name, "function", ("A",), channels)
