"""The forms that a batch may have, by their Content-Type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from servioticy.domain.batches import csv_rows, json_items, senml
from servioticy.domain.batches.items import Form, Items
from servioticy.domain.model import StreamRef

DEFAULT = "application/json"


class Way(NamedTuple):
    """How times of a pack are understood."""

    now: float
    """seconds since 1970"""
    milliseconds: bool
    """whether the timestamps of updates are milliseconds; else seconds"""


TakeApart = Callable[[bytes, StreamRef | None, Way], Items]


def _whatever(form: Form) -> TakeApart:
    """Return a form in which updates have timestamps of their own."""
    return lambda body, stream, _way: form(body, stream)


def _pack(body: bytes, stream: StreamRef | None, way: Way) -> Items:
    return senml.pack(body, stream, lambda: way.now, milliseconds=way.milliseconds)


FORMS: Mapping[str, TakeApart] = MappingProxyType(
    {
        DEFAULT: _whatever(json_items.array),
        "application/x-ndjson": _whatever(json_items.lines),
        "application/ndjson": _whatever(json_items.lines),
        "application/jsonl": _whatever(json_items.lines),
        "application/senml+json": _pack,
        "text/csv": _whatever(csv_rows.rows),
    }
)
