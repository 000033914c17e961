"""Subscriptions to all streams of a Service Object, and to those that a group of it reads."""

from __future__ import annotations

from collections.abc import Iterator

from flask import Blueprint, Response

from api.documents.service_objects import current
from api.http.authentication import authenticated, needs, service_object
from api.http.pages import paged
from api.resources.subscribing import Room, Subscribing
from api.resources.subscriptions import pages, reader
from api.services import Services
from servioticy.domain.access import Resource, Right, may
from servioticy.domain.model import ServiceObjectKey
from servioticy.ports.cursors import Source
from servioticy.refusals import Denied, NotAuthorized, NotFound

TO_OBJECT = Room(100, "You have 100 subscriptions to this Service Object already")
"""Of one tenant."""
TO_GROUPS = Room(20, "You have 20 subscriptions to groups already")
"""Of one tenant, to all groups together: each may have many members."""


def blueprint(services: Services) -> Blueprint:
    """`/{service_object}/subscriptions`, and `/groups/{group}/subscriptions` of it."""
    routes = Blueprint("subscriptions_to_many", __name__)
    stored = services.ports.statements("subscriptions")
    subscribing = Subscribing(services)

    @routes.post("/<service_object>/subscriptions")
    @needs(Right.SUBSCRIBE)
    def subscribe(**_names: str) -> Response:
        address, key = authenticated().address, service_object()
        return subscribing.make(Source(key.id), None, address.partition, TO_OBJECT)

    @routes.get("/<service_object>/subscriptions")
    @needs(Right.READ)
    def listed(**_names: str) -> Response:
        """List those to all of it: its owner sees all, others their own."""
        key, caller = service_object(), authenticated().caller
        only = None if may(caller, Right.INSPECT, Resource((key.tenant,))) else caller
        return paged("subscriptions", _of(key, None, only))

    @routes.post("/<service_object>/groups/<group>/subscriptions")
    @needs(Right.SUBSCRIBE)
    def subscribe_to_group(group: str, **_names: str) -> Response:
        key = _of_group(group)
        return subscribing.make(Source(key.id, group=group), None, None, TO_GROUPS)

    @routes.get("/<service_object>/groups/<group>/subscriptions")
    @needs(Right.READ)
    def listed_of_group(group: str, **_names: str) -> Response:
        return paged("subscriptions", _of(_of_group(group), group, None))

    def _of(key: ServiceObjectKey, group: str | None, only: int | None) -> Iterator[list[bytes]]:
        names = {"service_object": key.id, "tenant": key.tenant, "group": group, "only": only}
        return pages(stored, "of_source", names, reader(services))

    def _of_group(group: str) -> ServiceObjectKey:
        """Return whose group it is: the caller's, as it tells who belongs. Raises NotFound."""
        key, caller = service_object(), authenticated()
        if not may(caller.caller, Right.INSPECT, Resource((key.tenant,))):
            raise NotAuthorized
        if caller.address.scope.service_object is not None:
            # Its members are others, of which such a token shows nothing.
            raise Denied("The web object has presented the wrong API_TOKEN")
        found = current(key, services)
        definition = services.definitions.of(key.id, found.version, found.document)
        if all(each.name != group for each in definition.groups):
            raise NotFound("This Service Object does not have this group.")
        return key

    return routes
