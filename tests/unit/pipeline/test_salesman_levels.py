"""The salesman's streams in the pipeline: what is woven around a stage tells his steps."""

from __future__ import annotations

import json

import msgspec
from neighbours import Neighbours
from new_service_objects import new_service_object

from benchmarks import travelling
from monitoring.configuration import Aspect
from monitoring.outbox import Outbox
from monitoring.weaving.weaver import Weaver
from servioticy.domain.records import UpdateRecord

PARTS = 3


def test_the_pipeline_takes_each_step_by_itself() -> None:
    """So its calls are the steps of an input, in their order; of several in one batch, too."""
    world, weaver, outbox = Neighbours(), Weaver("here/pipeline/1"), Outbox()
    document = travelling.document(PARTS)
    world.platform.changes.create(new_service_object(world.tenant("bench"), "salesman", document))
    world.run()
    traces = travelling.fresh_traces()
    for number in range(2):
        update = {"channels": {"text": {"current-value": "a"}}, "lastUpdate": 1_000 + number}
        raw, trace = msgspec.Raw(json.dumps(update).encode()), f"{traces}{number:08x}"
        record = UpdateRecord(
            "salesman", "input", update["lastUpdate"], raw, trace=f"00-{trace}-{'a' * 16}-01"
        )
        world.append(world.partition_of("salesman"), record)
    weaver.weave([Aspect(travelling.TRANSFORM)], outbox)
    try:
        world.run()
    finally:
        weaver.unweave()
    lines = msgspec.json.Encoder().encode_lines(outbox.take(1_000)).splitlines()
    found = travelling.told_apart(lines, traces, "salesman")

    assert [each.timestamp for each in world.state.emitted if each.stream == "summary"] == [
        *(1_000, 1_001)
    ]
    assert found.unclear == 0
    told = sorted(found.steps, key=lambda each: (each.sequence, each.start))
    assert [(each.sequence, each.purpose) for each in told] == [
        (f"salesman:run-{number}", level) for number in range(2) for level in travelling.LEVELS
    ]
