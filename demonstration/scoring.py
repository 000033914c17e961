"""How well the two composites that judge do against what people marked in the series."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

HOUR = 3600
LOW_FLOW, HIGH_FLOW = 90.0, 108.0
"""River's text names three low segments and one peak without dates; these limits find them."""

SEGMENT_GAP = 6 * HOUR
NEAR = 3 * HOUR
ROWS_NEAR = 5
"""The margin of the Turing change point benchmark."""

ANNOTATORS_NEEDED = 2


@dataclass(frozen=True, slots=True)
class Score:
    """How many of the known events were found, and what was reported beside them."""

    known: int
    found: int
    false_alarms: int


def water_score(flow: Sequence[tuple[int, float]], alarms: Iterable[tuple[int, bool]]) -> Score:
    """Alarms of the water main, as episodes, against the anomalous segments of its flow."""
    low = _runs((at for at, value in flow if value < LOW_FLOW), SEGMENT_GAP)
    high = _runs((at for at, value in flow if value > HIGH_FLOW), SEGMENT_GAP)
    known = [*low, *high]
    episodes = _runs((at for at, alarm in alarms if alarm), HOUR)
    found = sum(any(_near(one, other) for other in episodes) for one in known)
    false = sum(not any(_near(one, other) for other in known) for one in episodes)
    return Score(len(known), found, false)


def occupied_score(
    times: Sequence[int], annotations: dict[str, list[int]], states: Sequence[tuple[int, bool]]
) -> Score:
    """Changes of `occupied` against the rows that at least two people marked as a change.

    `times` are the timestamps of the rows.
    """
    rows = {at: row for row, at in enumerate(times)}
    pairs = itertools.pairwise(states)
    changes = [rows[at] for (_, before), (at, now) in pairs if before != now and at in rows]
    known = agreed(annotations)
    found = sum(any(abs(row - other) <= ROWS_NEAR for other in changes) for row in known)
    false = sum(not any(abs(row - other) <= ROWS_NEAR for other in known) for row in changes)
    return Score(len(known), found, false)


def agreed(annotations: dict[str, list[int]]) -> list[int]:
    """Return the rows marked by at least two people, give or take a few rows; their middle."""
    marks = sorted((row, person) for person, rows in annotations.items() for row in rows)
    clusters: list[list[tuple[int, str]]] = []
    for mark in marks:
        if clusters and mark[0] - clusters[-1][0][0] <= ROWS_NEAR:
            clusters[-1].append(mark)
        else:
            clusters.append([mark])
    return [
        each[len(each) // 2][0]
        for each in clusters
        if len({person for _, person in each}) >= ANNOTATORS_NEEDED
    ]


def values(updates: Iterable[dict[str, Any]], channel: str) -> list[tuple[int, Any]]:
    """(timestamp, value) of one channel of stored updates."""
    return [(each["lastUpdate"], each["channels"][channel]["current-value"]) for each in updates]


def _runs(times: Iterable[int], gap: int) -> list[tuple[int, int]]:
    """Times put together to spans that have no gap larger than this."""
    spans: list[tuple[int, int]] = []
    for at in times:
        if spans and at - spans[-1][1] <= gap:
            spans[-1] = (spans[-1][0], at)
        else:
            spans.append((at, at))
    return spans


def _near(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] - NEAR <= other[1] and other[0] <= one[1] + NEAR
