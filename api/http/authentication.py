"""Who asks, and whether they may do what the route is for."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from flask import Flask, Response, g, has_request_context, request

from api.http.read_after_write import CALLER
from api.http.while_allowed import WhileAllowed
from ingest import access
from servioticy.domain.access import Resource, Right
from servioticy.domain.actor import Actor, set_actor
from servioticy.domain.model import ServiceObjectKey, StreamKey
from servioticy.domain.tokens import read_token
from servioticy.ports.addresses import Address, Addresses, Lookup
from servioticy.refusals import Denied, NoStream, NotFound, Refused

View = TypeVar("View", bound=Callable[..., Any])

HOW_TO_SAY_WHO = "Say who asks: -H 'Authorization: TOKEN'."

_rights: WeakKeyDictionary[Callable[..., Any], Right | None] = WeakKeyDictionary()
"""What each view is for; None: everybody may, without a token."""


@dataclass(frozen=True, slots=True)
class AuthenticatedRequest:
    """Who asks, for what, and the Service Object and stream their request names."""

    token: str
    right: Right
    address: Address

    @property
    def caller(self) -> int:
        """The tenant who asks."""
        return self.address.caller


def needs(right: Right) -> Callable[[View], View]:
    """Names the right that a route asks for; stands directly above the view."""

    def named(view: View) -> View:
        _rights[view] = right
        return view

    return named


def open_to_everybody(view: View) -> View:
    """Let everybody use this route, without a token; stands directly above the view."""
    _rights[view] = None
    return view


def right_to(view: Callable[..., Any]) -> Right | None:
    """Return what a view is for; None: everybody may. Raises LookupError where it does not say."""
    if view not in _rights:
        raise LookupError(f"{view.__qualname__} names no right: see api.http.authentication.needs")
    return _rights[view]


def guard(app: Flask, addresses: Addresses) -> None:
    """Let only those in who have the right that a route names.

    To be called when all routes are there. Token and Service Object are looked up at once: a
    request costs one question. An answer that is made while it is sent is asked about again as
    long as it is. Raises LookupError where a route names no right.
    """
    rights = {endpoint: right_to(view) for endpoint, view in app.view_functions.items()}

    @app.before_request
    def authenticate() -> None:
        if b"%00" in request.query_string or b"\0" in request.query_string:
            raise Refused(f"The address has a NUL in it: {_with_nul()}")
        if request.endpoint is None or request.method == "OPTIONS":
            return
        right = rights[request.endpoint]
        if right is None:
            return
        token = read_token(request.headers.get("Authorization", ""))
        if not token:
            raise Denied("Missing Authorization Header", HOW_TO_SAY_WHO)
        names = request.view_args or {}
        asked = Lookup(token, names.get("service_object"), names.get("stream"))
        address = access.known(addresses.address(*asked))
        request.environ[CALLER] = address.caller
        access.check(address, asked, right)
        g.authenticated = AuthenticatedRequest(token, right, address)
        set_actor(Actor(address.caller, address.token_id))

        def ask_again() -> None:
            now = access.known(addresses.address(*asked))
            access.check(now, asked, right)
            if now.stream != address.stream:
                raise NoStream

        g.ask_again, g.asked = ask_again, time.monotonic()

    @app.after_request
    def end_with_the_right(response: Response) -> Response:
        """Here no route can forget it: whatever is made while it is sent passes."""
        if response.is_streamed and "ask_again" in g:
            response.response = WhileAllowed(response.response, g.ask_again, g.asked)
        return response

    @app.teardown_request
    def nobody_acts(_error: BaseException | None) -> None:
        set_actor(None)


def _with_nul() -> str:
    """Return which of the values behind the question mark has a NUL in it."""
    found = (name for name, value in request.args.items(multi=True) if "\0" in name + value)
    return next(found, "?").partition("\0")[0][:100]


def authenticated() -> AuthenticatedRequest:
    """Return what `guard` found out about the present request."""
    found: AuthenticatedRequest = g.authenticated
    return found


def caller() -> int | None:
    """Return the tenant who asks; None outside of requests, and before that is known."""
    if not has_request_context():
        return None
    found: int | None = request.environ.get(CALLER)
    return found


def permit(resource: Resource) -> None:
    """Raises NotAuthorized where the caller may not do with it what the route is for."""
    access.permit(authenticated().caller, authenticated().right, resource)


def service_object() -> ServiceObjectKey:
    """Return the Service Object that the present request names. Raises NotFound."""
    key = authenticated().address.key
    if key is None:
        raise NotFound("The Service Object was not found.")
    return key


def is_device() -> bool:
    """Return whether the token of the present request is the named Service Object's own."""
    address = authenticated().address
    return address.key is not None and address.scope.service_object == address.key.id


def stream() -> tuple[Address, StreamKey]:
    """Return the stream that the present request names, in the store. Raises NotFound."""
    address = authenticated().address
    if address.stream is None:
        raise NoStream
    return address, address.stream
