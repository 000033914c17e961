"""What came around a moment, in intervals, and as a picture."""

from __future__ import annotations

from xml.etree import ElementTree

from benchmarks.curve import Rate, drawn, lines, rates


def test_each_interval_tells_what_came_in_it() -> None:
    """Its begin counts, its end does not; of several moments the mean, the least and the most."""
    came = [9.5, 10.0, 10.25, 10.5, 20.0, 20.75]
    found = rates(came, [10.0, 20.0], 0.5, 1.0, 0.5)

    assert found == [Rate(-0.5, 1.0, 0.0, 2.0), Rate(0.0, 3.0, 2.0, 4.0), Rate(0.5, 2.0, 2.0, 2.0)]
    assert [line.split() for line in lines(found)][1:] == [
        ["-500", "1", "0", "2"],
        ["0", "3", "2", "4"],
        ["500", "2", "2", "2"],
    ]


def test_it_is_drawn_with_the_moment_in_it() -> None:
    """Also where nothing came at all."""
    shown = drawn(
        [Rate(-1.0, 5.0, 0.0, 10.0), Rate(0.0, 5.0, 5.0, 5.0), Rate(1.0, 0, 0, 0)], "a & b"
    )
    root = ElementTree.fromstring(shown)
    space = "{http://www.w3.org/2000/svg}"
    mean = root.find(f"{space}polyline")
    moment = root.find(f"{space}line")

    assert mean is not None and moment is not None
    places = [point.split(",")[0] for point in mean.attrib["points"].split()]
    assert (len(places), places[1]) == (3, moment.attrib["x1"])
    assert "nan" not in drawn([Rate(0.0, 0.0, 0.0, 0.0)], "nothing")
