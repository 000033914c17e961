"""A composite that is filled later equals one that was defined first; else the serial order."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from hypothesis import assume, given
from hypothesis import strategies as st
from oracle import Object, Oracle
from serial_order import LAW, SIMPLE, graphs, platform_with, run_engine, value_of

from api.backfills.growing import Growing
from api.backfills.region import Concerned
from api.backfills.trees import Stored, merged, trees
from sandbox import argument_names
from sandbox.trees import Bounds
from servioticy.domain.model import LastUpdate, StreamRef

NO_BOUNDS = Bounds(10**6, 10**6)


class World:
    """What a platform has stored, and a backfill of it."""

    def __init__(self, platform, objects, filled: StreamRef) -> None:
        store = platform.partition_store(argument_names)
        self.concerned = Concerned(list(store.service_objects([o.id for o in objects])), filled)
        names = {number: StreamRef(*ref) for ref, number in platform.state.streams.items()}
        self.rows = sorted(
            Stored(
                row.timestamp,
                names[row.stream_id],
                row.document,
                partition,
                row.offset,
                row.position,
            )
            for partition, row in platform.state.updates.values()
        )

    def computed(self, since: int, until: int) -> dict:
        """What is stored of the span that a backfill would compute."""
        return {
            (each.stream, each.timestamp): value_of(each.document)
            for each in self.rows
            if each.stream in self.concerned.computed
            and each.log_position
            and since <= each.timestamp < until
        }

    def filled(self, since: int, until: int, at_once: int, evaluator) -> dict:
        """What a backfill makes of the span, so many trees at once."""
        lasts: dict[StreamRef, LastUpdate] = {}
        for each in self.rows:
            if each.timestamp < since:
                lasts[each.stream] = LastUpdate(each.timestamp, each.document)
        read = self.concerned.read
        histories = [
            [
                each
                for each in self.rows
                if each.stream == ref
                and since <= each.timestamp < until
                and (ref in read or not each.log_position)
            ]
            for ref in self.concerned.streams
        ]
        paths = cache(self.concerned.paths)
        every = [tree for some in merged(histories) for tree in trees(some, paths)]
        growing = Growing(self.concerned, lasts, NO_BOUNDS, evaluator, 1)
        return {
            (row.stream, row.timestamp): value_of(row.document)
            for first in range(0, len(every), at_once)
            for row in growing.grow(every[first : first + at_once])
        }


@st.composite
def spans(draw):
    since = draw(st.integers(0, 20))
    return since, draw(st.integers(since + 1, 30))


def composites(objects) -> list[StreamRef]:
    return [StreamRef(o.id, c.name) for o in objects for c in o.composites]


@LAW
@given(data=st.data(), span=spans(), at_once=st.integers(1, 30))
def test_filled_later_equals_defined_first(data, span, at_once, evaluators) -> None:
    """Where what came from outside came in order, and nothing overwrote anything."""
    objects, codes = data.draw(graphs(cycles=False, options=True))
    objects = [without_staleness_by_input(each) for each in objects]
    refs = [(o.id, name) for o in objects for name in SIMPLE]
    sent = data.draw(
        st.lists(
            st.tuples(st.integers(0, 25), st.sampled_from(refs)),
            min_size=1,
            max_size=40,
            unique=True,
        )
    )
    history = [(ref, at, n) for n, (at, ref) in enumerate(sorted(sent))]
    found = evaluators(objects)
    platform = platform_with(objects, codes)
    run_engine(platform, history, [], found)
    world = World(platform, objects, data.draw(st.sampled_from(composites(objects))))

    assert world.filled(*span, at_once, found["javascript"]) == world.computed(*span)


@LAW
@given(data=st.data(), cycles=st.booleans(), at_once=st.integers(1, 30))
def test_else_it_is_the_serial_order_of_history(data, cycles, at_once, evaluators) -> None:
    """By timestamp and stream, whatever came late or overwrote; sent into composites, too."""
    objects, codes = data.draw(graphs(cycles=cycles))
    filled = data.draw(st.sampled_from(composites(objects)))
    platform = platform_with(objects, codes)
    run_engine(platform, [], [], evaluators(objects))
    concerned = World(platform, objects, filled).concerned.computed
    objects = [with_others_simple(each, concerned) for each in objects]
    refs = [(o.id, name) for o in objects for name in o.simple] * 3 + list(map(tuple, concerned))
    history = data.draw(
        st.lists(
            st.tuples(st.sampled_from(refs), st.integers(0, 25), st.integers(0, 99)),
            min_size=1,
            max_size=40,
        )
    )
    found = evaluators(objects)
    platform = platform_with(objects, codes)
    run_engine(platform, history, [], found)
    world = World(platform, objects, filled)
    assume(world.concerned.computed == concerned)
    oracle = Oracle(objects)
    sent = [each for each in world.rows if not each.log_position]
    for each in sorted(sent, key=lambda row: (row.timestamp, row.stream)):
        oracle.take(tuple(each.stream), each.timestamp, value_of(each.document))
    outside = {(tuple(each.stream), each.timestamp): value_of(each.document) for each in sent}

    made = world.filled(0, 10**6, at_once, found["javascript"])

    assert {(tuple(ref), at): v for (ref, at), v in made.items()} | outside == oracle.stored


def without_staleness_by_input(thing: Object) -> Object:
    return replace(thing, composites=tuple(replace(c, by_input=False) for c in thing.composites))


def with_others_simple(thing: Object, concerned) -> Object:
    """The composites that are not concerned, as streams that somebody sends."""
    kept = tuple(c for c in thing.composites if StreamRef(thing.id, c.name) in concerned)
    others = [c.name for c in thing.composites if c not in kept]
    return replace(thing, simple=(*thing.simple, *others), composites=kept)
