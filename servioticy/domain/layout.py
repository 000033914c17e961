"""Where the nodes of a graph stand on a page: what others are made of is on the left."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

WIDTH, HEIGHT = 196, 56
"""Of a box, in pixels."""
ACROSS, DOWN = 256, 74
"""From one box to the next."""
MARGIN = 8
PASSES = 4
"""Over all columns, in which boxes move to the middle of what they are computed from."""

Edge = tuple[str, str]
"""From a stream to one that is computed from it."""


class Box(NamedTuple):
    """Where a stream stands: the upper left corner, in pixels."""

    x: int
    y: int


class Layout(NamedTuple):
    """A graph with a place for each stream, and a line for each edge."""

    boxes: Mapping[str, Box]
    lines: Sequence[str]
    """as the attribute `d` of a path"""
    width: int
    height: int


def laid_out(streams: Iterable[str], edges: Iterable[Edge]) -> Layout:
    """Return the places of all streams; each right of what it is computed from, circles aside."""
    names, drawn = list(dict.fromkeys(streams)), sorted(set(edges))
    columns = _columns(names, drawn)
    rows = _rows(columns, drawn)
    boxes = {
        name: Box(MARGIN + column * ACROSS, MARGIN + rows[name] * DOWN)
        for column, of_column in enumerate(columns)
        for name in of_column
    }
    width = max((box.x for box in boxes.values()), default=0) + WIDTH + MARGIN
    height = max((box.y for box in boxes.values()), default=0) + HEIGHT + MARGIN
    return Layout(
        boxes, [_line(boxes[left], boxes[right]) for left, right in drawn], width, height
    )


def _columns(names: Sequence[str], edges: Sequence[Edge]) -> list[list[str]]:
    """Return the names by how many steps they are from a beginning, at most."""
    depth = dict.fromkeys(names, 0)
    for _ in names:  # in a circle it would never end
        has_moved = False
        for left, right in edges:
            if left != right and depth[right] <= depth[left] < len(names) - 1:
                depth[right], has_moved = depth[left] + 1, True
        if not has_moved:
            break
    used = {each: number for number, each in enumerate(sorted(set(depth.values())))}
    columns: list[list[str]] = [[] for _ in used]
    for name in names:
        columns[used[depth[name]]].append(name)
    return columns


def _rows(columns: Sequence[list[str]], edges: Sequence[Edge]) -> dict[str, int]:
    """Return in which row each stands; a column is in the order of the middles of its sources."""
    sources = defaultdict(list)
    for left, right in edges:
        sources[right].append(left)
    rows = {name: row for column in columns for row, name in enumerate(column)}
    for _ in range(PASSES):
        for column in columns[1:]:
            wanted = {name: _middle(name, sources, rows) for name in column}
            free = 0
            for name in sorted(column, key=lambda each: (wanted[each], rows[each])):
                rows[name] = max(free, round(wanted[name]))
                free = rows[name] + 1
    return rows


def _middle(name: str, sources: Mapping[str, list[str]], rows: Mapping[str, int]) -> float:
    found = [rows[each] for each in sources.get(name, ())]
    return sum(found) / len(found) if found else float(rows[name])


def _line(left: Box, right: Box) -> str:
    """Return a curve from the right side of one box to the left side of another."""
    x, y = left.x + WIDTH, left.y + HEIGHT // 2
    to_x, to_y = right.x, right.y + HEIGHT // 2
    bend = max(30, (to_x - x) // 2)
    return f"M{x},{y}C{x + bend},{y} {to_x - bend},{to_y} {to_x},{to_y}"
