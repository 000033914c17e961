"""Whether somebody may watch all of a Service Object, or what one of its groups reads."""

from __future__ import annotations

from dataclasses import dataclass

from delivery.admission.refusals import (
    NO_SERVICE_OBJECT,
    NOT_FOR_THIS,
    NOT_YOURS,
    UNKNOWN_TOKEN,
    Refusal,
)
from delivery.endings import Ending
from servioticy.domain.access import Right, may
from servioticy.ports.addresses import Address, Addresses, Lookup
from servioticy.ports.cursors import Source


@dataclass(frozen=True, slots=True)
class SourceAdmission:
    """The caller may watch whatever of it its tenant may read."""

    source: Source
    tenant: int
    """The tenant who watches."""
    token: str
    known_by: bytes
    expires_in: float | None = None
    changes: int = 0

    @property
    def lookup(self) -> Lookup:
        """What it was decided by."""
        return Lookup(self.token, self.source.service_object, None)

    def ending(self, address: Address | None) -> Ending | None:
        """Return why it may not be watched any more."""
        refusal = _refusal(address, self.source)
        return None if refusal is None else refusal.ending


def admit_to_source(
    source: Source, token: str, addresses: Addresses, changes: int
) -> SourceAdmission | Refusal:
    """Decide on a request by what the store says. Blocks; raises Unavailable."""
    address = addresses.address(token, source.service_object, None)
    refusal = _refusal(address, source)
    if address is None or refusal is not None:
        return refusal or UNKNOWN_TOKEN
    known_by, expires_in = address.known_by, address.expires_in
    return SourceAdmission(source, address.caller, token, known_by, expires_in, changes)


def _refusal(address: Address | None, source: Source) -> Refusal | None:
    if address is None:
        return UNKNOWN_TOKEN
    # Members of a group are of whatever Service Object.
    named = source.service_object if source.group is None else None
    if not address.scope.reaches(named, None, Right.SUBSCRIBE):
        return NOT_FOR_THIS
    if address.service_object is None:
        return NO_SERVICE_OBJECT
    # Who belongs to a group is its owner's to know.
    right = Right.SUBSCRIBE if source.group is None else Right.INSPECT
    if not may(address.caller, right, address.resource):
        return NOT_YOURS
    return None
