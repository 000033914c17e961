"""What waits for regions: level after level, however many there are."""

from __future__ import annotations

from engine_builders import D, a_graph, logged

from pipeline.state.batch import BatchState


def test_regions_are_entered_level_after_level() -> None:
    """Each composite that settles is a region behind those that it reads."""
    graph = a_graph(
        {"a": ("d",), "b": ("d", "a"), "c": ("d", "b"), "e": ("d",)},
        options={"diamonds": "settle"},
    )
    origin = graph.stream(D)
    state = BatchState([logged(0, 5)], [[origin]], {})
    state.enter([[graph.plan(origin).entries]])

    found = []
    while entered := state.next_level():
        found.append(sorted(each.key for region in entered for _, each in region.composites()))

    assert found == [["so/a", "so/e"], ["so/b"], ["so/c"]]
