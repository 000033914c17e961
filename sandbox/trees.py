"""What an evaluator is asked and what it answers, whole execution trees at a time: neutral nouns.

A *region* is a set of composite streams that one evaluator computes together. Its wiring says
which streams there are, by number, what each composite reads, and whom an update of a stream
wakes. An evaluator is given a region's last updates and some trees, each the updates that come
into the region because of one record of the log. It takes the trees one after the other, each
breadth first, and answers with every update made, in that order, and with how computations
ended. The code of a composite and its state mean something to its evaluator only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Path = tuple[int, ...]
"""The way to an update through its tree: for each hop, the number of the wake. So its length
is the depth. Updates of a tree are made in order of depth, and then of path."""

ROOT: Path = ()


NOBODY = -1
"""As the number of the only wake of an event: it is the last of its stream, and that is all."""


CLOCK = -2
"""As the argument of a wake: none, a time has come that the composite has set itself."""


FOLLOWS = -3
"""As the argument of a wake: what wakes the composite is a revision of an input, and brings all
inputs as they were at its time, as windows do."""


FOLLOWERS = -4
"""As the number of the only wake of an event: it is a revision. It is the last of its stream if it
is not older, and wakes those that follow revisions."""


class Wake(NamedTuple):
    """An update of a stream makes a composite of the region compute."""

    number: int
    """Among all wakes of the stream, those outside of this region too: a step of a path."""
    node: int
    """The number of the composite."""
    argument: int
    """Through which of its inputs, or CLOCK, or FOLLOWS."""


@dataclass(frozen=True, slots=True)
class Node:
    """A stream of a region: a composite, or a stream that one of them reads."""

    wakes: tuple[Wake, ...] = ()
    """In order of number."""
    code: Any = None
    """Of a composite: whatever its evaluator runs. None where the stream is only read."""
    inputs: tuple[tuple[int, ...], ...] = ()
    """What each argument reads: a stream, or a group of streams, by their numbers."""
    own: int | None = None
    """The argument that is the composite's own last output."""
    settles: bool = False
    """Of several arrivals in one tree only the last computes; all come into the region as
    updates of the trees, never from a composite of the region itself."""
    by_input: bool = False
    """A trigger has to be newer than what was last used of its own stream; the output is a tick
    newer than the last one where its inputs are older. After the last timestamp there is none."""
    skips: bool = False
    """Nothing is computed while an input other than its own has no update."""
    name: str = ""
    """Of a stream that a composite with `by_input` reads: its name in the composite's state."""
    keeps: bool = False
    """It keeps entries under keys, may be woken by the clock, and computes whatever arrives: what
    timestamps mean to it is its evaluator's affair."""
    windowed: bool = False
    """Its inputs are windows: all but its own last output come with what wakes it, and nothing
    else is read of their stream. The document of such an update has `windows`, one for each input
    in order (null for its own), and `lastUpdate`."""
    reads: bool = True
    """It looks at last updates, its own and its inputs'; else at what wakes it alone."""
    apart: bool = False
    """What it makes is nobody's but another composite's: each is a step of its own, also where one
    computation makes a single one."""
    follows: bool = False
    """It is woken by revisions of its inputs, and by nothing else."""
    brings: bool = False
    """Its updates bring all inputs of whom they wake, through FOLLOWS."""
    sides: tuple[int, ...] = ()
    """Composites whose updates are made by its computations, beside its own."""
    read_as: int = 0
    """Of windows: the newest number under which updates of a stream that they read are stored. A
    stream that was erased has a newer one."""

    def comes(self, argument: int, number: int) -> bool:
        """Tell whether an input comes with what wakes the composite through `argument`."""
        return number == argument or (
            (self.windowed or argument == FOLLOWS) and number != self.own
        )


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Wiring:
    """The streams of a region by number. Equal ids mean equal wirings, whatever the streams."""

    id: str
    nodes: tuple[Node, ...]


class Last(NamedTuple):
    """A stream's last update. `document` may be None where nobody in the region reads it."""

    node: int
    timestamp: int
    document: bytes | None
    state: bytes | None = None
    """What the composite's evaluator has answered with the composite's last output."""


class Event(NamedTuple):
    """An update that comes into the region."""

    node: int
    timestamp: int
    document: bytes
    path: Path = ROOT
    only: int | None = None
    """Wake by this number alone, and nothing that follows: one step instead of a tree."""


class Kept(NamedTuple):
    """What a composite keeps under a key from one computation to the next."""

    node: int
    key: bytes
    value: bytes | None
    """None: nothing."""
    due: int | None = None
    """At which time of the log the composite is to be woken for it, in ms since 1970."""


Tree = Sequence[Event]
"""What comes into the region because of one record of the log, in order of depth and path."""


class Bounds(NamedTuple):
    """How far one tree may go."""

    hops: int
    """Composites on a path; a computation beyond it ends as `hop-limit`."""
    computations: int
    """In one tree and region; a tree that has more is not grown."""


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """Trees of one region to be grown, one after the other."""

    wiring: Wiring
    names: Sequence[str]
    """Of each node's code, for accounts and suspensions: stream and version."""
    lasts: Sequence[Last]
    """Of what the trees can read, and of every composite that they can reach."""
    trees: Sequence[Tree]
    bounds: Bounds
    refused: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    """Composites that do not run: each with a kind of verdict and a message."""
    kept: Sequence[Kept] = ()
    """What composites keep, as far as it is known; of other keys it is not known."""
    at: Sequence[int] = ()
    """Of each tree the log's time, in ms since 1970, for whoever keeps entries."""
    moment: Any = None
    """Of a single step: what has happened before it, as whoever keeps entries understands it."""
    traces: Sequence[str] = ()
    """Of each tree the trace context that it came with, where any has one, for the same."""


class Made(NamedTuple):
    """A new update of a composite."""

    parent: int
    """What woke it: the number of an update of its tree, where the events come first and then
    all that was made, in order."""
    wake: int
    """The number of the wake: with the parent's path, its own."""
    node: int
    timestamp: int
    document: bytes
    state: bytes | None = None
    nth: int | None = None
    """Of an evaluator of which one computation may make several: which of them it is. It is a
    step of the path of its own."""


class Ended(NamedTuple):
    """How computations of a composite ended that ended alike; all else is told of the last."""

    node: int
    kind: str
    times: int
    """How many computations there were."""
    tree: int
    """The number of the last one's tree in the call."""
    parent: int
    """What woke it, as in Made."""
    message: str = ""
    inputs: Sequence[int | None] | None = None
    """The timestamp of each input that it had, None where there was no update yet. None
    in all where it came to no inputs (`stale`, `superseded`, `hop-limit`), or where there is
    so much to tell of a call that only numbers are told."""


@dataclass(frozen=True, slots=True, eq=False)
class Grown:
    """What came of a call: of all its trees, or of the first ones."""

    made: Sequence[Sequence[Made]]
    """Of each tree that was grown; as many as were."""
    ended: Sequence[Ended]
    failed: bool = False
    """What follows cannot be grown as it is asked for: code in it ends the process, or is too
    slow, or makes too much. The next tree has to be taken step by step, and those after it each
    alone."""
    kept: Sequence[Kept] = ()
    """What composites keep otherwise than before, of each key as it is after these trees."""
