"""The demonstration's Service Objects as documents."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from demonstration.series import UNITS

STREAM = "reading"
PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")


@dataclass(frozen=True, slots=True)
class Shown:
    """A composite stream that is shown: which channel of it, and how it is written."""

    document: str
    stream: str
    channel: str
    label: str
    unit: str
    anomalies: str = ""
    """The stream of the same document that has those of its updates which fall out of its band."""


SHOWN = (
    Shown("fahrenheit", "fahrenheit", "temperature", "temperature", "F"),
    Shown("dew_point", "dew_point", "temperature", "dew point", "C"),
    Shown("comfort", "comfort", "mean", "comfort", "%"),
    Shown("occupied", "occupied", "occupied", "occupied", ""),
    Shown("water_main", "watch", "flow", "water main", "l/s"),
)

BANDS = tuple(
    Shown(f"band:{name}", "band", "value", name, UNITS[name], "anomalies")
    for name in ("temperature", "humidity", "co2", "flow")
)
"""One document for each series, `band.json`. Light is none of them: it is 0 all night, without
any deviation, so whatever the smoothed series keeps of the day would be outside."""


def device(name: str) -> dict[str, Any]:
    """Return the document of a device: one stream with one channel of its name."""
    channel = {"type": "number", "unit": UNITS[name]}
    return {
        "name": f"{name} sensor",
        "description": "A device of the demonstration, replayed from a recorded series.",
        "streams": {STREAM: {"channels": {name: channel}}},
    }


def composite(name: str, ids: Mapping[str, str]) -> dict[str, Any]:
    """Return the document of that name, with the devices' ids where it names them.

    One for any series has the device behind its name, as in `band:co2`.
    """
    file, _, series = name.partition(":")
    names = {**ids, "series": ids[series], "channel": series} if series else ids
    document: dict[str, Any] = json.loads(
        PLACEHOLDER.sub(lambda found: names[found[1]], template(file))
    )
    return document


def template(name: str) -> str:
    """Return the document as it is kept, with `{{device}}` where an id belongs."""
    folder = resources.files("demonstration") / "documents"
    return (folder / f"{name}.json").read_text("utf-8")
