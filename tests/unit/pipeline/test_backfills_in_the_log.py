"""A backfill takes its place at one offset: what comes before it sees the old rows, and after it
the new ones."""

from __future__ import annotations

import pytest
from memory.state import Backfill
from oracle import Composite, Object
from serial_order import functions, platform_with, python, run_engine, value_of

from servioticy.domain.model import ServiceObjectKey
from servioticy.ports.batches import StoredUpdate

CUMULATIVE = Object("so0", ("d0",), (Composite("c0", ("c0", "d0"), python(0, 999, 999)),))
CODE = (
    "function(c0, d0) { return (c0 === null ? 1 : c0.channels.v['current-value'])"
    " + d0.channels.v['current-value'] }"
)


@pytest.mark.parametrize("cuts", [[], [2], [3], [4]])
def test_what_follows_is_computed_from_what_was_filled(cuts: list[int]) -> None:
    """Whatever the batches are."""
    platform = platform_with([CUMULATIVE], {("so0", "c0"): CODE})
    evaluators = {"javascript": functions([CUMULATIVE])}
    run_engine(platform, [(("so0", "d0"), 1, 1), (("so0", "d0"), 2, 1)], cuts, evaluators)
    computed = platform.state.streams["so0", "c0"]
    (tenant,) = platform.state.tenants.values()
    row = StoredUpdate(tenant, computed, 1, b'{"channels":{"v":{"current-value":50}}}', 1, 0, 1)
    platform.state.backfills["job"] = Backfill(
        frozenset({computed}), 0, 3, [(0, row)], {0: platform.state.progress[0].next_offset}
    )

    platform.changes.fill_in(ServiceObjectKey(tenant, "so0"), "job")
    platform.state.claims.clear()  # the first task has ended
    run_engine(platform, [(("so0", "d0"), 3, 1)], cuts, evaluators)

    stored = {
        each.timestamp: value_of(each.document)
        for _partition, each in platform.state.updates.values()
        if each.stream_id == computed
    }
    assert stored == {1: 50, 3: 51}
    assert 50 not in [value_of(bytes(each.update)) for each in platform.state.emitted]


@pytest.mark.parametrize(("at", "then"), [(2, 51), (4, 71)])
def test_what_was_taken_back_in_the_span_is_not_computed_from(at: int, then: int) -> None:
    """History has been computed anew there; what is newer stays what is computed from."""
    platform = platform_with([CUMULATIVE], {("so0", "c0"): CODE})
    evaluators = {"javascript": functions([CUMULATIVE])}
    run_engine(platform, [(("so0", "d0"), 1, 1)], [], evaluators)
    computed = platform.state.streams["so0", "c0"]
    (tenant,) = platform.state.tenants.values()
    row = StoredUpdate(tenant, computed, 1, b'{"channels":{"v":{"current-value":50}}}', 1, 0, 1)
    document = b'{"channels":{"v":{"current-value":70}}}'
    platform.state.taken_back[computed] = row._replace(timestamp=at, document=document)
    platform.state.backfills["job"] = Backfill(
        frozenset({computed}), 0, 3, [(0, row)], {0: platform.state.progress[0].next_offset}
    )
    platform.changes.fill_in(ServiceObjectKey(tenant, "so0"), "job")
    platform.state.claims.clear()
    run_engine(platform, [(("so0", "d0"), 5, 1)], [], evaluators)

    stored = {at: value_of(row.document) for (_, at), (_, row) in platform.state.updates.items()}
    assert stored[5] == then


def test_of_one_that_was_cancelled_nothing_is_told() -> None:
    platform = platform_with([CUMULATIVE], {("so0", "c0"): CODE})
    (tenant,) = platform.state.tenants.values()
    before = len(platform.state.log[0])

    platform.changes.fill_in(ServiceObjectKey(tenant, "so0"), "job")

    assert len(platform.state.log[0]) == before
