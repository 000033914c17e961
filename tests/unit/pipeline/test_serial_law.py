"""The engine in batches equals the oracle one update at a time, on random graphs and histories."""

from __future__ import annotations

from unittest import mock

from hypothesis import given
from hypothesis import strategies as st
from serial_order import LAW, assert_equal_to_oracle, graphs, histories

from pipeline.limits import Limits


@LAW
@given(data=st.data())
def test_batches_equal_the_serial_order_without_cycles(data, evaluators) -> None:
    """Topological evaluation by composite must not be told from one update at a time."""
    objects, codes = data.draw(graphs(cycles=False))
    history = data.draw(histories(objects))
    cuts = data.draw(st.lists(st.integers(0, 60), max_size=4))

    assert_equal_to_oracle(objects, codes, history, cuts, evaluators)


@LAW
@given(data=st.data())
def test_batches_equal_the_serial_order_with_cycles(data, evaluators) -> None:
    """Loops end by the timestamp rules, exactly where the serial order ends them."""
    objects, codes = data.draw(graphs(cycles=True))
    history = data.draw(histories(objects))
    cuts = data.draw(st.lists(st.integers(0, 60), max_size=4))

    assert_equal_to_oracle(objects, codes, history, cuts, evaluators)


@LAW
@given(data=st.data(), cycles=st.booleans())
def test_batches_equal_the_serial_order_with_options(data, cycles, evaluators) -> None:
    """Settling, staleness by input and skipping change what computes, never the order.

    With staleness by input a loop may go on for ever, each output a tick newer: only
    the limits end it.
    """
    objects, codes = data.draw(graphs(cycles=cycles, options=True))
    history = data.draw(histories(objects))
    cuts = data.draw(st.lists(st.integers(0, 60), max_size=4))

    assert_equal_to_oracle(objects, codes, history, cuts, evaluators, Limits(12, 60))


@LAW
@given(data=st.data(), cycles=st.booleans())
def test_what_is_forgotten_while_nothing_comes_changes_nothing(data, cycles, evaluators) -> None:
    """All that is known goes after each batch, and is read again by the next one."""
    objects, codes = data.draw(graphs(cycles=cycles, options=True))
    history = data.draw(histories(objects))
    cuts = data.draw(st.lists(st.integers(0, 60), max_size=6))

    limits = Limits(12, 60)
    assert_equal_to_oracle(objects, codes, history, cuts, evaluators, limits, rests=True)


@LAW
@given(data=st.data(), most=st.integers(1, 12))
def test_a_batch_that_causes_too_much_is_cut_anywhere(data, most, evaluators) -> None:
    """What fits into one transaction bounds a batch, and changes nothing."""
    objects, codes = data.draw(graphs(cycles=True))
    history = data.draw(histories(objects))
    cuts = data.draw(st.lists(st.integers(0, 60), max_size=2))

    with mock.patch("pipeline.sharing.spending.MAX_BATCH_COMPUTATIONS", most):
        assert_equal_to_oracle(objects, codes, history, cuts, evaluators, Limits(6, 20))


@LAW
@given(data=st.data(), hops=st.integers(1, 4), computations=st.integers(1, 8))
def test_limits_cut_a_tree_where_the_serial_order_does(
    data, hops, computations, evaluators
) -> None:
    """A tree too large must end at the same computation however it is batched."""
    objects, codes = data.draw(graphs(cycles=True))
    history = data.draw(histories(objects))
    cuts = data.draw(st.lists(st.integers(0, 60), max_size=4))

    assert_equal_to_oracle(objects, codes, history, cuts, evaluators, Limits(hops, computations))


@LAW
@given(data=st.data(), bytes_=st.integers(1, 400))
def test_what_a_tree_makes_is_bounded_where_the_serial_order_bounds_it(
    data, bytes_, evaluators
) -> None:
    """Bytes, hops and computations together."""
    objects, codes = data.draw(graphs(cycles=True))
    history = data.draw(histories(objects))
    cuts = data.draw(st.lists(st.integers(0, 60), max_size=4))
    limits = Limits(8, data.draw(st.integers(1, 12)), bytes_)

    assert_equal_to_oracle(objects, codes, history, cuts, evaluators, limits)
