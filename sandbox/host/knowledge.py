"""What a worker has been told: the programs and wirings that it has, and what is new to it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from cachetools import LRUCache

from sandbox.encoding import encode_program, encode_wiring
from sandbox.host.frames import is_step, woken
from sandbox.host.grown import Known
from sandbox.program import Program
from sandbox.trees import Call, Wiring

PORTION_PROGRAMS = 64
PORTION_BYTES = 65_536

MAX_MEMORY = 32 * 1024 * 1024
"""Of the heap, for programs. A tenant with more gets a new worker now and then."""

PROGRAM_BYTES = 500
PROGRAM_GROWTH = 4
"""A program's share of the heap, measured: this much, and four times its text."""

NODE_BYTES, WAKE_BYTES, MEMBER_BYTES = 250, 40, 16
"""The same of a stream of a wiring with how it ended, of each wake, and of each member that an
input reads."""

MAX_WIRING_BYTES = 64 * 1024 * 1024
"""Of one wiring, so estimated: half of it is what the heap really has to hold. A region of more
streams is taken step by step."""

MAX_KNOWN_WIRINGS = 20_000
"""Of which it is remembered how much they take."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Definition:
    """A program as it is sent to a worker."""

    name: str
    text: bytes


@dataclass(frozen=True, slots=True)
class _Wired:
    """A wiring that the worker has."""

    known: Known
    undefined: dict[int, Program]
    """The composites whose programs the worker lacks, as far as is known."""
    ready: set[int] = field(default_factory=set)
    """Streams whose updates reach no such composite."""


class Knowledge:
    """Knowledge is what one worker has been told so far."""

    def __init__(self) -> None:
        self.slots: dict[str, int] = {}
        """The numbers of the wirings."""
        self._wirings: dict[str, _Wired] = {}
        self._programs: dict[str, int] = {}
        self._defined: set[str] = set()
        self._begun: dict[str, int] = {}
        """Of wirings that the worker has in part, how many portions."""
        self._bytes = self._largest = 0

    def is_full(self) -> bool:
        """Tell whether all of it takes so much memory that a script might lack it.

        The largest wiring is left out: whatever worker is asked for it has to have it.
        """
        return self._bytes - self._largest > MAX_MEMORY

    def known(self, calls: Sequence[Call]) -> list[Known]:
        """Return what is looked up again and again of the wiring of each call."""
        return [self._wirings[each.wiring.id].known for each in calls]

    def new_wirings(self, calls: Sequence[Call]) -> Iterator[Wiring]:
        """Yield the wirings that the worker does not have; note each before the next."""
        for call in calls:
            if call.wiring.id not in self._wirings:
                yield call.wiring

    def portions_of(self, wiring: Wiring) -> Iterator[bytes]:
        """Yield the questions that make a wiring known, and give its programs numbers.

        Without those portions that are noted: it may be gone on with another time.
        """
        for program in programs_of(wiring).values():
            self._number(program.id)
        slot = self.slots.setdefault(wiring.id, len(self.slots))
        return encode_wiring(wiring, slot, self._programs, self._begun.get(wiring.id, 0))

    def note_portion(self, wiring: Wiring) -> None:
        """Note that the worker has one more portion of the wiring."""
        self._begun[wiring.id] = self._begun.get(wiring.id, 0) + 1

    def note_wiring(self, wiring: Wiring) -> None:
        """Note that the worker has the wiring from now on."""
        self._begun.pop(wiring.id, None)
        self._wirings[wiring.id] = _Wired(
            Known(wiring),
            dict(programs_of(wiring)),
        )
        size = memory(wiring)
        self._bytes += size
        self._largest = max(self._largest, size)

    def new_programs(self, calls: Sequence[Call]) -> list[list[Definition]]:
        """Return the programs that the calls may run and the worker lacks, in portions.

        What is refused does not even come into the engine, where a part of it might run.
        """
        new: dict[str, Program] = {}
        for call in calls:
            wired = self._wirings[call.wiring.id]
            if wired.undefined:
                self._add_lacking(new, call, wired)
        texts = [Definition(name, encode_program(program)) for name, program in new.items()]
        return portions(texts, lambda each: len(each.text))

    def _add_lacking(self, new: dict[str, Program], call: Call, wired: _Wired) -> None:
        """Add what the trees can reach: a region may have thousands of others."""
        if is_step(call):
            self._add(new, call, wired, (woken(call),))
            return
        entries = {event.node for tree in call.trees for event in tree}
        for entry in entries - wired.ready:
            if self._add(new, call, wired, reached(call.wiring, entry)):
                wired.ready.add(entry)

    def _add(
        self, new: dict[str, Program], call: Call, wired: _Wired, nodes: Iterable[int]
    ) -> bool:
        """Add those that the worker lacks; whether it lacks none, not even refused ones."""
        whole = True
        for node in [each for each in nodes if each in wired.undefined]:
            program = wired.undefined[node]
            if node not in call.refused and program.id in self._defined:
                del wired.undefined[node]
                continue
            whole = False
            if node not in call.refused:
                new[program.id] = program
        return whole

    def question_of(self, portion: Sequence[Definition]) -> bytes:
        """Return the question that makes some programs known."""
        return listed([b"[%d,%b]" % (self._number(each.name), each.text) for each in portion])

    def _number(self, program: str) -> int:
        return self._programs.setdefault(program, len(self._programs))

    def note_programs(self, portion: Sequence[Definition]) -> None:
        """Note that the worker has these programs from now on."""
        for each in portion:
            self._defined.add(each.name)
            self._bytes += PROGRAM_BYTES + PROGRAM_GROWTH * len(each.text)


class Sizes:
    """Tells which wirings are too large for any worker."""

    def __init__(self) -> None:
        self._known: LRUCache[str, bool] = LRUCache(MAX_KNOWN_WIRINGS)

    def is_too_large(self, wiring: Wiring) -> bool:
        """Tell it, having looked once."""
        found = self._known.get(wiring.id)
        if found is None:
            found = self._known[wiring.id] = memory(wiring) > MAX_WIRING_BYTES
        return found


def memory(wiring: Wiring) -> int:
    """Return about how much of the heap a wiring takes."""
    return sum(
        [
            NODE_BYTES + WAKE_BYTES * len(each.wakes) + MEMBER_BYTES * sum(map(len, each.inputs))
            for each in wiring.nodes
        ]
    )


def reached(wiring: Wiring, entry: int) -> Collection[int]:
    """Return the composites that an update of a stream can wake, directly or not."""
    found: dict[int, None] = {}
    waiting = [entry]
    while waiting:
        for wake in wiring.nodes[waiting.pop()].wakes:
            if wake.node not in found:
                found[wake.node] = None
                waiting.append(wake.node)
    return found


def programs_of(wiring: Wiring) -> Mapping[int, Program]:
    """Return the programs of a wiring's composites, by their numbers."""
    return {n: each.code for n, each in enumerate(wiring.nodes) if each.code is not None}


def portions(items: Sequence[T], length: Callable[[T], int]) -> list[list[T]]:
    """Cut items, in order, into portions that take no more than a few milliseconds to compile."""
    cut: list[list[T]] = []
    size = PORTION_BYTES
    for item in items:
        if size + length(item) > PORTION_BYTES or len(cut[-1]) >= PORTION_PROGRAMS:
            cut.append([])
            size = 0
        cut[-1].append(item)
        size += length(item)
    return cut


def listed(texts: Sequence[bytes]) -> bytes:
    """Return JSON texts as the text of an array."""
    return b"[" + b",".join(texts) + b"]"
