"""Sensor Updates as devices send them (contract, section 1.3)."""

from __future__ import annotations

from typing import Any

import orjson

from servioticy.domain.documents.errors import BadDocument
from servioticy.domain.documents.values import fits
from servioticy.domain.model import Channel, SensorUpdate, Stream

_LARGEST = 2**63 - 1


def parse_update(body: bytes, stream: Stream) -> SensorUpdate:
    """Read a device's update of a stream; extra fields are kept and returned to readers.

    Some channels may be missing. Raises BadDocument with the reason and the channel.
    """
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadDocument(f"The request is not valid JSON: {error}") from error
    if not isinstance(document, dict):
        raise BadDocument("A Sensor Update has to be a JSON object")
    timestamp = _timestamp(document)
    _check_channels(document.get("channels"), stream)
    try:
        return SensorUpdate(stream.ref, timestamp, orjson.dumps(document))
    except orjson.JSONEncodeError as error:
        raise BadDocument("The request is nested too deeply: at most 254 levels") from error


def _timestamp(document: dict[str, Any]) -> int:
    if "lastUpdate" not in document:
        raise BadDocument("The lastUpdate field was not found")
    value = document["lastUpdate"]
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _LARGEST:
        raise BadDocument("The lastUpdate has to be a long type")
    return value


def _check_channels(channels: Any, stream: Stream) -> None:
    if not isinstance(channels, dict) or not channels:
        raise BadDocument("No channels")
    declared = {each.name: each for each in stream.channels}
    for name, content in channels.items():
        if name not in declared:
            raise BadDocument(f"The Service Object Stream does not have a channel: {name}")
        _check_value(name, content, declared[name])


def _check_value(name: str, content: Any, channel: Channel) -> None:
    if not isinstance(content, dict) or "current-value" not in content:
        raise BadDocument(f"channel {name} without current-value")
    value = content["current-value"]
    if isinstance(value, dict):
        raise BadDocument(f"current-value cannot be an Object. channel: {name}")
    if not fits(value, channel.type):
        raise BadDocument(
            f"The Service Object stream channel {name} data type does not match: "
            f"it is declared {channel.type}"
        )
