"""Where streams stand on the page of the topology."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from servioticy.domain.layout import HEIGHT, WIDTH, laid_out

NAMES = "abcdefgh"
edges = some.sets(some.tuples(some.sampled_from(NAMES), some.sampled_from(NAMES)), max_size=20)


def test_what_is_derived_stands_right_of_all_that_it_is_computed_from() -> None:
    boxes = laid_out("abcd", [("a", "b"), ("b", "c"), ("a", "c"), ("d", "c")]).boxes

    assert boxes["a"].x == boxes["d"].x < boxes["b"].x < boxes["c"].x


def test_what_is_computed_from_one_stands_beside_it() -> None:
    boxes = laid_out(["a", "b", "c", "of c"], [("c", "of c")]).boxes
    assert boxes["of c"].y == boxes["c"].y


def test_of_nothing_there_is_a_layout() -> None:
    assert laid_out([], []).boxes == {}


@given(edges)
def test_each_has_a_place_of_its_own_whatever_the_graph(drawn: set[tuple[str, str]]) -> None:
    """Also where streams read each other in a circle, or themselves."""
    found = laid_out(NAMES, drawn)

    assert sorted(found.boxes) == sorted(NAMES)
    assert len(set(found.boxes.values())) == len(NAMES)
    assert len(found.lines) == len(drawn)
    assert all(
        box.x + WIDTH <= found.width and box.y + HEIGHT <= found.height
        for box in found.boxes.values()
    )
