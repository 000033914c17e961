"""Calls as frames: what fits into one, and what a step has where no worker has a say in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sandbox.trees import Call, Ended, Grown, Last, Tree

MAX_TREES = 1000
"""In one frame."""

MAX_BYTES = 1024 * 1024
"""Of updates in one frame."""

MAX_WINDOW_BYTES = 4 * 1024 * 1024
"""The same, where windows come: one has aggregates of 10,000 devices, some 330 bytes each."""

EVENT_BYTES = 50
"""What an update takes beside its document."""


def frames(calls: Sequence[Call]) -> Iterator[list[Call]]:
    """Yield the calls in order, in frames; of a call too large for one its first trees.

    One tree at least, however large it is.
    """
    frame: list[Call] = []
    trees = content = 0
    for call in calls:
        lasts = sum([EVENT_BYTES + last_bytes(each) for each in call.lasts])
        sizes = [tree_bytes(each) for each in call.trees]
        size = lasts + sum(sizes)
        if frame and (trees + len(sizes) > MAX_TREES or content + size > MAX_BYTES):
            yield frame
            frame, trees, content = [], 0, 0
        if len(sizes) > MAX_TREES or size > MAX_BYTES:
            call = _first_trees(call, lasts, sizes)
        frame.append(call)
        trees += len(sizes)
        content += size
    if frame:
        yield frame


def last_bytes(last: Last) -> int:
    """Return how many bytes a last update and its state have."""
    return len(last.document or b"") + len(last.state or b"")


def tree_bytes(tree: Tree) -> int:
    """Return about how many bytes a tree takes in a frame."""
    return sum([EVENT_BYTES + len(each.document) for each in tree])


def most_bytes(call: Call) -> int:
    """Return how many bytes the first tree of a call may have, with all that it can read."""
    brings = [call.wiring.nodes[each.node].wakes for tree in call.trees[:1] for each in tree]
    return (
        MAX_WINDOW_BYTES
        if any(call.wiring.nodes[wake.node].windowed for wakes in brings for wake in wakes)
        else MAX_BYTES
    )


def is_too_large(call: Call) -> bool:
    """Tell whether even the first tree of a call is too large for a frame."""
    size = first_bytes(call)
    return size > MAX_BYTES and size > most_bytes(call)


def first_bytes(call: Call) -> int:
    """Return how many bytes the first tree of a call has, with all that it can read."""
    first = [len(each.document) for tree in call.trees[:1] for each in tree]
    return sum(map(last_bytes, call.lasts)) + sum(first)


def is_step(call: Call) -> bool:
    """Tell whether a call is one computation; an update that wakes nobody is none."""
    if len(call.trees) != 1 or len(call.trees[0]) != 1:
        return False
    event = call.trees[0][0]
    if event.only is None:
        return False
    return any(wake.number == event.only for wake in call.wiring.nodes[event.node].wakes)


def _first_trees(call: Call, lasts: int, sizes: Sequence[int]) -> Call:
    count, size = 1, lasts + sizes[0]
    while count < min(len(sizes), MAX_TREES) and size + sizes[count] <= MAX_BYTES:
        size += sizes[count]
        count += 1
    return replace(call, trees=call.trees[:count])


def woken(call: Call) -> int:
    """Return the composite that computes in a step."""
    event = call.trees[0][0]
    return next(
        wake.node for wake in call.wiring.nodes[event.node].wakes if wake.number == event.only
    )


def ended_step(call: Call, kind: str, message: str) -> Grown:
    """Return a step as ended so, with the timestamps of the inputs that it had."""
    event = call.trees[0][0]
    wake = next(w for w in call.wiring.nodes[event.node].wakes if w.number == event.only)
    times = {each.node: each.timestamp for each in call.lasts}
    times[event.node] = max(event.timestamp, times.get(event.node, event.timestamp))
    node = call.wiring.nodes[wake.node]
    inputs = [
        event.timestamp
        if node.comes(wake.argument, argument)
        else max((times[each] for each in members if each in times), default=None)
        for argument, members in enumerate(node.inputs)
    ]
    return Grown([[]], [Ended(wake.node, kind, 1, 0, 0, message, inputs)])
