"""Applications that are not ours and are watched here, for whoever operates the platform."""

from __future__ import annotations

from typing import Any

import msgspec

from monitoring.analysis import analysing, steps
from monitoring.analysis.analysing import Spread
from monitoring.applications import repository, states
from monitoring.applications.repository import NotRegistered, Place
from servioticy.refusals import NotFound
from servioticy.settings import Settings

READ_BYTES = 4 << 20
"""Of the newest measurements: some fifteen thousand, read while somebody waits."""


def listed(settings: Settings) -> dict[str, Any]:
    """Return how each is."""
    return {"data": msgspec.to_builtins(states.of_all(settings.data_path))}


def told(settings: Settings, name: str) -> dict[str, Any]:
    """Return how one is, and how long its steps took of late. Raises NotFound."""
    try:
        found = repository.registered(settings.data_path, name)
    except NotRegistered as error:
        raise NotFound(str(error)) from None
    read = steps.read_newest(Place(settings.data_path, name).files(), READ_BYTES)
    analysis = analysing.analysed(read)
    return {
        **msgspec.to_builtins(states.of(settings.data_path, found)),
        "runtime": [*map(_spread, analysis.runtime)],
        "latency": [*map(_spread, analysis.latency)],
        "sequences": [*map(_spread, analysis.sequences)],
    }


def _spread(each: Spread) -> dict[str, Any]:
    """Milliseconds, as elsewhere in this API."""
    names = ("least", "low", "middle", "high", "p99", "most")
    values = {name: getattr(each, name) / 1e6 for name in names}
    return {"what": each.what, "node": each.node, "count": each.count, **values}
