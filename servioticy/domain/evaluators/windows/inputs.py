"""Updates as windows take them in, and what a window has of one input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import orjson

from servioticy.domain.windows.aggregates import Aggregate
from servioticy.domain.windows.model import Uses

MAX_KEY_CHARACTERS = 200
"""Of a value of a channel by which there are aggregates."""

MAX_UPDATES_BYTES = 60_000
"""Of the updates themselves of one input in one pane, where code asks for them."""

MAX_UPDATES = 1000
"""Of one input in one window."""


class Taken(NamedTuple):
    """An update, as windows take it in."""

    argument: int
    timestamp: int
    document: bytes
    channels: Mapping[str, Any]
    order: int
    """Which of all it is: of equal timestamps the later one counts as the last."""
    outside: str = ""
    """The name of its stream, where that is another tenant's and may repeat itself."""


class Updates(msgspec.Struct, array_like=True):
    """The updates themselves, with their places, as far as there is room."""

    size: int = 0
    """The bytes of all of them, those that are not here, too."""
    kept: list[tuple[int, int, bytes]] = []

    @property
    def encoded(self) -> bytes:
        """As it is kept: where they are too many nobody gets any."""
        some = self if self.size <= MAX_UPDATES_BYTES else Updates(self.size)
        return _encoder.encode(some)


_updates = msgspec.msgpack.Decoder(Updates)
_encoder = msgspec.msgpack.Encoder()


def updates_in(value: bytes | None) -> Updates:
    """Return those that are kept so; None: none."""
    return Updates() if value is None else _updates.decode(value)


class Input(NamedTuple):
    """What a window has of one input."""

    aggregate: Aggregate
    by: Sequence[Mapping[str, Aggregate]]
    """Of each channel by which there are aggregates."""
    updates: Updates | None = None
    """The updates themselves, where code asks for them."""

    def as_json(self, begin: int, end: int, uses: Uses) -> dict[str, Any]:
        """As code reads it (`sandbox/README.md`)."""
        found: dict[str, Any] = self.aggregate.as_json(begin, end)
        if uses.by:
            found["by"] = {
                channel: {value: each.as_json(begin, end) for value, each in keys.items()}
                for channel, keys in zip(uses.by, self.by, strict=True)
            }
        if self.updates is not None:
            found["updates"] = self._listed()
            if found["updates"] is None:
                found["updatesDropped"] = min(self.aggregate.count - 1, MAX_UPDATES)
        return found

    def _listed(self) -> list[orjson.Fragment] | None:
        """In order of their timestamps; None where there are more than may be kept."""
        updates, count = self.updates or Updates(), self.aggregate.count
        if len(updates.kept) < count or count > MAX_UPDATES:
            return None
        return [orjson.Fragment(document) for *_, document in sorted(updates.kept)]


def channels_of(document: bytes) -> Mapping[str, Any]:
    """The channels of an update, as they stand in it."""
    channels = orjson.loads(document).get("channels")
    if not isinstance(channels, dict):
        return {}
    return {name: each for name, each in channels.items() if isinstance(each, dict)}


def name_of(value: Any) -> str | None:
    """A channel's value as a name for those that have it; None: it has none."""
    if value is None or isinstance(value, list | dict):
        return None
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return text[:MAX_KEY_CHARACTERS]
