"""A composite that is filled later equals one that was defined first; else the serial order."""

from __future__ import annotations

from dataclasses import replace

from backfilled import World
from hypothesis import assume, given
from hypothesis import strategies as st
from oracle import Object, Oracle
from serial_order import LAW, SIMPLE, graphs, platform_with, run_engine, value_of

from servioticy.domain.model import StreamRef


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
    if any(c.by_input for o in objects for c in o.composites):
        span = 0, span[1]  # what was used before the span is kept nowhere
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
    world = World(
        platform,
        [o.id for o in objects],
        data.draw(st.sampled_from(composites(objects))),
        value_of,
    )

    assert world.filled(*span, at_once, found["javascript"]) == world.computed(*span)


@LAW
@given(data=st.data(), cycles=st.booleans(), at_once=st.integers(1, 30))
def test_else_it_is_the_serial_order_of_history(data, cycles, at_once, evaluators) -> None:
    """By timestamp and stream, whatever came late or overwrote; sent into composites, too."""
    objects, codes = data.draw(graphs(cycles=cycles, options=not cycles))
    filled = data.draw(st.sampled_from(composites(objects)))
    platform = platform_with(objects, codes)
    run_engine(platform, [], [], evaluators(objects))
    concerned = World(platform, [o.id for o in objects], filled, value_of).concerned.computed
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
    world = World(platform, [o.id for o in objects], filled, value_of)
    assume(world.concerned.computed == concerned)
    oracle = Oracle(objects)
    sent = [each for each in world.rows if not each.log_position]
    for each in sorted(sent, key=lambda row: (row.timestamp, row.stream)):
        oracle.take(tuple(each.stream), each.timestamp, value_of(each.document))
    outside = {(tuple(each.stream), each.timestamp): value_of(each.document) for each in sent}

    made = world.filled(0, 10**6, at_once, found["javascript"])

    assert {(tuple(ref), at): v for (ref, at), v in made.items()} | outside == oracle.stored


def with_others_simple(thing: Object, concerned) -> Object:
    """The composites that are not concerned, as streams that somebody sends."""
    kept = tuple(c for c in thing.composites if StreamRef(thing.id, c.name) in concerned)
    others = [c.name for c in thing.composites if c not in kept]
    return replace(thing, simple=(*thing.simple, *others), composites=kept)
