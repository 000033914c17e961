"""Places on the earth: the forms in which channels have them, boxes and distances."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from servioticy.domain.values import fits

EARTH_METRES = 6_371_008.8
"""The mean radius."""
_GEOHASH = "0123456789bcdefghjkmnpqrstuvwxyz"
_BITS = {letter: number for number, letter in enumerate(_GEOHASH)}


class Place(NamedTuple):
    """A point, in degrees."""

    latitude: float
    longitude: float


class Box(NamedTuple):
    """All points between two latitudes and two longitudes; their borders belong to it.

    Where `west` is larger than `east` it reaches over the meridian of 180 degrees.
    """

    south: float
    north: float
    west: float
    east: float

    def holds(self, place: Place) -> bool:
        """Tell whether a place is in it."""
        if not self.south <= place.latitude <= self.north:
            return False
        if self.west <= self.east:
            return self.west <= place.longitude <= self.east
        return place.longitude >= self.west or place.longitude <= self.east


def place(value: Any) -> Place | None:
    """Return the place that a channel's value tells: "lat,lon", a geohash, or [lon, lat].

    The place of a geohash is the middle of its cell. None: it tells none.
    """
    if not fits(value, "geo_point"):
        return None
    if isinstance(value, list):
        return Place(float(value[1]), float(value[0]))
    if "," not in value:
        return _of_geohash(value.strip().lower())
    latitude, longitude = value.split(",")
    return Place(float(latitude), float(longitude))


def _of_geohash(text: str) -> Place:
    spans = [[-180.0, 180.0], [-90.0, 90.0]]
    which = 0
    for letter in text:
        for bit in (16, 8, 4, 2, 1):
            span = spans[which]
            middle = (span[0] + span[1]) / 2
            span[0 if _BITS[letter] & bit else 1] = middle
            which = 1 - which
    return Place(sum(spans[1]) / 2, sum(spans[0]) / 2)


def metres(one: Place, other: Place) -> float:
    """Return the distance of two places along the earth's surface."""
    south, north = math.radians(one.latitude), math.radians(other.latitude)
    up, along = north - south, math.radians(other.longitude - one.longitude)
    part = math.sin(up / 2) ** 2 + math.cos(south) * math.cos(north) * math.sin(along / 2) ** 2
    return 2 * EARTH_METRES * math.asin(min(1.0, math.sqrt(part)))


def around(middle: Place, radius: float) -> Box:
    """Return a box that holds every place at most so many metres away."""
    angle = radius / EARTH_METRES * (1 + 1e-9) + 1e-9
    up = math.degrees(angle)
    south, north = middle.latitude - up, middle.latitude + up
    if south <= -90 or north >= 90:
        return Box(max(south, -90.0), min(north, 90.0), -180.0, 180.0)
    # Farthest east is not at the middle's own latitude, but nearer to the pole.
    ratio = math.sin(angle) / math.cos(math.radians(middle.latitude))
    along = math.degrees(math.asin(min(1.0, ratio))) + 1e-9
    if along >= 180:
        return Box(south, north, -180.0, 180.0)
    west, east = middle.longitude - along, middle.longitude + along
    return Box(
        south, north, west + 360 if west < -180 else west, east - 360 if east > 180 else east
    )


def between(one: Place, other: Place) -> Box:
    """Return the box of two opposite corners, in any order.

    It reaches over the meridian of 180 degrees where the first corner is named as the western
    one (ahead of the other by more than half of the earth).
    """
    south, north = sorted((_held(one.latitude, 90), _held(other.latitude, 90)))
    first, second = _held(one.longitude, 180), _held(other.longitude, 180)
    if first - second > 180:
        return Box(south, north, first, second)
    west, east = sorted((first, second))
    return Box(south, north, west, east)


def _held(value: float, most: float) -> float:
    return max(-most, min(most, value))
