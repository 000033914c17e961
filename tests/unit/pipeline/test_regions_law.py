"""The serial law across seams: regions of several evaluators in one tree."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from serial_order import (
    LAW,
    assert_equal_to_oracle,
    functions,
    histories,
    mixtures,
)

from pipeline.limits import Limits


class Mixed:
    """A store that says of some composites that another evaluator computes them."""

    def __init__(self, store, others: set[tuple[str, str]]) -> None:
        self._store, self._others = store, others

    def __getattr__(self, name: str):
        return getattr(self._store, name)

    def service_objects(self, ids):
        return map(self._mixed, self._store.service_objects(ids))

    def _mixed(self, service_object):
        definition = service_object.definition
        streams = tuple(
            replace(each, composite=replace(each.composite, evaluator="other"))
            if each.composite is not None and each.ref in self._others
            else each
            for each in definition.streams
        )
        return replace(service_object, definition=replace(definition, streams=streams))


def both(first):
    """Evaluators of both names, where the first is as `first` makes them."""
    return lambda objects: first(objects) | {"other": functions(objects)}


@LAW
@given(data=st.data(), cycles=st.booleans())
def test_regions_equal_the_serial_order(data, cycles, evaluators) -> None:
    """Whoever computes what."""
    objects, codes, others = data.draw(mixtures(cycles=cycles))
    history = data.draw(histories(objects))
    cuts = data.draw(st.lists(st.integers(0, 60), max_size=4))

    assert_equal_to_oracle(
        objects, codes, history, cuts, both(evaluators), known_as=lambda each: Mixed(each, others)
    )


@LAW
@given(data=st.data(), cycles=st.booleans())
def test_regions_with_options_equal_the_serial_order(data, cycles, evaluators) -> None:
    """What settles is a seam of its own, unless it is part of a circle."""
    objects, codes, others = data.draw(mixtures(cycles=cycles, options=True, settling_cycles=True))
    history = data.draw(histories(objects))
    cuts = data.draw(st.lists(st.integers(0, 60), max_size=4))

    assert_equal_to_oracle(
        objects,
        codes,
        history,
        cuts,
        both(evaluators),
        Limits(8, 1000),
        known_as=lambda each: Mixed(each, others),
    )


@LAW
@given(data=st.data(), hops=st.integers(1, 5), computations=st.integers(1, 12))
def test_limits_cut_trees_of_several_regions_where_the_serial_order_does(
    data, hops, computations, evaluators
) -> None:
    """A limit holds for all regions together."""
    objects, codes, others = data.draw(mixtures(cycles=True))
    history = data.draw(histories(objects))
    cuts = data.draw(st.lists(st.integers(0, 60), max_size=4))
    limits = Limits(hops, computations, data.draw(st.integers(1, 400)))

    assert_equal_to_oracle(
        objects,
        codes,
        history,
        cuts,
        both(evaluators),
        limits,
        known_as=lambda each: Mixed(each, others),
    )
