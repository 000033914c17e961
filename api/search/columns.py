"""Columns: what a condition needs to know of many updates, in two bytes an update or a word.

A column never decides that an update fits, only that it cannot: the candidates are looked at
themselves. So values may be rounded; a candidate too many costs time, one too few is wrong.
This is the only importer of numpy.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from servioticy.domain.search.criteria import (
    AnyTerm,
    Condition,
    NumberWithin,
    PlaceWithin,
    numbers,
    words,
)
from servioticy.domain.search.places import place

Mask: TypeAlias = NDArray[np.bool_]
Codes: TypeAlias = NDArray[np.uint16]
Times: TypeAlias = NDArray[np.int64]
Numbers: TypeAlias = NDArray[np.float64]
Column: TypeAlias = tuple[list[float], bytes]
"""Bounds of all values, and their codes; the last of the bounds counts the odd ones."""

NONE, ODD = 0, 65_535
"""Codes of an update without a value, and of one whose value is too odd for a code."""
FIRST, STEPS = 1, 65_532
"""Codes of the smallest value, and how many steps it is to the largest."""
MAX_WORDS = 64
"""Of one update; one with more is always a candidate."""


def subject(condition: Condition) -> str:
    """Return the name of the column that a condition goes by."""
    return f"{condition.KIND}:{condition.channel}"


def essence(condition: Condition, value: Any) -> Any:
    """Return the little of a channel's value that a column needs; None for no value."""
    if isinstance(condition, NumberWithin):
        return _number(value)
    if isinstance(condition, PlaceWithin):
        return place(value)
    found = words(value)
    return [_hash(word) for word in found] if len(found) <= MAX_WORDS else None


def column(condition: Condition, values: Sequence[Any]) -> Column:
    """Return the column of the essences of these values, one an update."""
    if isinstance(condition, NumberWithin):
        bounds, codes, odd = _coded(values)
        return [*bounds, odd], codes.tobytes()
    if isinstance(condition, PlaceWithin):
        ups, ups_codes, _ = _coded([each and each.latitude for each in values])
        alongs, alongs_codes, _ = _coded([each and each.longitude for each in values])
        return [*ups, *alongs, 0.0], ups_codes.tobytes() + alongs_codes.tobytes()
    return _hashed(values)


def may_hold(condition: Condition, bounds: Sequence[float]) -> bool:
    """Tell whether any update of a column with these bounds may be a candidate."""
    if bounds[-1] or isinstance(condition, AnyTerm):
        return True
    if isinstance(condition, NumberWithin):
        low, high = _ends(condition)
        return low <= bounds[1] and bounds[0] <= high
    box = condition.box
    if box.north < bounds[0] or bounds[1] < box.south:
        return False
    if box.west <= box.east:
        return box.west <= bounds[3] and bounds[2] <= box.east
    return box.west <= bounds[3] or bounds[2] <= box.east


def candidates(
    condition: Condition, bounds: Sequence[Sequence[float]], codes: Sequence[bytes], rows: int
) -> Mask:
    """Tell for each update of several columns whether it may hold for it: a row a column.

    All of the columns have so many `rows`.
    """
    if isinstance(condition, AnyTerm):
        return _with_words(codes, rows, condition)
    every = _array(b"".join(codes)).reshape(len(codes), -1)
    ends = np.array(bounds).T
    if isinstance(condition, NumberWithin):
        return _within(every, ends[0], ends[1], *_ends(condition))
    box, alongs = condition.box, every[:, rows:]
    found = _within(every[:, :rows], ends[0], ends[1], box.south, box.north)
    if box.west <= box.east:
        return found & _within(alongs, ends[2], ends[3], box.west, box.east)
    return found & (
        _within(alongs, ends[2], ends[3], box.west, math.inf)
        | _within(alongs, ends[2], ends[3], -math.inf, box.east)
    )


def timestamps(values: Sequence[int]) -> bytes:
    """Return timestamps as bytes."""
    return np.array(values, dtype="<i8").tobytes()


def chosen(content: bytes, mask: Mask, first: int, last: int) -> Times:
    """Return those of the timestamps that are chosen and within the span."""
    found = np.frombuffer(content, dtype="<i8")[mask]
    return found[(found >= first) & (found <= last)]


def joined(some: Sequence[Times]) -> Times:
    """Return all of the timestamps, one after the other."""
    return np.concatenate(some) if some else np.array([], dtype="<i8")


def with_candidates(mask: Mask) -> list[bool]:
    """Tell of each column whether there are any."""
    return [bool(column.any()) for column in mask]


def both(masks: Sequence[Mask]) -> Mask:
    """Return what all of the masks have."""
    found = masks[0]
    for each in masks[1:]:
        found = found & each
    return found


def _array(codes: bytes) -> Codes:
    return np.frombuffer(codes, dtype="<u2")


def _number(value: Any) -> float | None:
    """Return the one number of a value; NaN where it has several."""
    found = numbers(value)
    if not found:
        return None
    return float(found[0]) if len(found) == 1 else math.nan


def _ends(condition: NumberWithin) -> tuple[float, float]:
    low, high = condition.low, condition.high
    return -math.inf if low is None else float(low), math.inf if high is None else float(high)


def _scales(low: Numbers, high: Numbers) -> Numbers:
    """Return the codes for one unit; none where all values are one, or too far apart."""
    with np.errstate(all="ignore"):
        scales = STEPS / (high - low)
    return np.where((high > low) & np.isfinite(scales), scales, 0.0)


def _coded(values: Sequence[float | None]) -> tuple[list[float], Codes, float]:
    """Return the bounds, the codes, and how many values are odd."""
    found = np.array([math.inf if each is None else each for each in values], dtype=float)
    missing = np.array([each is None for each in values], dtype=bool)
    odd = np.isnan(found)
    usual = found[~(missing | odd)]
    low, high = (float(usual.min()), float(usual.max())) if usual.size else (math.inf, -math.inf)
    codes = np.full(len(values), NONE, dtype="<u2")
    if usual.size:
        lows = np.array([low])
        codes[~(missing | odd)] = FIRST + _steps(usual, lows, _scales(lows, np.array([high])))
    codes[odd] = ODD
    return [low, high], codes, float(odd.sum())


def _steps(values: Numbers, low: Numbers, scales: Numbers) -> Codes:
    """Return how many steps above the lowest each is. It grows with the value, or stays."""
    with np.errstate(all="ignore"):
        steps = np.clip(np.floor((values - low) * scales), 0, STEPS)
    return np.where(scales > 0, steps, 0).astype("<u2")


def _within(codes: Codes, low: Numbers, high: Numbers, first: float, last: float) -> Mask:
    """Tell which codes may be of values from `first` to `last`."""
    scales = _scales(low, high)
    lowest = FIRST + _steps(np.maximum(first, low), low, scales)
    highest = FIRST + _steps(np.minimum(last, high), low, scales)
    nothing = (low > high) | (last < low) | (first > high) | (first > last)
    highest[nothing] = NONE
    found: Mask = (codes >= lowest[:, None]) & (codes <= highest[:, None]) | (codes == ODD)
    return found


def _hash(word: str) -> int:
    return zlib.crc32(word.encode(errors="surrogatepass")) & 0xFFFF


def _hashed(texts: Sequence[list[int] | None]) -> Column:
    counts = [ODD if each is None else len(each) for each in texts]
    hashes = [each for every in texts for each in every or ()]
    codes = np.array([*counts, *hashes], dtype="<u2")
    return [float(counts.count(ODD))], codes.tobytes()


@lru_cache(maxsize=64)
def _wanted(words: frozenset[str]) -> Mask:
    """Tell of each hash whether one of the words has it."""
    found: Mask = np.zeros(65_536, dtype=bool)
    found[[_hash(each) for each in words]] = True
    return found


def _with_words(columns: Sequence[bytes], rows: int, condition: AnyTerm) -> Mask:
    every = [_array(each) for each in columns]
    counts = np.stack([each[:rows] for each in every])
    found: Mask = counts == ODD
    counts = np.where(found, 0, counts)
    ends = np.cumsum([len(each) - rows for each in every])
    hits = np.flatnonzero(_wanted(condition.terms)[np.concatenate([e[rows:] for e in every])])
    parts = np.searchsorted(ends, hits, "right")
    for number in np.unique(parts).tolist():
        begins = ends[number - 1] if number else 0
        owners = np.searchsorted(
            np.cumsum(counts[number]), hits[parts == number] - begins, "right"
        )
        found[number, owners] = True
    return found
