"""Which streams are computed from which, around one Service Object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as some

from servioticy.domain.model import (
    Composite,
    Definition,
    Input,
    ServiceObject,
    Stream,
    StreamRef,
)
from servioticy.domain.surroundings import surroundings

Streams = Mapping[str, Sequence[str]]
"""By name `object/stream`: what it is computed from."""

NAMES = [f"{each}/{stream}" for each in "abc" for stream in "xyz"]
graphs = some.dictionaries(
    some.sampled_from(NAMES), some.lists(some.sampled_from(NAMES), unique=True, max_size=4)
)


def ref(name: str) -> StreamRef:
    return StreamRef(*name.split("/"))


def objects(streams: Streams) -> list[ServiceObject]:
    found = []
    for number, id_ in enumerate(sorted({each.split("/")[0] for each in streams})):
        own = [
            Stream(ref(name), (), _composite(sources) if sources else None)
            for name, sources in streams.items()
            if name.startswith(f"{id_}/")
        ]
        found.append(ServiceObject(Definition(id_, tuple(own), (), False), 1, 1, number, {}))
    return found


def _composite(sources: Sequence[str]) -> Composite:
    inputs = tuple(Input(name, (ref(name),)) for name in sources)
    return Composite("function", inputs, ())


def told(streams: Streams, about: str, most: int = 1000) -> tuple[dict[str, list[str]], bool]:
    found, complete = surroundings(about, objects(streams), most)
    return {str(each): list(map(str, sources)) for each, sources in found.items()}, complete


def test_both_ways_of_a_diamond_are_there() -> None:
    streams = {"a/s": [], "b/l": ["a/s"], "b/r": ["a/s"], "c/join": ["b/l", "b/r"]}
    assert told(streams, "a") == (
        {"b/l": ["a/s"], "b/r": ["a/s"], "c/join": ["b/l", "b/r"]},
        True,
    )


def test_of_what_is_above_only_what_it_reads_itself() -> None:
    """And of its readers only what they are computed from because of it."""
    streams = {"a/s": [], "b/c": ["a/s"], "c/d": ["b/c", "a/s"], "d/other": ["a/s"]}
    assert told(streams, "b") == ({"b/c": ["a/s"], "c/d": ["b/c"]}, True)


def test_a_circle_ends() -> None:
    streams = {"a/s": ["b/c"], "b/c": ["a/s"], "b/d": ["b/c"]}
    assert told(streams, "a") == ({"a/s": ["b/c"], "b/c": ["a/s"], "b/d": ["b/c"]}, True)


def test_what_is_too_much_is_cut() -> None:
    streams: dict[str, list[str]] = {"a/s": []}
    streams |= {f"b/c{number}": ["a/s"] for number in range(5)}
    found, complete = told(streams, "a", 5)
    assert (len(found), complete) == (5, False)
    found, complete = told(streams, "a", 6)
    assert (len(found), complete) == (5, True)


@given(graphs, some.integers(1, 12))
def test_each_edge_is_one_of_the_graph_and_none_is_missing(streams: Streams, most: int) -> None:
    """A source is that of what it reads itself, or reached from the object."""
    found, complete = told(streams, "a", most)
    edges = {(source, each) for each, sources in found.items() for source in sources}
    wanted = {
        (source, each)
        for each, sources in streams.items()
        for source in sources
        if source != each and (each.startswith("a/") or source in _reached(streams))
    }

    assert edges <= wanted
    assert len(edges) <= most
    assert edges == wanted or not complete


def _reached(streams: Streams) -> set[str]:
    reached = {each for each in streams if each.startswith("a/")}
    while True:
        more = {each for each, sources in streams.items() if reached & (set(sources) - {each})}
        if more <= reached:
            return reached
        reached |= more
