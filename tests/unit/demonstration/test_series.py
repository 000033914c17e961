"""The recorded series that the demonstration replays."""

from __future__ import annotations

import itertools
import sys
from collections import defaultdict

from demonstration import series


def test_the_room_has_four_devices_of_509_readings_each_in_order() -> None:
    by_device = defaultdict(list)
    for reading in series.room():
        by_device[reading.device].append(reading)

    assert {name: len(each) for name, each in by_device.items()} == dict.fromkeys(
        ("temperature", "humidity", "light", "co2"), 509
    )
    assert by_device["temperature"][0] == series.Reading("temperature", 1423072260, 23.18)
    for readings in by_device.values():
        assert all(a.timestamp < b.timestamp for a, b in itertools.pairwise(readings))


def test_no_two_devices_of_the_room_share_a_timestamp() -> None:
    """The second of two equal timestamps would wake nobody."""
    times = [reading.timestamp for reading in series.room()]

    assert len(set(times)) == len(times)


def test_the_water_main_is_in_order_over_its_change_to_summer_time() -> None:
    readings = list(series.water())

    assert len(readings) == 1268
    assert readings[0].value == 100.59
    assert all(a.timestamp < b.timestamp for a, b in itertools.pairwise(readings))


def test_five_people_marked_the_room() -> None:
    annotations = series.room_annotations()

    assert len(annotations) == 5
    assert annotations["12"] == [234, 415]


def test_river_itself_is_not_imported() -> None:
    """It takes a second and 200 MB, for three files."""
    list(series.water())
    series.room_annotations()

    assert "river" not in sys.modules
