"""Trials and backfills ask no programs of tenants: they say of which stream."""

from __future__ import annotations

import pytest

from api.backfills.region import Concerned
from api.trials.version import Version
from sandbox import argument_names
from servioticy.domain.documents import parse_service_object
from servioticy.domain.model import ServiceObject, StreamRef
from servioticy.refusals import Refused

CHANNELS = {"v": {"type": "number"}}
DOCUMENT = {
    "version": "0.2.0",
    "streams": {
        "d0": {"channels": CHANNELS},
        "c0": {
            "channels": {"v": {"type": "number", "current-value": "function(d0) { return 1 }"}}
        },
        "p0": {
            "channels": CHANNELS,
            "operator": {"name": "counts", "version": 1, "inputs": ["c0"]},
        },
    },
}


def a_service_object() -> ServiceObject:
    definition = parse_service_object(DOCUMENT, "so", argument_names)
    return ServiceObject(definition, 1, 1, 1, {"d0": 1, "c0": 2, "p0": 3})


@pytest.mark.parametrize("stream", ["p0", "c0"])
def test_a_backfill_of_it_or_above_it_is_refused(stream: str) -> None:
    with pytest.raises(Refused, match="so/p0 is computed by a program of its own"):
        Concerned([a_service_object()], StreamRef("so", stream))


def test_a_trial_of_its_document_is_refused() -> None:
    with pytest.raises(Refused, match="so/p0 is computed by a program of its own"):
        Version([a_service_object()], "so").region()
