"""Sensor Updates as devices send them."""

from __future__ import annotations

from typing import Any

import orjson

from servioticy.domain.documents.codes import (
    NOT_JSON,
    REQUIRED,
    TOO_NESTED,
    UNKNOWN_CHANNEL,
    WRONG_TYPE,
)
from servioticy.domain.documents.errors import WHOLE, BadDocument
from servioticy.domain.documents.values import fits
from servioticy.domain.model import Channel, SensorUpdate, Stream

MAX_TIMESTAMP = 2**63 - 1


def parse_update(body: bytes, stream: Stream) -> SensorUpdate:
    """Read a device's update of a stream; extra fields are kept and returned to readers.

    Some channels may be missing. Raises BadDocument with the reason and the channel.
    """
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadDocument(f"The request is not valid JSON: {error}", "", NOT_JSON) from error
    if not isinstance(document, dict):
        raise BadDocument("A Sensor Update has to be a JSON object", "", WRONG_TYPE)
    timestamp = _timestamp(document)
    _check_channels(document, stream)
    try:
        return SensorUpdate(stream.ref, timestamp, orjson.dumps(document))
    except orjson.JSONEncodeError as error:
        reason = "The request is nested too deeply: at most 254 levels"
        raise BadDocument(reason, "", TOO_NESTED) from error


def _timestamp(document: dict[str, Any]) -> int:
    if "lastUpdate" not in document:
        raise BadDocument("The lastUpdate field was not found", "", REQUIRED)
    value = document["lastUpdate"]
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_TIMESTAMP:
        raise BadDocument("The lastUpdate has to be a long type", "/lastUpdate", WRONG_TYPE)
    return value


def _check_channels(document: dict[str, Any], stream: Stream) -> None:
    if "channels" not in document:
        raise BadDocument("No channels", "", REQUIRED)
    channels = document["channels"]
    if not isinstance(channels, dict) or not channels:
        raise BadDocument("No channels", "/channels", REQUIRED if channels == {} else WRONG_TYPE)
    declared = {each.name: each for each in stream.channels}
    for name, content in channels.items():
        if name not in declared:
            raise BadDocument(
                f"The Service Object Stream does not have a channel: {name}",
                WHOLE.at("channels", name).pointer,
                UNKNOWN_CHANNEL,
            )
        _check_value(name, content, declared[name])


def _check_value(name: str, content: Any, channel: Channel) -> None:
    if not isinstance(content, dict) or "current-value" not in content:
        code = REQUIRED if isinstance(content, dict) else WRONG_TYPE
        reason = f"channel {name} without current-value"
        raise BadDocument(reason, WHOLE.at("channels", name).pointer, code)
    value = content["current-value"]
    if isinstance(value, dict):
        raise _wrong_value(name, f"current-value cannot be an Object. channel: {name}")
    if not fits(value, channel.type):
        reason = (
            f"The Service Object stream channel {name} data type does not match: "
            f"it is declared {channel.type}"
        )
        raise _wrong_value(name, reason)


def _wrong_value(channel: str, reason: str) -> BadDocument:
    pointer = WHOLE.at("channels", channel, "current-value").pointer
    return BadDocument(reason, pointer, WRONG_TYPE)
