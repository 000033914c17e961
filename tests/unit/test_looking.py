"""A look through a store's list: so many pages, and whatever is new at once."""

from __future__ import annotations

from collections.abc import Sequence

from servioticy.domain.workflows import looking
from servioticy.domain.workflows.looking import BEHIND_PAGES, LOOK_PAGES, Place

PAGE = 3


class Listed:
    """A store's list, of which some names are known."""

    def __init__(self, count: int) -> None:
        self.names = [f"{n:05}" for n in range(count)]
        self.known: set[str] = set()
        self.place = Place()

    def page(self) -> tuple[Sequence[str], str | None, bool]:
        """The next one, and whether something of it is new."""
        left = [each for each in self.names if each > self.place.after]
        names = left[:PAGE]
        is_new = not self.known.issuperset(names)
        self.known |= set(names)
        return names, names[-1] if len(left) > PAGE else None, is_new

    def look(self) -> int:
        """Look until the next look's time; how many pages that were."""
        for count in range(1, 10_000):
            self.place, waits = Place.read(self.place.body()).following(*self.page())
            if waits:
                return count
        raise AssertionError("it does not end")


def test_the_first_look_finds_all_at_once() -> None:
    """However long the list is: on each page something is new."""
    store = Listed(100 * PAGE)

    assert store.look() == 100
    assert len(store.known) == 100 * PAGE


def test_a_short_list_is_looked_through_each_time() -> None:
    store = Listed(LOOK_PAGES * PAGE)
    for _ in range(3):
        assert store.look() == LOOK_PAGES
        assert store.place.after == ""


def test_of_a_long_list_each_look_takes_so_many_pages() -> None:
    """And together they go through all of it, again and again."""
    store = Listed(1_000 * PAGE)
    store.look()
    store.known.remove(store.names[1_500])

    counts = [store.look() for _ in range(120)]

    assert max(counts) <= LOOK_PAGES + 1  # one had something new
    assert store.names[1_500] in store.known


def test_what_is_put_behind_the_last_name_is_found_by_the_next_look_but_one() -> None:
    """As where names begin with a date."""
    store = Listed(1_000 * PAGE)
    for _ in range(2):
        store.look()
    store.names += [f"1{n:05}" for n in range(20 * PAGE)]
    store.names.sort()
    late = [f"z{n}" for n in range(8)]
    store.names += late

    store.look()
    store.look()

    assert store.known.issuperset(late)


def test_what_is_behind_the_last_name_does_not_hold_up_the_rest() -> None:
    """Where always more is there than a look gets through."""
    place = Place("m", 0, "m", back="c", is_long=True)
    for count in range(BEHIND_PAGES - 1):
        place, waits = place.following([f"n{count}"], f"n{count}", False)
        assert (place.back, waits) == ("c", False)

    place, waits = place.following(["o"], "o", False)

    assert (place.after, place.back, place.last, waits) == ("c", None, "o", False)


def test_a_place_is_read_as_it_was_written() -> None:
    for each in (Place(), Place("a", 3, "z", "b", True), Place("ü", back="")):
        assert Place.read(each.body()) == each
    assert Place().body() == b"{}"
    assert looking.Place.read(b'{"after":"a"}') == Place("a")
