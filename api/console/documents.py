"""Documents as pages show them: streams with their channels, sent by a device or derived."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from api.console.starters import STARTERS

_SAMPLES: Mapping[str, Any] = {"number": 21.5, "integer": 21, "boolean": True, "string": "text"}
_KNOWN = {name: value for each in STARTERS for name, (_, value) in each.channels.items()}


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream of a document."""

    name: str
    channels: Mapping[str, Mapping[str, Any]]
    operator: Mapping[str, Any] | None = None
    """the program that computes it: `name`, `version`; or `of`: the stream that has that"""

    @property
    def is_derived(self) -> bool:
        """Whether it is computed from others."""
        has_code = any("current-value" in each for each in self.channels.values())
        return has_code or self.operator is not None

    def unit(self, channel: str) -> str:
        """Return the declared unit; or empty."""
        return str(self.channels.get(channel, {}).get("unit") or "")

    def kind(self, channel: str) -> str:
        """Return the declared type."""
        return str(self.channels.get(channel, {}).get("type") or "string")

    def sample(self, channel: str) -> Any:
        """Return a value as it may come."""
        return _KNOWN.get(channel, _SAMPLES.get(self.kind(channel), "text"))


def streams_of(document: Mapping[str, Any]) -> list[Stream]:
    """Return the streams, those first that a device sends."""
    found = [
        Stream(name, stream.get("channels") or {}, stream.get("operator") or None)
        for name, stream in (document.get("streams") or {}).items()
    ]
    return sorted(found, key=lambda each: each.is_derived)
