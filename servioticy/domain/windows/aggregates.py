"""What is kept of the updates in a window, in the place of them.

An aggregate is told by the updates alone: not by their order, nor by how they were cut into parts
that were merged. So panes can be merged to windows, and the same log makes the same results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import accumulate
from sys import float_info
from typing import Any, TypeAlias

from msgspec import msgpack

from servioticy.domain.windows.moments import Moments
from servioticy.domain.windows.sketches import Sketch
from servioticy.domain.windows.values import (
    as_bytes,
    as_int,
    packed,
    plain,
    short,
    unpacked,
)

FORM = 1
"""Of what is stored; another one is another number."""
MAX_CHANNELS = 1000
MOST = int(float_info.max)
"""What is larger is no number to a script, and counted as a value of another kind."""

Place: TypeAlias = tuple[int, int]
"""Where an update stands among others: its timestamp, and a number that orders equal ones."""


_ENCODER = msgpack.Encoder()
_DECODER = msgpack.Decoder(tuple[int, bool, int, dict[str, list[Any]]], ext_hook=unpacked)


class TooManyChannels(ValueError):
    """An aggregate would have more channels than it may."""


class _Channel:
    """What is known of the values of one channel.

    `first` and `last` are the values at the least and at the greatest place.
    """

    __slots__ = (
        "count",
        "first",
        "first_place",
        "last",
        "last_place",
        "max",
        "min",
        "moments",
        "sketch",
    )

    def __init__(self, value: Any, place: Place) -> None:
        self.count = 0
        self.first = self.last = value
        self.first_place = self.last_place = place
        self.moments: Moments | None = None
        self.min: float = 0
        self.max: float = 0
        self.sketch: Sketch | None = None

    def add_number(self, number: float, has_sketch: bool) -> None:
        moments = self.moments
        if moments is None:
            moments = self.moments = Moments()
            self.min = self.max = number
            if has_sketch:
                self.sketch = Sketch()
        elif number < self.min:
            self.min = number
        elif number > self.max:
            self.max = number
        moments.add(number)
        if self.sketch is not None:
            self.sketch.add(number)

    def merge(self, other: _Channel) -> None:
        self.count += other.count
        if other.first_place < self.first_place:
            self.first_place, self.first = other.first_place, other.first
        if other.last_place > self.last_place:
            self.last_place, self.last = other.last_place, other.last
        if other.moments is not None:
            self._merge_numbers(other, other.moments)

    def _merge_numbers(self, other: _Channel, moments: Moments) -> None:
        if self.moments is None:
            self.moments, self.min, self.max = Moments(), other.min, other.max
            self.sketch = None if other.sketch is None else Sketch()
        self.moments.merge(moments)
        self.min = min(self.min, other.min)
        self.max = max(self.max, other.max)
        if self.sketch is not None and other.sketch is not None:
            self.sketch.merge(other.sketch)

    def encode(self) -> list[Any]:
        """Return it as MessagePack takes it: seven things, six more of numbers, four more of a
        sketch."""
        parts = [
            self.count,
            *self.first_place,
            packed(self.first),
            *self.last_place,
            packed(self.last),
        ]
        moments, sketch = self.moments, self.sketch
        if moments is not None:
            total, squares = as_bytes(moments.total), as_bytes(moments.squares)
            least, most = packed(plain(self.min)), packed(plain(self.max))
            parts += [moments.count, moments.shift, total, squares, least, most]
        if sketch is not None:
            positive, negative = _apart(sketch.positive), _apart(sketch.negative)
            parts += [sketch.level, sketch.zero, positive, negative]
        return parts

    @staticmethod
    def decode(parts: list[Any]) -> _Channel:
        channel = _Channel(parts[3], (parts[1], parts[2]))
        channel.count = parts[0]
        channel.last_place, channel.last = (parts[4], parts[5]), parts[6]
        if len(parts) > 7:
            count, shift, total, squares, channel.min, channel.max = parts[7:13]
            channel.moments = Moments(count, shift, as_int(total), as_int(squares))
        if len(parts) > 13:
            level, zero, positive, negative = parts[13:]
            channel.sketch = Sketch(level, zero, _together(positive), _together(negative))
        return channel


class Aggregate:
    """Of some updates: how many there are, and of each of their channels what is known."""

    __slots__ = ("_channels", "_has_sketches", "count")

    def __init__(self, sketches: bool = False) -> None:
        """`sketches`: whether quantiles can be asked for."""
        self.count = 0
        self._has_sketches = sketches
        self._channels: dict[str, _Channel] = {}

    def add(self, channels: Mapping[str, Mapping[str, Any]], timestamp: int, order: int) -> None:
        """Take an update, with its channels as it has them.

        No two updates of one timestamp have the same order. A channel whose value is null is as
        one that is not there. Raises TooManyChannels, and has not taken it then.
        """
        known = self._channels
        if len(known) + len(channels) > MAX_CHANNELS:
            self._refuse_too_many(
                name for name, each in channels.items() if each.get("current-value") is not None
            )
        self.count += 1
        place = (timestamp, order)
        for name, content in channels.items():
            value: Any = content.get("current-value")
            kind = type(value)
            is_number = kind is float or (kind is int and -MOST <= value <= MOST)
            if not is_number:
                if value is None:
                    continue
                value = short(value)
            channel = known.get(name)
            if channel is None:
                channel = known[name] = _Channel(value, place)
            elif place > channel.last_place:
                channel.last_place, channel.last = place, value
            elif place < channel.first_place:
                channel.first_place, channel.first = place, value
            channel.count += 1
            if is_number:
                channel.add_number(value, self._has_sketches)

    def merge(self, other: Aggregate) -> None:
        """Take all that the other one has, which stays as it is. Raises TooManyChannels."""
        known = self._channels
        if len(known) + len(other._channels) > MAX_CHANNELS:
            self._refuse_too_many(other._channels)
        self.count += other.count
        for name, theirs in other._channels.items():
            mine = known.get(name)
            if mine is None:
                mine = known[name] = _Channel(theirs.first, theirs.first_place)
            mine.merge(theirs)

    def quantile(self, channel: str, q: float) -> float | None:
        """Return the number below which a part q of a channel's numbers is; None of no numbers.

        To one part in a hundred, and by the rule of Sketch.quantile.
        """
        known = self._channels.get(channel)
        if known is None or known.sketch is None:
            return None
        return known.sketch.quantile(q, known.min, known.max)

    def encode(self) -> bytes:
        """Return it as bytes: the same for all aggregates of the same updates."""
        channels = {name: each.encode() for name, each in sorted(self._channels.items())}
        return _ENCODER.encode([FORM, self._has_sketches, self.count, channels])

    @staticmethod
    def decode(content: bytes) -> Aggregate:
        """Return what was encoded. Raises ValueError for anything else."""
        form, has_sketches, count, channels = _DECODER.decode(content)
        if form != FORM:
            raise ValueError(f"an aggregate of form {form}, which is not known")
        found = Aggregate(has_sketches)
        found.count = count
        found._channels = {name: _Channel.decode(parts) for name, parts in channels.items()}
        return found

    def as_json(self, begin: int | None, end: int | None) -> dict[str, Any]:
        """Return it as scripts and templates read it, of a window from `begin` to `end`.

        Channels stand in the order of their names. Sums and the like are of those that have
        numbers; null, where no float is as large, and for the deviation of a single one.
        """
        every = dict(sorted(self._channels.items()))
        numbers = {
            name: (each, each.moments) for name, each in every.items() if each.moments is not None
        }
        found: dict[str, Any] = {
            "count": self.count,
            "start": begin,
            "end": end,
            "sum": {name: _told(of.sum()) for name, (_, of) in numbers.items()},
            "mean": {name: _told(of.mean()) for name, (_, of) in numbers.items()},
            "min": {name: plain(each.min) for name, (each, _) in numbers.items()},
            "max": {name: plain(each.max) for name, (each, _) in numbers.items()},
            "stdev": {name: _told(of.stdev()) for name, (_, of) in numbers.items()},
            "first": {name: each.first for name, each in every.items()},
            "last": {name: each.last for name, each in every.items()},
            "counts": {name: each.count for name, each in every.items()},
        }
        if self._has_sketches:
            found["sketches"] = {
                name: each.sketch.as_json()
                for name, each in every.items()
                if each.sketch is not None
            }
        return found

    def _refuse_too_many(self, names: Iterable[str]) -> None:
        if len(self._channels.keys() | names) > MAX_CHANNELS:
            raise TooManyChannels(f"a window has more than {MAX_CHANNELS} channels")


def _told(number: float | None) -> float | None:
    return None if number is None else plain(number)


def _apart(buckets: Mapping[int, int]) -> list[int]:
    """Return the buckets as a list: each index less the one before, and its count."""
    found: list[int] = []
    before = 0
    for index, count in sorted(buckets.items()):
        found += (index - before, count)
        before = index
    return found


def _together(parts: list[int]) -> dict[int, int]:
    """Return the buckets of such a list."""
    return dict(zip(accumulate(parts[::2]), parts[1::2], strict=True))
