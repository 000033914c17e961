"""The travelling salesman as five steps that hand on plain values. Nothing of it measures.

An input is a text with vertices somewhere in it; what comes of it is the shortest way through all
of them that begins at the first. As in the paper it is found by trying each.
"""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Iterable, Iterator
from typing import Any

VERTEX = re.compile(r"<(-?\d+\.\d+),(-?\d+\.\d+)>")
NOISE = "abcdefghijklmnopqrstuvwxyz ,.;"


def create(name: str, vertices: int, characters: int, seed: int = 1) -> dict[str, Any]:
    """Return an input with so many vertices among so many characters, the same for each name."""
    chance = random.Random(f"{seed}/{name}")  # noqa: S311  the same again and again
    noise = max(1, characters // (vertices + 1))
    line = "".join(chance.choices(NOISE, k=min(noise, 1_000)))
    around = (line * (noise // len(line) + 1))[:noise]
    points = [
        f"<{chance.uniform(-100, 100):.3f},{chance.uniform(-100, 100):.3f}>"
        for _ in range(vertices)
    ]
    return {"id": name, "text": around + around.join(points) + around}


def extract(given: dict[str, Any]) -> dict[str, Any]:
    """Find the vertices of a text."""
    nodes = [[float(x), float(y)] for x, y in VERTEX.findall(given["text"])]
    return {"id": given["id"], "nodes": nodes}


def paths(given: dict[str, Any], parts: int) -> list[dict[str, Any]]:
    """Share out all paths: each part has those whose second node is one of its own."""
    others = range(1, len(given["nodes"]))
    shares = [[*others[part::parts]] for part in range(parts)]
    return [{**given, "parts": parts, "paths": [*_beginning(others, share)]} for share in shares]


def _beginning(others: Iterable[int], share: Iterable[int]) -> Iterator[list[int]]:
    for second in share:
        rest = [each for each in others if each != second]
        for path in itertools.permutations(rest):
            yield [0, second, *path]


def distance(given: dict[str, Any]) -> dict[str, Any]:
    """Find the shortest of the paths of one part."""
    nodes = given["nodes"]
    least = min(
        (
            sum(math.dist(nodes[a], nodes[b]) for a, b in itertools.pairwise(path))
            for path in given["paths"]
        ),
        default=math.inf,
    )
    return {"id": given["id"], "parts": given["parts"], "least": least}


def summarize(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Find the shortest of all parts of one input."""
    return {"id": found[0]["id"], "least": min(each["least"] for each in found)}
