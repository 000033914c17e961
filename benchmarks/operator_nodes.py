"""Nodes with one program, for measurements: a sample or a few lines, over either transport."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import orjson

import operators
from operators import manifest
from operators.instance import Place
from operators.links import Links, Pairs
from operators.manifest import Described
from operators.node import Node
from operators.queues.link import MOST_BYTES, Queues
from operators.queues.server import Server
from servioticy.errors import Unavailable
from servioticy.ports.programs import Program, Question, Reply

TRANSPORTS = ("socket", "queue")
SECONDS = 120.0
ROOM = Path(operators.__path__[0])


class _Folder:
    """A program that is in a folder, in any version."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def folder(self, _program: Program) -> tuple[Described, Path]:
        return manifest.read((self._folder / manifest.FILE).read_bytes()), self._folder


@contextmanager
def node_with(
    language: str,
    files: Mapping[str, str],
    transport: str = "socket",
    built: Mapping[str, bytes] | None = None,
    **said: Any,
) -> Iterator[Node]:
    """Run the sample of a language, with these files in place of its own, and this said of it.

    `built`: what may be executed.
    """
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder = place / "operator"
        for each in ("samples", "kits"):
            shutil.copytree(ROOM / each / language, folder, dirs_exist_ok=True)
        for name, content in files.items():
            (folder / name).write_text(content)
        for name, program in (built or {}).items():
            (folder / name).write_bytes(program)
            (folder / name).chmod(0o755)
        told = orjson.loads((folder / manifest.FILE).read_bytes()) | said
        (folder / manifest.FILE).write_bytes(orjson.dumps(told))
        (place / "root").mkdir()
        links = _links(transport, place)
        stack.callback(links.close)
        node = Node(_Folder(folder), Place(place / "root", strangers=False, links=links))
        stack.callback(node.close)
        yield node


def _links(transport: str, place: Path) -> Links:
    if transport == "socket":
        return Pairs()
    (place / "store").mkdir()
    server = Server(lambda: place / "store", 8 * MOST_BYTES)
    return Queues(server.address, server.close)


def ask(node: Node, question: Question) -> Reply:
    """Ask one question, and wait for its reply. Raises Unavailable for an error."""
    if not node.ask(question):
        raise Unavailable("there is no room")
    until = time.monotonic() + SECONDS
    while not (replies := node.replies(10.0)):
        if time.monotonic() > until:
            raise Unavailable("it does not answer")
    if replies[0].error:
        raise Unavailable(replies[0].error)
    return replies[0]
