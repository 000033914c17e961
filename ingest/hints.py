"""What is odd about an update that is taken as it is: the units of its time and values."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import orjson

from servioticy.domain.cache import Cache
from servioticy.domain.model import SensorUpdate, Stream, StreamKey, Timestamp
from servioticy.domain.time_units import unlike

ROOM = 100_000
"""Streams whose newest timestamp a process remembers, to tell the next one's unit by: 30 MB at
most. Of the others, and after a start, nothing is told."""
MOST_NAMED = 3
"""Channels that a warning names."""
MOST_OF_A_NAME = 40
SAME = {"Cel": "C", "\N{DEGREE SIGN}C": "C", "\N{DEGREE SIGN}F": "F", "%RH": "%", "degC": "C"}
"""Other words for what people declare: a device that speaks SenML (RFC 8428) has no choice."""


class UpdateHints:
    """Remembers the newest timestamp of each stream, as far as this process has seen it."""

    def __init__(self, clock: Callable[[], float], room: int = ROOM) -> None:
        self._clock = clock
        self._newest: Cache[StreamKey, Timestamp] = Cache(room)

    def of(self, stream: StreamKey | None, update: SensorUpdate, declared: Stream) -> list[str]:
        """Return what to tell whoever sent this update, which the log takes."""
        found = of_units(update, declared)
        if stream is not None and (hint := self.of_time(stream, update.timestamp)):
            found.append(hint)
        return found

    def of_time(self, stream: StreamKey, timestamp: Timestamp) -> str:
        """Return what to tell of its unit of time, and remember it where it is the newest.

        A smaller one is not remembered: what is older than the last computes nothing.
        """
        newest = self._newest.get(stream)
        if newest is None or timestamp > newest:
            self._newest.put(stream, timestamp, 1)
        return "" if newest is None else unlike(timestamp, newest, self._clock())


def of_units(update: SensorUpdate, declared: Stream) -> list[str]:
    """Return the channels whose unit is not the one that is declared for them."""
    document = update.document
    if b'"unit"' not in document or not any(each.unit for each in declared.channels):
        return []
    others = list(_of_another_unit(orjson.loads(document)["channels"], declared))
    more = [f"and {len(others) - MOST_NAMED} more channels"] if len(others) > MOST_NAMED else []
    return others[:MOST_NAMED] + more


def _of_another_unit(sent: dict[str, dict[str, object]], declared: Stream) -> Iterator[str]:
    for channel in declared.channels:
        unit = sent.get(channel.name, {}).get("unit")
        if channel.unit and unit is not None and _plain(unit) != _plain(channel.unit):
            yield (
                f"channel {short(channel.name)} is in {short(channel.unit)}, and this value "
                f"came in {short(str(unit))}: it is kept as it came, and not converted"
            )


def _plain(unit: object) -> object:
    return SAME.get(unit, unit) if isinstance(unit, str) else unit


def short(text: str) -> str:
    """Return a name for a warning: tenants may give long ones."""
    return text if len(text) <= MOST_OF_A_NAME else f"{text[:MOST_OF_A_NAME]}.."
