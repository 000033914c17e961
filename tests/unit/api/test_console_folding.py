"""A graph that is too large for a page, with fewer boxes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from api.console.folding import LIKE, folded
from api.console.topology import shared_out

NAMES = [f"{device}/{stream}" for device in "abcd" for stream in "xyz"]
edges = some.sets(some.tuples(some.sampled_from(NAMES), some.sampled_from(NAMES)), max_size=20)


def device_of(stream: str) -> str:
    return stream.partition("/")[0]


def test_what_fits_stays_as_it_is() -> None:
    found = folded(NAMES, {("a/x", "b/x")}, device_of, (), len(NAMES))
    assert found.boxes == {each: [each] for each in NAMES}
    assert (found.edges, found.is_cut) == ({("a/x", "b/x")}, False)


def test_beyond_that_a_device_is_a_box_and_edges_lead_to_it() -> None:
    drawn = {("a/x", "b/x"), ("a/y", "b/y"), ("a/x", "a/z")}
    found = folded(["a/x", "a/y", "a/z", "b/x", "b/y", "c/x"], drawn, device_of, (), 5)
    assert found.boxes == {"a": ["a/x", "a/y", "a/z"], "b": ["b/x", "b/y"], "c/x": ["c/x"]}
    assert found.edges == {("a", "b")}


def test_a_device_that_is_opened_shows_its_streams() -> None:
    found = folded(NAMES, {("a/x", "b/x")}, device_of, {"a"}, 6)
    assert list(found.boxes) == ["a/x", "a/y", "a/z", "b", "c", "d"]
    assert found.edges == {("a/x", "b")}


def test_devices_that_are_alike_are_one_box_that_opens() -> None:
    fleet = [f"{number}/x" for number in range(20)]
    drawn = {(each, "sum/x") for each in fleet}
    found = folded([*fleet, "sum/x"], drawn, device_of, (), 10)
    like, alone = found.boxes
    assert (found.boxes[like], like.startswith(LIKE), alone) == (fleet, True, "sum/x")
    assert found.edges == {(like, "sum/x")}

    opened = folded([*fleet, "sum/x"], drawn, device_of, {like}, 10)
    assert (len(opened.boxes), opened.is_cut) == (10, True)


def test_a_box_stays_open_while_others_are_opened() -> None:
    fleet = [f"{number}/{stream}" for number in range(20) for stream in "xy"]
    drawn = {(each, "sum/x") for each in fleet if each.endswith("x")}
    streams = [*fleet, "sum/x"]
    (like, *_) = folded(streams, drawn, device_of, (), 10).boxes
    one = folded(streams, drawn, device_of, {like}, 30)
    assert (len(one.boxes), "0" in one.boxes) == (21, True)

    both = folded(streams, drawn, device_of, {like, "0"}, 30)
    assert (len(both.boxes), {"0/x", "0/y", "1"} <= both.boxes.keys()) == (22, True)
    without = folded(streams, drawn, device_of, {"0"}, 10)
    assert (list(without.boxes), len(without.boxes[like])) == (["0/x", "0/y", like, "sum/x"], 38)


def test_streams_that_stand_alone_are_in_no_box() -> None:
    """Whether devices are folded, or those that are alike."""
    by_device = folded(NAMES, {("a/x", "b/x")}, device_of, (), 6, {"a/y", "c/z"})
    assert list(by_device.boxes) == ["a", "a/y", "b", "c", "c/z", "d"]
    fleet = [f"{number}/{stream}" for number in range(20) for stream in "xy"]
    drawn = {(each, "sum/x") for each in fleet if each.endswith("x")}
    alike = folded([*fleet, "sum/x"], drawn, device_of, (), 10, {"7/x"})
    assert ("7/x", "sum/x") in alike.edges
    assert len(alike.boxes) == 4


@given(edges, some.integers(1, 12), some.sets(some.sampled_from("abcd")))
def test_no_stream_stands_twice_and_no_more_boxes_than_may_be(
    drawn: set[tuple[str, str]], most: int, opened: set[str]
) -> None:
    found = folded(NAMES, drawn, device_of, opened, most)
    placed = [each for members in found.boxes.values() for each in members]
    assert len(found.boxes) <= most
    assert len(placed) == len(set(placed))
    assert found.is_cut == (len(placed) < len(NAMES))
    assert all(left in found.boxes and right in found.boxes for left, right in found.edges)


@given(some.lists(some.integers(min_value=0, max_value=50), max_size=20), some.integers(20, 300))
def test_what_is_told_of_boxes_is_shared_out(sizes: list[int], most: int) -> None:
    """All together no more than may be; who is not told whole has no less than any other."""
    each = shared_out(sizes, most)
    told = [min(size, each) for size in sizes if size > 1]

    assert sum(told) <= most
    if sum(size for size in sizes if size > 1) <= most:
        assert told == [size for size in sizes if size > 1]
    else:
        assert sum(told) > most - len(told)
