"""A graph with fewer boxes: streams of one device in one, and devices that are alike in one."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from string import hexdigits
from typing import NamedTuple

from servioticy.domain.layout import Edge

LIKE = "like:"
"""What names of boxes begin with that hold several devices."""


_DIGEST_BYTES = 8


def is_like(key: str) -> bool:
    """Tell whether that may be the name of such a box, of this graph or another."""
    digits = key.removeprefix(LIKE)
    return digits != key and len(digits) == 2 * _DIGEST_BYTES and set(digits) <= set(hexdigits)


class Folded(NamedTuple):
    """A graph of boxes."""

    boxes: Mapping[str, list[str]]
    """The streams in each. A stream that stands alone has its own name for the box's."""
    edges: set[Edge]
    is_cut: bool
    """Whether there are more boxes than there may be."""


def folded(
    streams: Iterable[str],
    edges: Collection[Edge],
    device_of: Callable[[str], str],
    opened: Collection[str],
    most: int,
    alone: Collection[str] = (),
) -> Folded:
    """Return the graph with `most` boxes at most; what is `opened` is not folded.

    First the streams of each device are one box, then, if need be, all boxes that have the same
    sources and the same readers. `opened` names boxes; streams that stand `alone` are in none.
    """
    box_of = {each: each for each in streams}
    for fold in (_by_device(device_of, alone), _by_neighbours(device_of, alone)):
        if len(set(box_of.values())) <= most:
            break
        box_of = fold(box_of, edges, opened)
    kept = dict.fromkeys(list(dict.fromkeys(box_of.values()))[:most])
    boxes: dict[str, list[str]] = {each: [] for each in kept}
    is_cut = False
    for stream, box in box_of.items():
        if box in boxes:
            boxes[box].append(stream)
        else:
            is_cut = True
    drawn = {
        (box_of[left], box_of[right])
        for left, right in edges
        if box_of[left] in kept and box_of[right] in kept
    }
    return Folded(boxes, {each for each in drawn if each[0] != each[1]}, is_cut)


Fold = Callable[[Mapping[str, str], Collection[Edge], Collection[str]], dict[str, str]]


def _by_device(device_of: Callable[[str], str], alone: Collection[str]) -> Fold:
    def fold(
        box_of: Mapping[str, str], _edges: Collection[Edge], opened: Collection[str]
    ) -> dict[str, str]:
        members = defaultdict(list)
        for stream in box_of:
            members[device_of(stream)].append(stream)
        return {
            stream: stream if device in opened or stream in alone or len(of_one) == 1 else device
            for device, of_one in members.items()
            for stream in of_one
        }

    return fold


def _by_neighbours(device_of: Callable[[str], str], alone: Collection[str]) -> Fold:
    """Put boxes together that have the same devices for sources and for readers.

    So a name tells the same whatever else is opened.
    """

    def fold(
        box_of: Mapping[str, str], edges: Collection[Edge], opened: Collection[str]
    ) -> dict[str, str]:
        sources, readers = defaultdict(set), defaultdict(set)
        for left, right in edges:
            sources[box_of[right]].add(device_of(left))
            readers[box_of[left]].add(device_of(right))
        names = {
            box: _name(sorted(sources[box]), sorted(readers[box])) for box in set(box_of.values())
        }
        alike: dict[str, list[str]] = defaultdict(list)
        for stream, box in box_of.items():
            if device_of(stream) not in opened and stream not in alone:
                alike[names[box]].append(stream)
        found = dict(box_of)
        for name, streams in alike.items():
            if name not in opened and len({box_of[each] for each in streams}) > 1:
                found |= dict.fromkeys(streams, name)
        return found

    return fold


def _name(sources: list[str], readers: list[str]) -> str:
    """Return what all boxes with these neighbours are called by; it stands in addresses."""
    text = "\n".join([*sources, "", *readers])
    return LIKE + hashlib.blake2b(text.encode(), digest_size=_DIGEST_BYTES).hexdigest()
