"""The picture of the bands."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from demonstration import plot, smoothing
from demonstration.plot import Panel
from demonstration.smoothing import Point

SVG = "{http://www.w3.org/2000/svg}"
POINTS = [Point(at, value, 20.0, 19.0, 21.0) for at, value in [(0, 20.0), (60, 25.0), (120, 18.5)]]
ROOM = Panel("room <1> & more", "C", POINTS, {60, 120})
FLOW = Panel("flow", "l/s", POINTS[:2], set())
NOTHING = Panel("new", "C", [], set())


def elements(picture: str, name: str, of: str = "") -> list[ElementTree.Element]:
    found = ElementTree.fromstring(picture).iter(SVG + name)
    return [each for each in found if not of or each.get("class") == of]


def corners(element: ElementTree.Element) -> list[tuple[float, float]]:
    pairs = (pair.split(",") for pair in element.attrib["points"].split())
    return [(float(x), float(y)) for x, y in pairs]


def test_each_series_has_its_curves_band_and_anomalies() -> None:
    """The first of each curve is that of the legend."""
    picture = plot.drawn([ROOM, FLOW])

    for curve in ("value", "smoothed"):
        lines = [corners(each) for each in elements(picture, "polyline", curve)]
        assert [len(each) for each in lines] == [2, 3, 2]
    assert [len(corners(each)) for each in elements(picture, "polygon", "band")] == [6, 4]
    assert len(elements(picture, "circle", "anomaly")) == 1 + 2


def test_anomalies_are_where_the_curve_is_and_outside_the_band() -> None:
    picture = plot.drawn([ROOM])
    _, value = (corners(each) for each in elements(picture, "polyline", "value"))
    (band,) = (corners(each) for each in elements(picture, "polygon", "band"))
    _, *circles = elements(picture, "circle")

    assert [(float(c.attrib["cx"]), float(c.attrib["cy"])) for c in circles] == value[1:]
    high, low = band[0][1], band[-1][1]
    assert value[1][1] < high < value[0][1] < low < value[2][1], "y grows downwards"
    assert [each.findtext(SVG + "title") for each in circles] == [
        "1970-01-01 00:01 UTC: 25 C, expected 19.00 to 21.00",
        "1970-01-01 00:02 UTC: 18.5 C, expected 19.00 to 21.00",
    ]


def test_it_says_what_it_is_to_who_does_not_see_it() -> None:
    root = ElementTree.fromstring(plot.drawn([ROOM, FLOW]))
    named = {each.get("id"): each.text or "" for each in root.iter() if each.get("id")}

    assert root.get("role") == "img"
    assert set(root.attrib["aria-labelledby"].split()) == set(named)
    assert "room <1> & more: 3 values from 1970-01-01 to 1970-01-01, 2 anomalies" in named["about"]
    assert "flow: 2 values" in named["about"]


def test_each_class_has_a_colour_on_a_light_and_on_a_dark_ground() -> None:
    light, dark = plot.STYLE.split("@media (prefers-color-scheme: dark)")
    for name in ("ground", "axis", "band", "smoothed", "value", "anomaly"):
        assert f".{name} {{" in light
        assert f".{name} {{" in dark


def test_all_of_it_is_within_the_picture() -> None:
    picture = plot.drawn([ROOM, FLOW, NOTHING])
    _, _, width, height = map(float, ElementTree.fromstring(picture).attrib["viewBox"].split())

    drawn = [*elements(picture, "polyline"), *elements(picture, "polygon")]
    places = [corner for each in drawn for corner in corners(each)]
    places += [(float(e.attrib["x"]), float(e.attrib["y"])) for e in elements(picture, "text")]
    assert len(places) > 20
    assert all(0 <= x <= width and 0 <= y <= height for x, y in places)


@pytest.mark.parametrize("value", [0.0, 7.5])
def test_a_series_that_stands_still_is_drawn(value: float) -> None:
    still = list(smoothing.band((at, value) for at in range(30)))
    _, line = elements(plot.drawn([Panel("still", "", still, set())]), "polyline", "value")

    assert len(corners(line)) == len(still)


def test_points_are_those_of_stored_updates() -> None:
    channels = {name: {"current-value": number} for number, name in enumerate(Point._fields[1:])}
    stored = [{"channels": channels, "lastUpdate": 7}]

    assert plot.points(stored) == [Point(7, 0, 1, 2, 3)]
    assert plot.times(stored) == {7}
