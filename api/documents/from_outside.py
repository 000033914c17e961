"""What a composite reads of other tenants, and what of that still waits."""

from __future__ import annotations

from typing import Any

from api.services import Services
from servioticy.domain.model import ServiceObjectKey
from servioticy.ports.addresses import Address
from servioticy.ports.history import OutsideInput

MOST_SHOWN = 100
"""Of the streams of other tenants that a composite reads."""
MOST_COUNTED = 1000
"""Of the records that wait."""
_STATES = ("ended", "moving", "beginning", "open")


def told(stream: str, address: Address, services: Services) -> dict[str, Any]:
    """`fromOutside`, where a stream of the address reads any: those first that bring nothing."""
    declared = services.definitions.stream(address, stream)
    if declared is None or declared.composite is None or address.service_object is None:
        return {}
    inputs = reversed(declared.composite.inputs)
    names = {member: each.name for each in inputs for member in each.members}
    if all(member.service_object == address.service_object for member in names):
        return {}
    history, key = services.ports.history, ServiceObjectKey(address.tenant, address.service_object)
    found = [each for each in history.inputs_from_outside(key) if each.source in names]
    if not found:
        return {}
    found.sort(key=lambda each: _STATES.index(_state(each)))
    shown = [
        {
            "stream": str(each.source),
            "as": names[each.source],
            "state": _state(each),
            "since": each.since,
        }
        for each in found[:MOST_SHOWN]
    ]
    waiting = {
        "waiting": history.put_off(address.partition, address.tenant, MOST_COUNTED),
        "held": history.held(address.partition, address.tenant, MOST_COUNTED),
    }
    return {"fromOutside": {"count": len(found), "inputs": shown, **waiting}}


def _state(found: OutsideInput) -> str:
    if not found.is_open:
        return "ended"
    if found.is_moving:
        return "moving"
    return "open" if found.has_begun else "beginning"
