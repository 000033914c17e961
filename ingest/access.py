"""Whether who asks may do it, and in what words not: asked by routes and by what is published."""

from __future__ import annotations

from servioticy.domain.access import Resource, Right, may
from servioticy.ports.addresses import Address, Lookup
from servioticy.refusals import Denied, NotAuthorized, NotFound

WHO_MAKES_TOKENS = (
    "The token is not known, or has ended. An operator makes a tenant's (servioticy tenant "
    "create), and who has one makes more (POST /tokens)."
)


def known(address: Address | None) -> Address:
    """Return who asks. Raises Denied where nobody has the token."""
    if address is None:
        raise Denied("Access was denied!", WHO_MAKES_TOKENS)
    return address


def check(address: Address, asked: Lookup, right: Right) -> None:
    """Raises Denied, NotFound, NotAuthorized where what is asked may not be done."""
    if not address.scope.reaches(asked.service_object, asked.stream, right):
        # Before all else: which Service Objects there are is none of its business.
        raise Denied("The web object has presented the wrong API_TOKEN")
    if asked.service_object is not None and address.service_object is None:
        raise NotFound("The Service Object was not found.")
    permit(address.caller, right, address.resource)


def permit(caller: int, right: Right, resource: Resource) -> None:
    """Raises NotAuthorized where the caller has no such right to it."""
    if not may(caller, right, resource):
        raise NotAuthorized
