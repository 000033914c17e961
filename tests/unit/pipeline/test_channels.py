"""Who is fed with streams of others, and how far each has come: asked for once, and bounded."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from pipeline.state import channels
from pipeline.state.channels import Channels
from servioticy.domain.model import StreamRef
from servioticy.ports.borders import Channel, FedReader

A, B, C = (StreamRef("x", name) for name in "abc")


class Store:
    """A store that notes what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[list[StreamRef]] = []
        self.known = {A: Channel({0: (3, 0), 2: (1, 1)}, fed(2)), B: Channel({}, fed(1))}

    def channels(self, partition: int, streams: Iterable[StreamRef]) -> dict[StreamRef, Channel]:
        assert partition == 1
        self.asked.append(list(streams))
        return {each: self.known[each] for each in self.asked[-1] if each in self.known}


def fed(count: int) -> tuple[FedReader, ...]:
    return tuple(FedReader(f"r{n}", 7, 1) for n in range(count))


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def known(store: Store) -> Channels:
    return Channels(1, store)  # type: ignore[arg-type]


def test_streams_are_asked_for_together_and_once(store: Store, known: Channels) -> None:
    known.look_up([A, B, A])
    known.look_up([B, C])
    known.look_up([A, B, C])

    assert store.asked == [[A, B], [C]]
    assert [len(known.readers(each)) for each in (A, B, C)] == [2, 1, 0]


@pytest.mark.parametrize(
    ("source", "place", "taken"),
    [
        (0, (3, 0), False),
        (0, (2, 5), False),
        (0, (3, 1), True),
        (0, (4, 0), True),
        (2, (1, 1), False),
        (2, (1, 2), True),
        (5, (0, 0), True),
        (5, (-4, 0), True),
        (0, (-4, 0), False),
    ],
)
def test_from_each_partition_what_is_later_is_taken(
    known: Channels, source: int, place: tuple[int, int], taken: bool
) -> None:
    known.look_up([A])

    assert known.takes(A, source, place) == taken
    assert not known.takes(A, source, place), "once"


def test_what_is_forgotten_is_looked_up_again(store: Store, known: Channels) -> None:
    """What was noted of it is stored by then."""
    known.look_up([A, B])
    assert known.takes(A, 0, (9, 0))
    store.known[A] = Channel({0: (9, 0)}, fed(3))
    known.forget([A, C])
    known.look_up([A, B])

    assert store.asked[1:] == [[A]]
    assert len(known.readers(A)) == 3
    assert not known.takes(A, 0, (9, 0))
    known.forget_all()
    known.look_up([A, B])
    assert store.asked[2:] == [[A, B]]


@pytest.mark.parametrize(("name", "room"), [("MAX_CHANNELS", 2), ("MAX_READERS", 3)])
def test_the_least_recently_used_go_where_there_is_no_room(
    store: Store, known: Channels, monkeypatch: pytest.MonkeyPatch, name: str, room: int
) -> None:
    store.known[C] = Channel({}, fed(1))
    monkeypatch.setattr(channels, name, room)
    for each in (A, B, C):
        known.look_up([each])
    known.look_up([A])
    known.trim()
    known.look_up([A, C])
    assert store.asked == [[A], [B], [C]]

    known.look_up([B])
    assert store.asked[3:] == [[B]]


def test_one_that_has_too_many_readers_stays(
    store: Store, known: Channels, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be looked up for each of its updates."""
    monkeypatch.setattr(channels, "MAX_READERS", 1)
    known.look_up([B, A])
    known.trim()
    known.look_up([A])

    assert store.asked == [[B, A]]


def test_what_is_forgotten_takes_no_room(
    store: Store, known: Channels, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channels, "MAX_READERS", 3)
    for _ in range(5):
        known.look_up([A, B])
        known.forget([A])
    known.look_up([A])
    known.trim()
    known.look_up([A, B])

    assert store.asked[-1] == [A]
