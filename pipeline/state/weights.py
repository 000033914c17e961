"""About how many bytes of memory what a partition knows takes."""

from __future__ import annotations

from servioticy.domain.model import ServiceObject

STREAM_BYTES = 1500
CHANNEL_BYTES = 500
INPUT_BYTES = 250
GRANT_BYTES = 300
"""About what they take in the definition, the graph and the programs."""

COPY_BYTES = 700
COPY_STREAM_BYTES = 950
"""The same of one that is made by a pattern."""


def weight_of_copy(service_object: ServiceObject) -> int:
    """About how many bytes a Service Object takes that is made by a pattern."""
    grants = GRANT_BYTES * len(service_object.grants)
    return COPY_BYTES + COPY_STREAM_BYTES * len(service_object.definition.streams) + grants


def weight(service_object: ServiceObject) -> int:
    """About how many bytes a Service Object takes, with the graph and programs of it."""
    streams, grants = service_object.definition.streams, service_object.grants
    return (
        GRANT_BYTES * len(grants)
        + STREAM_BYTES * (1 + len(streams))
        + sum(
            INPUT_BYTES * sum(len(each.members) for each in stream.composite.inputs)
            + sum(CHANNEL_BYTES + 4 * len(each.code or "") for each in stream.composite.channels)
            + CHANNEL_BYTES * len(stream.composite.references)
            for stream in streams
            if stream.composite is not None
        )
    )
