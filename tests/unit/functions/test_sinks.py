"""The end of a workflow: what a stream refuses is dead, what it cannot take now comes later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from workflow_builders import a_queue, a_workflow, an_atom

from functions.sinks import FULL_MS, NO_STREAM, Sinks
from functions.steps import LATER_MS, Result, Task
from ingest.batches import Sorted
from servioticy.domain.model import StreamRef
from servioticy.domain.quotas import Exceeded, quotas
from servioticy.errors import ServioticyError, Unavailable
from servioticy.refusals import OverQuota
from servioticy.settings import Settings

PLACE = {"serviceObject": "so", "stream": "s"}
REF = StreamRef("so", "s")
ATOMS = [an_atom(7), an_atom(8)]


class Streams:
    """Knows one stream of tenant 1."""

    def rows(self, _name: str, /, **values: Any) -> list[Any]:
        known = values["tenant"] == 1 and values["service_objects"] == ["so"]
        return [("so", "s", False, 1, 0, 5)] if known else []


class Ingest:
    def __init__(self, outcome: ServioticyError | Sorted, declared: bool = True) -> None:
        self._outcome = outcome
        self._declared = declared

    def declared(self, addresses: Mapping[StreamRef, Any]) -> Mapping[StreamRef, Any]:
        return addresses if self._declared else {}

    def take_batch(self, items: Sequence[Any], addresses: Mapping[StreamRef, Any]) -> Sorted:
        assert [each.origin for each in items] == [REF] * len(items)
        if isinstance(self._outcome, Sorted):
            return self._outcome
        raise self._outcome


def worked(ingest: Ingest, tenant: int = 1, **more: Any) -> Result:
    workflow = a_workflow(**{"sink": {"stream": PLACE}, **more})
    task = Task(a_queue(tenant, step=1), workflow, "1.0")
    made: list[Ingest] = []

    def make() -> Any:
        made.append(ingest)
        return ingest

    sinks = Sinks(make, Streams())  # type: ignore[arg-type]
    result = sinks.work(task, ATOMS)
    assert len(made) <= 1
    return result


def test_what_the_log_has_is_done_and_what_is_refused_is_dead_at_once() -> None:
    refused = {"index": 1, "message": "no number", "pointer": "/channels/t"}

    result = worked(Ingest(Sorted(refused=[refused])))

    assert result.done == {7: ()}
    assert result.failed[8].is_hopeless
    assert result.failed[8].reason == "the stream refuses it: no number (/channels/t)"


EXCEEDED = OverQuota(Exceeded(quotas(Settings())["updates"], 1), 1)


@pytest.mark.parametrize(
    ("outcome", "pause"), [(Unavailable("away"), LATER_MS), (EXCEEDED, FULL_MS)]
)
def test_what_cannot_be_taken_now_comes_later(outcome: ServioticyError, pause: int) -> None:
    assert worked(Ingest(outcome)) == Result(later={7: pause, 8: pause})


@pytest.mark.parametrize(("tenant", "declared"), [(2, True), (1, False)])
def test_a_stream_that_is_gone_or_another_tenants_takes_nothing(
    tenant: int, declared: bool
) -> None:
    result = worked(Ingest(Sorted(), declared), tenant)

    assert result.done == {}
    assert set(result.failed.values()) == {NO_STREAM}


@pytest.mark.parametrize(("kind", "collected"), [("collect", True), ("none", False)])
def test_other_sinks_ask_nobody(kind: str, collected: bool) -> None:
    result = worked(Ingest(Unavailable("never asked")), sink={kind: {}})

    assert (result.done, result.collected) == ({7: (), 8: ()}, collected)
