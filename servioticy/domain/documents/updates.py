"""Sensor Updates as devices send them."""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice
from typing import Any

import msgspec
import orjson

from servioticy.dates import NoDate, milliseconds
from servioticy.domain.documents import json_texts
from servioticy.domain.documents.codes import (
    REQUIRED,
    TOO_NESTED,
    UNKNOWN_CHANNEL,
    WRONG_TYPE,
)
from servioticy.domain.documents.errors import WHOLE, BadDocument
from servioticy.domain.documents.spelling import UPDATE, VALUE, check_keys
from servioticy.domain.model import SensorUpdate, Stream
from servioticy.domain.values import fits

MAX_TIMESTAMP = 2**63 - 1
MOST_LISTED = 10
WHEN = "It is when this was measured: milliseconds since 1970, or a date as 2026-11-24T09:30:00Z"
VALUES = 'An update is {"channels":{"NAME":{"current-value":21.5}},"lastUpdate":1795512600250}'
"""Channels that are named to whoever names another one."""


class UpdateReader:
    """Reads updates of one stream: what the stream declares is looked at once for all of them.

    Some channels may be missing; extra fields are kept and returned to readers.
    """

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        """As it is declared."""
        self.types = {each.name: each.type for each in stream.channels}
        """The type of each declared channel."""

    def parse(self, body: bytes | msgspec.Raw) -> SensorUpdate:
        """Read an update as a device sends it. Raises BadDocument: the reason and the place."""
        return self.take(json_texts.read(body))

    def take(self, document: Any) -> SensorUpdate:
        """Take an update that is parsed already, or made of another form. Raises BadDocument."""
        if not isinstance(document, dict):
            raise BadDocument("A Sensor Update has to be a JSON object", "", WRONG_TYPE)
        timestamp = document["lastUpdate"] = _timestamp(document)
        self._check_channels(document)
        try:
            written = orjson.dumps(document)
        except orjson.JSONEncodeError as error:
            reason = "The request is nested too deeply: at most 254 levels"
            raise BadDocument(reason, "", TOO_NESTED) from error
        json_texts.refuse_nul(document, written)
        return SensorUpdate(self.stream.ref, timestamp, written)

    def _check_channels(self, document: dict[str, Any]) -> None:
        if "channels" not in document:
            raise BadDocument("No channels", "", REQUIRED).hinted(VALUES)
        channels = document["channels"]
        if not isinstance(channels, dict) or not channels:
            code = REQUIRED if channels == {} else WRONG_TYPE
            raise BadDocument("No channels", "/channels", code)
        types = self.types
        for name, content in channels.items():
            if name not in types:
                raise BadDocument(
                    f"The Service Object Stream does not have a channel: {name}",
                    WHOLE.at("channels", name).pointer,
                    UNKNOWN_CHANNEL,
                ).hinted(_listed(types))
            _check_value(name, content, types[name])


def _listed(channels: Collection[str]) -> str:
    named = ", ".join(each[:40] for each in islice(channels, MOST_LISTED))
    more = len(channels) - MOST_LISTED
    return f"Its channels are {named}" + (f" and {more} more" if more > 0 else "")


def parse_update(body: bytes, stream: Stream) -> SensorUpdate:
    """Read a device's update of a stream. Raises BadDocument with the reason and the channel."""
    return UpdateReader(stream).parse(body)


def _timestamp(document: dict[str, Any]) -> int:
    """Return when it was measured; a date of ISO 8601 is milliseconds since 1970."""
    if len(document) > len(UPDATE) or "lastUpdate" not in document or "channels" not in document:
        check_keys(document, UPDATE, WHOLE)
    if "lastUpdate" not in document:
        raise BadDocument("The lastUpdate field was not found", "", REQUIRED).hinted(WHEN)
    value = document["lastUpdate"]
    if isinstance(value, str):
        try:
            return milliseconds(value, "a long type")
        except NoDate as error:
            raise BadDocument(f"The lastUpdate {error}", "/lastUpdate", WRONG_TYPE) from None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_TIMESTAMP:
        raise BadDocument("The lastUpdate has to be a long type", "/lastUpdate", WRONG_TYPE)
    return value


def _check_value(name: str, content: Any, type_name: str) -> None:
    if not isinstance(content, dict) or "current-value" not in content:
        check_keys(content, VALUE, WHOLE.at("channels", name, words=f"channel {name}"))
        code = REQUIRED if isinstance(content, dict) else WRONG_TYPE
        reason = f"channel {name} without current-value"
        raise BadDocument(reason, WHOLE.at("channels", name).pointer, code).hinted(VALUES)
    if len(content) > 1 and "unit" not in content:
        check_keys(content, VALUE, WHOLE.at("channels", name, words=f"channel {name}"))
    value = content["current-value"]
    if isinstance(value, dict):
        raise _wrong_value(name, f"current-value cannot be an Object. channel: {name}")
    if not fits(value, type_name):
        reason = (
            f"The Service Object stream channel {name} data type does not match: "
            f"it is declared {type_name}"
        )
        raise _wrong_value(name, reason)


def _wrong_value(channel: str, reason: str) -> BadDocument:
    pointer = WHOLE.at("channels", channel, "current-value").pointer
    return BadDocument(reason, pointer, WRONG_TYPE)
