"""Two real series that come inside the package `river`, as readings of devices.

An office room (Candanedo and Feldheim 2016; every 16 minutes for six days) and a water main
(Tecnojest, hourly for two months). The files are found without importing river, which would
load all of it.
"""

from __future__ import annotations

import ast
import csv
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from servioticy.errors import SetupError

UNITS = {"temperature": "C", "humidity": "%", "light": "lux", "co2": "ppm", "flow": "l/s"}
"""The devices, each a Service Object of its own with one channel of its name."""

ROOM_COLUMNS = {"temperature": "V1", "humidity": "V2", "light": "V3", "co2": "V4"}


@dataclass(frozen=True, slots=True)
class Reading:
    """What a device measured, and when, in seconds."""

    device: str
    timestamp: int
    value: float


def room() -> Iterator[Reading]:
    """Yield the room's four devices, in order of time.

    The file has one time for all four. Devices of their own have clocks of their own, so
    each is a second after the one before; with equal timestamps only the first of them
    would wake a stream that reads several (the second is no news).
    """
    for row in _rows(_folder() / "drift" / "datasets" / "occupancy.csv"):
        at = datetime.fromisoformat(row["time"]).replace(tzinfo=UTC)
        for second, (device, column) in enumerate(ROOM_COLUMNS.items()):
            yield Reading(device, int(at.timestamp()) + second, float(row[column]))


def water() -> Iterator[Reading]:
    """Yield the water main's flow, in order of time."""
    for row in _rows(_folder() / "datasets" / "water-flow.csv"):
        at = datetime.fromisoformat(row["Time"])
        yield Reading("flow", int(at.timestamp()), float(row["Water flow [l/s]"]))


def room_annotations() -> dict[str, list[int]]:
    """At which rows each of five people saw the room's series change (Turing benchmark).

    They stand in river's source as an argument of a call, and are read from there.
    """
    source = (_folder() / "drift" / "datasets" / "occupancy.py").read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.keyword) and node.arg == "annotations":
            found: dict[str, list[int]] = ast.literal_eval(node.value)
            return found
    raise SetupError("this river has no annotations of its occupancy series; install river 0.26.1")


def _rows(file: Path) -> Iterator[dict[str, str]]:
    try:
        with file.open(encoding="utf-8", newline="") as lines:
            yield from csv.DictReader(lines)
    except OSError as error:
        raise SetupError(f"river lacks {file.name}; install river 0.26.1: {error}") from error


def _folder() -> Path:
    found = importlib.util.find_spec("river")
    if found is None or found.origin is None:
        raise SetupError(
            "the demonstration needs the package river: pip install 'servioticy[demo]'"
        )
    return Path(found.origin).parent
