"""What waits for the program that computes a stream, and what that keeps."""

from __future__ import annotations

from typing import Any

import orjson

from api.services import Services
from servioticy.domain.evaluators import programs
from servioticy.domain.model import Composite, StreamKey
from servioticy.domain.program_code import PROGRAMS, SideCode
from servioticy.ports.addresses import Address


def kept_by_program(
    key: StreamKey, address: Address, stream: str, services: Services
) -> dict[str, Any] | None:
    """Return that, as `status` tells it; None where no program computes the stream."""
    composite = _composite(address, stream, services)
    if composite is None or composite.evaluator != PROGRAMS:
        return None
    kept = services.ports.history.kept
    value, state = kept(key, programs.HEAD), kept(key, programs.STATE)
    queue = programs.Head(0) if value is None else programs.queue_of(value)
    told: dict[str, Any] = {"waiting": queue.waiting, "bytes": queue.size}
    if queue.program:
        told["answeredBy"] = {"name": queue.program, "version": queue.version}
    return told | {"state": None if state is None else orjson.loads(state)}


def keeps_itself(address: Address, stream: str, services: Services) -> bool:
    """Tell whether a program computes the stream, and not that of another one."""
    composite = _composite(address, stream, services)
    if composite is None or composite.evaluator != PROGRAMS:
        return False
    return not isinstance(composite.operator, SideCode)


def _composite(address: Address, stream: str, services: Services) -> Composite | None:
    declared = services.definitions.stream(address, stream)
    return None if declared is None else declared.composite
