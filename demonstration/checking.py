"""What the demonstration's streams must hold, computed here from the series once more.

The platform computes it in JavaScript, through its log, its graph and its store. Here it is
a loop in Python over the same readings: where both agree, nothing was lost, doubled,
computed out of order, or computed wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from demonstration import smoothing
from demonstration.series import Reading
from demonstration.templates import BANDS

Values = dict[str, float | bool]
"""The value of each channel."""

Updates = dict[int, Values]
"""Those of a stream, by timestamp."""

TOLERANCE = 1e-9
"""Relative: the logarithms of two languages may differ in the last digit."""

MAX_DIFFERENCES = 10


def expected(room: Sequence[Reading], water: Sequence[Reading]) -> dict[tuple[str, str], Updates]:
    """Return what each stream holds once both series are computed, by document and stream."""
    scores = dict(_stream(room, _scores))
    bands = {
        (each.document, stream): updates
        for each in BANDS
        for stream, updates in _banded([*room, *water], each.label).items()
    }
    return {
        ("fahrenheit", "fahrenheit"): dict(_stream(room, _fahrenheit)),
        ("dew_point", "dew_point"): dict(_stream(room, _dew_point)),
        ("comfort", "scores"): scores,
        ("comfort", "comfort"): {at: {"mean": _mean(each)} for at, each in scores.items()},
        ("occupied", "occupied"): dict(_stream(room, _occupied)),
        ("water_main", "watch"): dict(_stream(water, _watch)),
        **bands,
    }


def differences(wanted: Updates, stored: Sequence[Mapping[str, Any]]) -> list[str]:
    """In which updates the stored stream differs, a line each; only the first ones.

    What is newer than all that is wanted was sent by somebody else, and is left out.
    """
    newest = max(wanted, default=0)
    found = {
        each["lastUpdate"]: {
            name: channel["current-value"] for name, channel in each["channels"].items()
        }
        for each in stored
        if each["lastUpdate"] <= newest
    }
    wrong = [
        f"at {at}: {found.get(at, 'nothing')} instead of {wanted.get(at, 'nothing')}"
        for at in sorted(wanted.keys() | found.keys())
        if not _same(wanted.get(at), found.get(at))
    ]
    more = len(wrong) - MAX_DIFFERENCES
    return wrong[:MAX_DIFFERENCES] + ([f"and {more} more"] if more > 0 else [])


class Woken(NamedTuple):
    """What a stream is computed from."""

    reading: Reading
    """The one that wakes it."""
    newest: Mapping[str, float]
    """The value of each device that has sent something."""
    last: Mapping[str, Any] | None
    """The stream's own last output."""


Compute = Callable[[Woken], Values | None]


def _stream(readings: Sequence[Reading], compute: Compute) -> Iterator[tuple[int, Values]]:
    """Yield a stream's updates by timestamp, which is that of the reading that woke it."""
    newest: dict[str, float] = {}
    last: Values | None = None
    for reading in readings:
        newest[reading.device] = reading.value
        output = compute(Woken(reading, newest, last))
        if output is not None:
            last = output
            yield reading.timestamp, output


def _fahrenheit(woken: Woken) -> Values | None:
    reading = woken.reading
    if reading.device != "temperature" or not -30 < reading.value < 60:
        return None
    return {"temperature": reading.value * 1.8 + 32}


def _dew_point(woken: Woken) -> Values | None:
    reading, newest, _ = woken
    if reading.device not in ("temperature", "humidity") or len(newest.keys() & _AIR) < len(_AIR):
        return None
    t, h = newest["temperature"], newest["humidity"]
    g = math.log(h / 100) + 17.62 * t / (243.12 + t)
    return {"temperature": math.floor(24312 * g / (17.62 - g) + 0.5) / 100}


_AIR = {"temperature", "humidity"}

_SCORE: dict[str, Callable[[float], float]] = {
    "temperature": lambda t: max(0, 100 - 25 * max(0, 20 - t, t - 24)),
    "humidity": lambda h: max(0, 100 - 5 * max(0, 30 - h, h - 60)),
    "co2": lambda c: max(0, 100 - 0.1 * max(0, c - 800)),
}


def _scores(woken: Woken) -> Values | None:
    reading, _, last = woken
    if reading.device not in _SCORE:
        return None
    before = last or dict.fromkeys(_SCORE, -1)
    return {**before, reading.device: _SCORE[reading.device](reading.value)}


def _mean(scores: Mapping[str, float]) -> float:
    heard = [scores[name] for name in _SCORE if scores[name] >= 0]
    return sum(heard) / len(heard)


def _occupied(woken: Woken) -> Values | None:
    reading, newest, last = woken
    if reading.device != "co2" or "light" not in newest:
        return None
    lit = newest["light"] > 100
    if last is None:
        occupied = False
    elif last["occupied"]:
        occupied = lit or last["dark"] < 1
    else:
        occupied = lit and reading.value - last["co2"] > 15
    dark = 0 if lit else (last["dark"] if last else 0) + 1
    return {"occupied": occupied, "co2": reading.value, "dark": dark}


def _watch(woken: Woken) -> Values:
    flow, last = woken.reading.value, woken.last
    if last is None:
        return {"anomaly": False, "flow": flow, "ema": flow, "deviation": 1}
    distance = flow - last["ema"]
    limit = 5 * max(0.3, last["deviation"])
    return {
        "anomaly": abs(distance) > limit,
        "flow": flow,
        "ema": last["ema"] + 0.05 * max(-limit, min(limit, distance)),
        "deviation": last["deviation"] + 0.05 * (min(limit, abs(distance)) - last["deviation"]),
    }


def _banded(readings: Sequence[Reading], device: str) -> dict[str, Updates]:
    """Return what the streams of `band.json` hold for a device."""
    series = [(each.timestamp, each.value) for each in readings if each.device == device]
    points = list(smoothing.band(series))
    means = smoothing.smoothed(value for _, value in series)
    return {
        "smoothed": {
            at: {"value": value, "mean": mean}
            for (at, value), mean in zip(series, means, strict=True)
        },
        "band": {
            each.at: {name: value for name, value in each._asdict().items() if name != "at"}
            for each in points
        },
        "anomalies": {each.at: {"value": each.value} for each in points if each.is_anomaly},
    }


def _same(one: Values | None, other: Values | None) -> bool:
    if one is None or other is None or one.keys() != other.keys():
        return False
    return all(equal(value, other[name]) for name, value in one.items())


def equal(one: object, other: object) -> bool:
    """Tell whether two values of a channel are the same, as far as two languages can tell."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if not isinstance(one, (int, float)) or not isinstance(other, (int, float)):
        return False
    return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
