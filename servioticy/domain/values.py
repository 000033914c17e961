"""The types of channels: how they are spelt, and which JSON values fit them."""

from __future__ import annotations

import math
import re
from typing import Any

SCALARS = frozenset({"number", "string", "boolean", "geo_point"})
ANY = "any"
"""The type of a channel whose declared one is not understood: no document can choose it."""
_ARRAY = re.compile(r"array\[(number|string|boolean|geo_point)\]")
_NUMBER = re.compile(r"[-+]?(?:[0-9]{1,40}\.?[0-9]{0,40}|\.[0-9]{1,40})(?:[eE][-+]?[0-9]{1,3})?")
"""As JavaScript reads it, too: Python's `float` takes `1_0` and digits of other scripts."""
_GEOHASH = re.compile(r"[0-9b-hjkmnp-z]{1,12}", re.IGNORECASE)


def normal_type(text: str) -> str | None:
    """Return the type in its one spelling (`array[number]`); None if there is no such type."""
    name = re.sub(r"\s+", "", text).lower()
    return name if name in SCALARS or _ARRAY.fullmatch(name) else None


def fits(value: Any, type_name: str) -> bool:
    """Tell whether a device may send this JSON value on a channel of this (normal) type.

    Strict, as in the original: no numeric text for a number. A device's array fits only
    an array type.
    """
    if type_name == "number":
        return isinstance(value, int | float) and not isinstance(value, bool) and _finite(value)
    if type_name == "string":
        return isinstance(value, str)
    if type_name == "boolean":
        return isinstance(value, bool)
    if type_name == "geo_point":
        return _is_place(value)
    array = _ARRAY.fullmatch(type_name)
    if array:
        return isinstance(value, list) and all(fits(each, array[1]) for each in value)
    return type_name == ANY


def _finite(value: float) -> bool:
    return isinstance(value, int) or math.isfinite(value)


def _is_place(value: Any) -> bool:
    """`"lat,lon"`, a geohash, or `[lon, lat]`; not an object."""
    if isinstance(value, list):
        return len(value) == 2 and _in_range(latitude=value[1], longitude=value[0])
    if not isinstance(value, str):
        return False
    if "," not in value:
        return bool(_GEOHASH.fullmatch(value.strip()))
    parts = [part.strip() for part in value.split(",")]
    if len(parts) != 2 or not all(map(_NUMBER.fullmatch, parts)):
        return False
    return _in_range(latitude=float(parts[0]), longitude=float(parts[1]))


def _in_range(latitude: Any, longitude: Any) -> bool:
    return (
        fits(latitude, "number")
        and fits(longitude, "number")
        and -90 <= latitude <= 90
        and -180 <= longitude <= 180
    )
