"""What an update says beside the columns of a table: its units, members of one's own, odd values.

It stands in a column of its own, as JSON in the shape of an update, so that a table with it loses
nothing of the update, and a table without it is read as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson

COLUMN = "/more"
"""No channel is called so: names have no slash."""
VALUE = "current-value"


def remainder(document: Mapping[str, Any], shown: Callable[[str, Any], bool]) -> str | None:
    """Return what is left of an update; None where nothing is.

    `shown`: whether the column of that channel gives back this value.
    """
    rest = {key: each for key, each in document.items() if key not in ("lastUpdate", "channels")}
    channels = document.get("channels")
    if isinstance(channels, dict):
        left = {name: _left(name, each, shown) for name, each in channels.items()}
        channels = {name: each for name, each in left.items() if each != {}}
    if channels:
        rest["channels"] = channels
    return orjson.dumps(rest).decode() if rest else None


def _left(name: str, content: Any, shown: Callable[[str, Any], bool]) -> Any:
    if not isinstance(content, dict):
        return content
    is_shown = VALUE in content and shown(name, content[VALUE])
    return {key: each for key, each in content.items() if key != VALUE or not is_shown}


def merged(values: Mapping[str, Any], rest: Any) -> Any:
    """Return the update of these values and what was left of it, which is looked at later."""
    channels: dict[str, Any] = {name: {VALUE: value} for name, value in values.items()}
    if not isinstance(rest, dict):
        return rest
    left = rest.get("channels", {})
    if not isinstance(left, dict):
        return rest
    for name, content in left.items():
        both = isinstance(content, dict) and name in channels
        channels[name] = {**channels[name], **content} if both else content
    return {**rest, "channels": channels}
