"""Wirings: what a sandbox has to know of a region, by an id that equal ones share."""

from __future__ import annotations

from hashlib import sha256

from sandbox import trees
from servioticy.domain.pauses import PACES, PAUSE, Paused, finished


def wiring(nodes: tuple[trees.Node, ...]) -> trees.Wiring:
    """These nodes with an id that equal nodes have, too."""
    return finished(made_wiring(nodes))


def made_wiring(nodes: tuple[trees.Node, ...]) -> Paused[trees.Wiring]:
    """The same with pauses."""
    content = sha256()
    for number, each in enumerate(nodes):
        if not number % PAUSE:
            yield
        facts = (
            each.code and each.code.id,
            len(each.wakes),
            [len(some) for some in each.inputs],
            each.own,
            each.settles,
            each.by_input,
            each.skips,
            each.name,
            each.keeps,
            each.windowed,
            each.reads,
            each.apart,
            each.follows,
            each.brings,
            each.sides,
            each.read_as,
        )
        content.update(repr(facts).encode("utf-8", "surrogatepass"))
        for first in range(0, len(each.wakes), PACES):
            if first:
                yield
            wakes = [*map(tuple, each.wakes[first : first + PACES])]
            content.update(repr(wakes).encode())
        for members in each.inputs:
            for first in range(0, len(members), PACES):
                if first:
                    yield
                content.update(repr(members[first : first + PACES]).encode())
    return trees.Wiring(content.hexdigest(), nodes)
