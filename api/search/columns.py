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


def candidates(condition: Condition, bounds: Sequence[float], codes: bytes, rows: int) -> Mask:
    """Tell for each update of a column whether it may hold for it."""
    if isinstance(condition, NumberWithin):
        return _within(_array(codes), bounds[0], bounds[1], *_ends(condition))
    if isinstance(condition, AnyTerm):
        return _with_words(codes, rows, condition)
    both, box = _array(codes), condition.box
    found = _within(both[:rows], bounds[0], bounds[1], box.south, box.north)
    alongs = both[rows:]
    if box.west <= box.east:
        return found & _within(alongs, bounds[2], bounds[3], box.west, box.east)
    return found & (
        _within(alongs, bounds[2], bounds[3], box.west, math.inf)
        | _within(alongs, bounds[2], bounds[3], -math.inf, box.east)
    )


def timestamps(values: Sequence[int]) -> bytes:
    """Return timestamps as bytes."""
    return np.array(values, dtype="<i8").tobytes()


def chosen(content: bytes, mask: Mask, first: int, last: int) -> list[int]:
    """Return those of the timestamps that are chosen and within the span."""
    found = np.frombuffer(content, dtype="<i8")[mask]
    within: list[int] = found[(found >= first) & (found <= last)].tolist()
    return within


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


def _scale(low: float, high: float) -> float:
    """Return the codes for one unit; none where all values are one, or too far apart."""
    scale = STEPS / (high - low) if high > low else 0.0
    return scale if math.isfinite(scale) else 0.0


def _coded(values: Sequence[float | None]) -> tuple[list[float], Codes, float]:
    """Return the bounds, the codes, and how many values are odd."""
    found = np.array([math.inf if each is None else each for each in values], dtype=float)
    missing = np.array([each is None for each in values], dtype=bool)
    odd = np.isnan(found)
    usual = found[~(missing | odd)]
    low, high = (float(usual.min()), float(usual.max())) if usual.size else (math.inf, -math.inf)
    codes = np.full(len(values), NONE, dtype="<u2")
    if usual.size:
        codes[~(missing | odd)] = FIRST + _steps(usual, low, _scale(low, high))
    codes[odd] = ODD
    return [low, high], codes, float(odd.sum())


def _steps(values: NDArray[np.float64], low: float, scale: float) -> NDArray[np.float64]:
    """Return how many steps above the lowest each is. It grows with the value, or stays."""
    if not scale:
        return np.zeros(len(values))
    steps: NDArray[np.float64] = np.clip(np.floor((values - low) * scale), 0, STEPS)
    return steps


def _step(value: float, low: float, scale: float) -> int:
    """Return the same of one number, by the same arithmetic."""
    return min(max(math.floor((value - low) * scale), 0), STEPS)


def _within(codes: Codes, low: float, high: float, first: float, last: float) -> Mask:
    """Tell which codes may be of values from `first` to `last`."""
    odd: Mask = codes == ODD
    if low > high or first > high or last < low or first > last:
        return odd
    scale = _scale(low, high)
    lowest = FIRST + _step(max(first, low), low, scale)
    highest = FIRST + _step(min(last, high), low, scale)
    found: Mask = odd | ((codes >= lowest) & (codes <= highest))
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


def _with_words(codes: bytes, rows: int, condition: AnyTerm) -> Mask:
    every = _array(codes)
    counts, hashes = every[:rows], every[rows:]
    odd: Mask = counts == ODD
    hit = _wanted(condition.terms)[hashes]
    if not hit.any():
        return odd
    owners = np.repeat(np.arange(rows), np.where(odd, 0, counts))
    found: Mask = odd.copy()
    found[owners[hit]] = True
    return found
