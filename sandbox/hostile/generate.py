"""Hostile programs without end: pieces of the fixed list's kinds put together by chance.

The same seed and number give the same program on every machine.
"""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

from sandbox.hostile.corpus import Hostile

_GRAMMAR = Path(__file__).with_name("grammar.txt")
_DEEP = 4


def generated(seed: int, number: int) -> Hostile:
    """Program `number` of `seed`: a third in the paper's language, a third that the allow-list
    lets pass, a third that it mostly does not."""
    chance = random.Random(f"{seed} {number}")  # noqa: S311  not for secrets
    name = f"generated {seed} {number}"
    if number % 3 == 0:
        return Hostile(name, "expression", _grown(chance, "GENTLE", 0).replace("$x", "$0"))
    statements = "GENTLY" if number % 3 == 1 else "STATEMENT"
    text = "".join(_grown(chance, statements, 0) for _ in range(chance.randint(1, 4)))
    return Hostile(name, "body", "var x=A,y='ab';" + text.replace("$x", "x") + "return 1")


def _grown(chance: random.Random, text: str, depth: int) -> str:
    """The text with every word of the grammar replaced; what is too deep becomes small."""
    while True:
        words = [(text.find(word), word) for word in (*_grammar(), "ARGUMENTS", "BODY")]
        at, word = min(((at, word) for at, word in words if at >= 0), default=(-1, ""))
        if at < 0:
            return text
        depth += 1
        if word == "BODY":
            new = "STATEMENT" if depth < _DEEP else "x=y"
        elif word == "ARGUMENTS":
            new = ",".join(["VALUE"] * chance.randint(0, 2))
        elif depth > 3 * _DEEP and word in ("VALUE", "GENTLE"):
            new = chance.choice(("$x", "1", "SIZE"))
        else:
            new = chance.choice(_grammar()[word])
        text = text[:at] + new + text[at + len(word) :]


@cache
def _grammar() -> dict[str, list[str]]:
    choices: dict[str, list[str]] = {}
    for line in _GRAMMAR.read_text(encoding="utf-8").splitlines():
        if line.startswith("= "):
            choices[line[2:]] = alternatives = []
        elif line and not line.startswith("# "):
            alternatives.append(line)
    return choices
