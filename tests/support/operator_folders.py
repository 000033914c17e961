"""Operators for tests: folders, the programs in them, and questions to them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import operators
from operators import manifest
from operators.attending import Bounds
from operators.errors import NotAnOperator
from operators.instance import Place
from operators.layers import lacking, layers
from operators.links import Links, Pairs
from operators.manifest import Described
from operators.node import Node
from operators.room import Room
from servioticy.ports.programs import Program, Question, Reply

ROOM = Path(operators.__path__[0])
SECONDS = 90.0
"""In which whatever is waited for has to come, on however busy a machine."""


def write(folder: Path, main: str, **said: Any) -> Path:
    """Write an operator in Python, with the kit; `said` goes into its manifest."""
    folder.mkdir(parents=True)
    usual = {"name": "tried", "language": "python", "command": ["python3", "main.py"]}
    (folder / manifest.FILE).write_text(json.dumps({**usual, **said}))
    (folder / "main.py").write_text(main)
    kit = ROOM / "kits/python/servioticy_operator.py"
    (folder / kit.name).write_text(kit.read_text())
    return folder


class Folders:
    """Programs that lie in folders: the twin of the shelf."""

    def __init__(self, folders: Mapping[Program, Path]) -> None:
        self.folders = dict(folders)

    def folder(self, program: Program) -> tuple[Described, Path]:
        """Return the folder."""
        if program not in self.folders:
            raise NotAnOperator(f"there is no operator {program.name}")
        folder = self.folders[program]
        return manifest.read((folder / manifest.FILE).read_bytes()), folder


@contextmanager
def node_of(
    folders: Mapping[Program, Path],
    base: Path,
    bounds: Bounds | None = None,
    strangers: bool = False,
    room: Room | None = None,
    links: Links | None = None,
) -> Iterator[Node]:
    """Run a node with these programs."""
    root = base / "root"
    root.mkdir(exist_ok=True)
    node = Node(Folders(folders), Place(root, strangers, links or Pairs()), bounds, room=room)
    try:
        yield node
    finally:
        node.close()


PROGRAM = Program(1, "tried", 1)


def question(
    number: int,
    program: Program = PROGRAM,
    state: bytes | None = None,
    composite: str = "so/s",
    values: Sequence[float] | None = None,
) -> Question:
    """Return a question with an event for each value; one with its number if there are none."""
    events = [
        json.dumps(
            {
                "stream": "a",
                "timestamp": 1000 + number,
                "channels": {"value": value},
                "version": 1,
                "correlation": f"{number}",
            },
            separators=(",", ":"),
        ).encode()
        for value in ([number] if values is None else values)
    ]
    return Question(b"q%d" % number, program, composite, state, events)


def answers(node: Node, questions: Sequence[Question]) -> dict[bytes, Reply]:
    """Ask these, and wait for all replies."""
    for each in questions:
        assert node.ask(each)
    return fetched(node, len(questions))


def fetched(node: Node, count: int) -> dict[bytes, Reply]:
    """Wait for so many replies; in the order in which they came."""
    found: dict[bytes, Reply] = {}
    until = time.monotonic() + SECONDS
    while len(found) < count and time.monotonic() < until:
        for reply in node.replies(1.0):
            assert reply.id not in found
            found[reply.id] = reply
    assert len(found) == count, (found, node.running())
    return found


def until(is_so: Callable[[], bool]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


@cache
def missing_layers() -> str:
    """Which layers for strangers' programs this machine has not."""
    try:
        return lacking(layers())
    except OSError as error:
        return str(error)


def require_layers() -> None:
    """Skip a test where programs cannot be enclosed."""
    if missing_layers():
        pytest.skip(f"this machine cannot enclose programs: {missing_layers()}")
