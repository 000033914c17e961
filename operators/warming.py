"""Programs that are to take over are begun beforehand, and who asked for that is told.

Whoever puts a document in force asks the partition that computes it, by a notification: nothing is
stored, and where nobody listens nobody is asked. What came of it stands beside how the program
runs (`operator_runs.warmed`), with its time: an answer is the program's, and whoever waits takes
any that is newer than its question.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Protocol

from operators.line import Running
from servioticy.ports.programs import Program
from servioticy.ports.stored_programs import Wanted

MOST_OPEN = 64
"""Programs that are being begun for somebody; a tenant may have as many as are left to others."""

LISTEN_SECONDS = 0.5
OPEN_SECONDS = 0.01
"""So long it is listened at once: the second while somebody waits for an answer."""

NO_ROOM = "there is no room for it now"
MOST_REASON = 300


class Node(Protocol):
    """Who begins programs."""

    def warm(self, program: Program, payer: str, told: Callable[[str], None]) -> bool:
        """Begin a program, and have it answer its warm-up; False: there is no room.

        `payer`: the stream for which it is. `told` is called once, from any thread, with "" or
        what is wrong; it may not block.
        """

    def running(self) -> Sequence[Running]:
        """Return what is known of each program."""


class Told(Protocol):
    """Who is asked by others, and told."""

    def wanted(self, partition: int, seconds: float) -> Sequence[Wanted]:
        """Return what has been asked for, within so many seconds of silence."""

    def tell_warmed(self, node: str, running: Running, reason: str) -> None:
        """Note what came of it."""


class Warming:
    """Takes what is asked for of a partition. For one thread."""

    def __init__(self, told: Told, name: str, partition: int, node: Node) -> None:
        """`name`: the node's."""
        self._told = told
        self._name = name
        self._partition = partition
        self._node = node
        self._open: set[Program] = set()
        """Who asks for one of these is told with those before."""
        self._done: deque[tuple[Program, str]] = deque()

    def turn(self, seconds: float) -> None:
        """Listen for so long at most, and tell what there is to tell. Raises Unavailable."""
        pause = OPEN_SECONDS if self._open or self._done else LISTEN_SECONDS
        for wanted in self._told.wanted(self._partition, min(pause, seconds)):
            if wanted.program not in self._open:
                self._begin(wanted)
        while self._done:
            program, reason = self._done[0]
            self._open.discard(program)  # who asks from here on is told anew
            self._tell(program, reason)
            self._done.popleft()

    def _begin(self, wanted: Wanted) -> None:
        program, payer = wanted
        of = Counter(each.tenant for each in self._open)
        if of[program.tenant] >= MOST_OPEN - len(self._open):
            self._done.append((program, NO_ROOM))
            return
        self._open.add(program)
        if not self._node.warm(program, payer, lambda why: self._done.append((program, why))):
            self._done.append((program, NO_ROOM))

    def _tell(self, program: Program, reason: str) -> None:
        found = [each for each in self._node.running() if each.program == program]
        running = found[0] if found else Running(program, "ended", 0, "", b"", None)
        self._told.tell_warmed(self._name, running, reason[:MOST_REASON])
