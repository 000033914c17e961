"""Batches as SenML packs in JSON (RFC 8428).

What is resolved from a record and the base fields before it: a name, whose last part is the
channel, a value, a unit, a time. Records of one stream and time that follow each other make
one update.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from servioticy.domain.batches.items import Item, Items, Unreadable
from servioticy.domain.documents import BadDocument, json_texts
from servioticy.domain.documents.codes import BAD_NAME, REQUIRED, TOO_MUCH, WRONG_TYPE
from servioticy.domain.documents.updates import UpdateReader
from servioticy.domain.model import SensorUpdate, StreamRef

VERSION = 10
RELATIVE = 2**28
"""Smaller times are seconds from now on (section 4.5.3)."""
VALUES = ("v", "vs", "vb", "vd")
TEXTS = ("bn", "bu", "n", "u", "vs", "vd")
NUMBERS = ("bt", "bv", "bs", "bver", "v", "s", "t", "ut")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9:._/-]*")
MAX_NAME = 1_000
"""Characters of a resolved name: Service Object, stream and channel have 200 each."""
MAX_UNIT = 200
MOST = {"bn": MAX_NAME, "n": MAX_NAME, "bu": MAX_UNIT, "u": MAX_UNIT}
"""A base name or unit that is refused is no base: it stands in no record."""
MAX_RESOLVED = 4 * 1_048_576
"""Characters of names and units of all records of a pack together, resolved: base fields are sent
once and stand in each record after them."""
Clock = Callable[[], float]


class _Resolved(NamedTuple):
    """A record without what it gets from others."""

    place: int
    origin: StreamRef
    channel: str
    content: dict[str, Any]
    timestamp: int
    size: int
    """characters of its name and unit"""


def pack(body: bytes, stream: StreamRef | None, clock: Clock, *, milliseconds: bool) -> Items:
    """Take apart a pack. Raises BadDocument where it is none.

    `milliseconds`: the timestamps of updates are milliseconds; else seconds, as SenML's times
    are, and a time with a fraction is refused.
    """
    records = json_texts.read(body)
    if not isinstance(records, list):
        raise BadDocument("A SenML pack is a JSON array", "", WRONG_TYPE)
    return _items(records, stream, _Units(clock(), milliseconds))


class _Units(NamedTuple):
    """What now is, and in which unit timestamps are."""

    now: float
    milliseconds: bool

    def timestamp(self, seconds: float) -> int:
        """Return a resolved time as a timestamp. Raises BadDocument where it is not whole."""
        relative = seconds < RELATIVE
        value = (self.now + seconds if relative else seconds) * (1000 if self.milliseconds else 1)
        if not math.isfinite(value):
            raise BadDocument("The time is out of range", "/t", WRONG_TYPE)
        if not relative and not self.milliseconds and value != int(value):
            reason = "The time has a fraction of a second: ask for ?timestamps=ms"
            raise BadDocument(reason, "/t", WRONG_TYPE)
        return int(value) if relative else round(value)


def _items(records: list[Any], stream: StreamRef | None, units: _Units) -> Items:
    base: dict[str, Any] = {}
    together: dict[str, _Resolved] = {}
    size = 0
    for index, record in enumerate(records):
        try:
            found = _resolved(index, record, base, stream, units)
        except BadDocument as error:
            yield from _update(together)
            together = {}
            yield Unreadable(index, error)
            continue
        if found is None:
            continue
        size += found.size
        if size > MAX_RESOLVED:
            reason = f"names and units of all records have more than {MAX_RESOLVED} characters"
            raise BadDocument(reason, f"/{index}", TOO_MUCH)
        if together and not _belongs(found, together):
            yield from _update(together)
            together = {}
        together[found.channel] = found
    yield from _update(together)


def _belongs(found: _Resolved, together: Mapping[str, _Resolved]) -> bool:
    """Tell whether it is of the same update; a channel that comes again begins the next one."""
    first = next(iter(together.values()))
    same = (found.origin, found.timestamp) == (first.origin, first.timestamp)
    return same and found.channel not in together


def _update(together: Mapping[str, _Resolved]) -> Items:
    if not together:
        return
    first = next(iter(together.values()))
    channels = {channel: each.content for channel, each in together.items()}
    document = {"channels": channels, "lastUpdate": first.timestamp}

    def read(reader: UpdateReader) -> SensorUpdate:
        return reader.take(document)

    yield Item(first.place, first.origin, read)


def _resolved(
    index: int, record: Any, base: dict[str, Any], stream: StreamRef | None, units: _Units
) -> _Resolved | None:
    """Return what a record says, with the base fields before it; None: only base fields.

    Base fields of a record are for those that follow it, too. Raises BadDocument.
    """
    if not isinstance(record, dict):
        raise BadDocument("A SenML record is a JSON object", "", WRONG_TYPE)
    _check(record)
    base.update((key, record[key]) for key in ("bn", "bt", "bu", "bv") if key in record)
    values = [key for key in VALUES if key in record]
    if not values and "bv" not in base:
        if record.keys() & {"n", "s"}:
            raise BadDocument("The record has no value", "", REQUIRED)
        return None
    if len(values) > 1:
        raise BadDocument(f"The record has {' and '.join(values)}", f"/{values[1]}", WRONG_TYPE)
    key = values[0] if values else "v"
    value = record.get(key, 0)
    content = {"current-value": _sum(value, base) if key == "v" else value}
    unit = record.get("u", base.get("bu"))
    if unit is not None:
        content["unit"] = unit
    name = base.get("bn", "") + record.get("n", "")
    origin, channel = _named(name, stream)
    timestamp = units.timestamp(base.get("bt", 0) + record.get("t", 0))
    return _Resolved(index, origin, channel, content, timestamp, len(name) + len(unit or ""))


def _sum(value: float, base: dict[str, Any]) -> float:
    """Return a value with the base value. Raises BadDocument where JSON could not hold it."""
    found: float = value + base["bv"] if "bv" in base else value
    if (abs(found) > 2**63 and isinstance(found, int)) or not math.isfinite(found):
        raise BadDocument("The value is out of range", "/v", WRONG_TYPE)
    return found


def _check(record: dict[str, Any]) -> None:
    """Raises BadDocument for fields of a wrong type, and for what has to be understood."""
    for key, value in record.items():
        if key in TEXTS:
            right = isinstance(value, str)
        elif key in NUMBERS:
            right = isinstance(value, int | float) and not isinstance(value, bool)
        elif key == "vb":
            right = isinstance(value, bool)
        elif key.endswith("_"):
            raise BadDocument(f"The field {key:.100} is not understood", "", WRONG_TYPE)
        else:
            continue
        if not right:
            raise BadDocument(f"The field {key} is of a wrong type", f"/{key}", WRONG_TYPE)
        if key in MOST and len(value) > MOST[key]:
            reason = f"The field {key} has more than {MOST[key]} characters"
            raise BadDocument(reason, f"/{key}", TOO_MUCH)
    if record.get("bver", VERSION) > VERSION:
        raise BadDocument(f"This is SenML of a version after {VERSION}", "/bver", WRONG_TYPE)


def _named(name: str, stream: StreamRef | None) -> tuple[StreamRef, str]:
    """Return stream and channel of a resolved name. Raises BadDocument.

    `SERVICE OBJECT/STREAM/CHANNEL`; where the stream is given, the channel is what stands
    behind the last slash or colon.
    """
    if _NAME.fullmatch(name) is None:
        raise BadDocument(f"{name[:100]!r} is no name of SenML", "/n", BAD_NAME)
    if stream is not None:
        return stream, re.split("[/:]", name)[-1]
    parts = name.split("/")
    if len(parts) != 3:
        reason = f"The name {name[:100]!r} is not made of Service Object, stream and channel"
        raise BadDocument(reason, "/n", BAD_NAME)
    return StreamRef(parts[0], parts[1]), parts[2]
