"""What a backfill is about: definitions in force, the streams that it reads and makes, bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from api.backfills.span import Span
from api.stepping.step import Steps
from servioticy.domain.model import ServiceObject, StreamRef

MOST_OBJECTS = 500
"""Service Objects of a component that are looked at."""
MOST_STREAMS = 200
"""That are read or made."""
MOST_READ = 5_000_000
"""Updates of inputs: they are counted first."""
MOST_MADE_BYTES = 256 * 1024 * 1024
"""That take their place together: some 1,200,000 small rows, which takes half a minute. Updates of
its tenant in the partition wait for so long, and nobody else's."""
ROW_BYTES = 100
"""Of each row beside its document."""
MOST_SECONDS = 3_600.0
"""Of computing."""


class Plan(NamedTuple):
    """A backfill that can be computed, and what it is computed by."""

    caller: int
    job: str
    attempt: int
    service_objects: Sequence[ServiceObject]
    """The component's, in force."""
    service_object: str
    stream: str
    """The composite that is filled, and all that is derived from it."""
    numbers: Mapping[StreamRef, int]
    """Under which the updates of all streams are stored that are read or made."""
    outside: Mapping[StreamRef, int]
    """Of those of other tenants, which may be read, whose they are."""
    partition: int
    """Where the component is computed."""
    span: Span
    most_bytes: int
    hops: int
    computations: int


Backfills: TypeAlias = Steps[Plan]
"""Where they are computed."""
