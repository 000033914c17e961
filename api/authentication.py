"""Who asks, and whether they may: given to a blueprint where it is registered."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from flask import Blueprint, g, has_request_context, request

from api.errors import Denied, NotAuthorized, NotFound
from api.read_after_write import CALLER
from servioticy.ports import Address, Catalog

READS = frozenset({"GET", "HEAD"})


@dataclass(frozen=True, slots=True)
class Asked:
    """Who asks, and the Service Object and stream their request names."""

    token: str
    caller: int
    address: Address | None = None


def guarded(blueprint: Blueprint, catalog: Catalog, others: Set[str] = READS) -> Blueprint:
    """Let only those in who may use these routes.

    The owner of a Service Object may use all of them; every other tenant those of the
    methods in `others`, and only where the object is public. Token and object are looked
    up at once: a request costs one question to the catalog.
    """

    @blueprint.before_request
    def authenticate() -> None:
        if request.method == "OPTIONS":
            return
        token = _token()
        names = request.view_args or {}
        if "service_object" not in names:
            caller = catalog.tenant_of(token)
            if caller is None:
                raise Denied("Access was denied!")
            request.environ[CALLER] = caller
            g.asked = Asked(token, caller)
            return
        address = catalog.address(token, names["service_object"], names.get("stream"))
        if address is None:
            raise Denied("Access was denied!")
        request.environ[CALLER] = address.caller
        if address.service_object is None:
            raise NotFound("The Service Object was not found.")
        if address.caller != address.owner and not (address.public and request.method in others):
            raise NotAuthorized
        g.asked = Asked(token, address.caller, address)

    return blueprint


def asked() -> Asked:
    """What `guarded` found out about the present request."""
    found: Asked = g.asked
    return found


def caller() -> int | None:
    """The tenant who asks; None outside of requests, and before that is known."""
    if not has_request_context():
        return None
    found: int | None = request.environ.get(CALLER)
    return found


def service_object() -> Address:
    """The Service Object that the present request names."""
    address = asked().address
    if address is None:
        raise NotFound("The Service Object was not found.")
    return address


def stream() -> tuple[Address, int]:
    """The stream that the present request names, and its id. Raises NotFound."""
    address = service_object()
    if address.stream_id is None:
        raise NotFound("This Service Object does not have this stream.")
    return address, address.stream_id


def _token() -> str:
    """The token, alone or after `Bearer `: both kinds of clients exist."""
    value = request.headers.get("Authorization", "").strip()
    if value[:7].lower() == "bearer ":
        value = value[7:].strip()
    if not value:
        raise Denied("Missing Authorization Header")
    return value
