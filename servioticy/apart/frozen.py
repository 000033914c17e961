"""Frozen dataclasses on their way to another process of ours, which reads them by `pickle.loads`.

The standard library asks each of them that has slots for its fields, when it is written and when
it is read: of the 10,000 channels of a document both took 37 ms, where they take 15 and 13 so.
"""

from __future__ import annotations

import dataclasses
import io
import pickle
from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any


def written(value: object) -> bytes:
    """Return the value for `pickle.loads`."""
    file = io.BytesIO()
    _Pickler(file, pickle.HIGHEST_PROTOCOL).dump(value)
    return file.getvalue()


class _Pickler(pickle.Pickler):
    """Writes a frozen dataclass as what its class is called with."""

    def reducer_override(self, obj: Any) -> Any:
        """Return how it is made again; NotImplemented: as always."""
        class_: Any = type(obj)
        values = _values(class_)
        return NotImplemented if values is None else (class_, values(obj))


@cache
def _values(class_: Any) -> Callable[[Any], Any] | None:
    """Return what tells the arguments that make an equal one; None: not by its fields alone."""
    if not dataclasses.is_dataclass(class_) or hasattr(class_, "__post_init__"):
        return None
    fields = dataclasses.fields(class_)
    if any(not each.init or each.kw_only for each in fields):
        return None
    if len(fields) < 2:
        return None  # attrgetter has a tuple of several only
    return attrgetter(*(each.name for each in fields))
