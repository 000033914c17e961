"""Who watches which stream."""

from __future__ import annotations

from delivery.watchers import Watchers
from servioticy.domain.model import StreamRef

FLOW, LEVEL = StreamRef("pump", "flow"), StreamRef("pump", "level")


def test_watchers_are_those_of_the_stream_in_order() -> None:
    watchers: Watchers[str] = Watchers()
    watchers.add(FLOW, "ann")
    watchers.add(LEVEL, "ben")
    watchers.add(FLOW, "cleo")
    watchers.add(FLOW, "ann")

    assert watchers.of(FLOW) == ["ann", "cleo"]
    assert watchers.of(StreamRef("pump", "other")) == []
    assert len(watchers) == 3


def test_the_list_stays_while_watchers_go() -> None:
    """A watcher may be removed in the middle of a broadcast."""
    watchers: Watchers[str] = Watchers()
    watchers.add(FLOW, "ann")
    found = watchers.of(FLOW)

    watchers.remove(FLOW, "ann")

    assert found == ["ann"]


def test_a_stream_nobody_watches_is_forgotten() -> None:
    """Streams come and go for years; an entry each would be a leak."""
    watchers: Watchers[str] = Watchers()
    watchers.add(FLOW, "ann")

    watchers.remove(FLOW, "ann")
    watchers.remove(FLOW, "ann")

    assert list(watchers) == []
