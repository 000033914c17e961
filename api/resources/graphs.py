"""What is computed from the streams of a Service Object, and they from what."""

from __future__ import annotations

from flask import Blueprint, Response

from api.documents.around import MAX_RELATED, understood
from api.http.answers import answer
from api.http.authentication import authenticated, needs, service_object
from api.services import Services
from servioticy.domain.access import Right, readable, seen_by
from servioticy.domain.surroundings import surroundings

MAX_SOURCES = 20_000
"""That are told in one answer, each once for each of its readers."""


def blueprint(services: Services) -> Blueprint:
    """`/{service_object}/graph`."""
    routes = Blueprint("graphs", __name__)

    @routes.get("/<service_object>/graph")
    @needs(Right.READ)
    def graph(**_names: str) -> Response:
        """Tell of what the caller may read, at both ends; and what its own documents name."""
        key, caller = service_object(), authenticated().caller
        below = services.ports.graph.related([key.id], upstream=False, most=MAX_RELATED)
        known, complete = understood(below, services)
        sees = seen_by(caller, known)
        whose = {each.id: each.tenant for each in known}
        found = surroundings(key.id, readable(known), MAX_SOURCES)
        told = {
            str(reader): [
                str(each)
                for each in sources
                if sees(each) or (each.service_object not in whose and key.tenant == caller)
            ]
            for reader, sources in found.computed_from.items()
            if sees(reader)
        }
        more = {} if complete and found.complete else {"complete": False}
        return answer({"computedFrom": {k: v for k, v in told.items() if v}} | more)

    return routes
