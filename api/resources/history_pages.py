"""The history of a stream, page by page: a span of time, either order, a cursor."""

from __future__ import annotations

from flask import Blueprint, Response

from api.http import authentication
from api.http.answers import stored
from api.http.authentication import needs
from api.http.cursors import next_page, position
from api.http.queries import choice, integer, span, timestamp
from api.resources.histories import PAGE_BYTES, shown
from api.services import Services
from servioticy.domain.access import Right

MAX_LIMIT = 1_000
LIMIT = 100


def blueprint(services: Services) -> Blueprint:
    """`GET /{service_object}/streams/{stream}/updates`."""
    routes = Blueprint("history_pages", __name__)

    @routes.get("/<service_object>/streams/<stream>/updates")
    @needs(Right.READ)
    def page(**_names: str) -> Response:
        address, stream = authentication.stream()
        (first, last), limit = span(), integer("limit", LIMIT, 1, MAX_LIMIT)
        backwards = choice("order", ("asc", "desc")) == "desc"
        about = f"updates {stream.tenant} {stream.stream_id} {backwards}"
        after = position(about)
        if after is not None and backwards:
            last = min(last, timestamp(after) - 1)
        elif after is not None:
            first = max(first, timestamp(after) + 1)
        show = shown()
        headers = services.reads.wait(address)
        rows = services.ports.history.page(
            stream, (first, last), limit, PAGE_BYTES, newest_first=backwards
        )
        end = first if backwards else last
        full = len(rows) == limit or sum(len(each.document) for each in rows) >= PAGE_BYTES
        if full and rows[-1].timestamp != end:
            headers = headers | next_page(services.base, about, str(rows[-1].timestamp))
        return stored(b'{"data":[%b]}' % b",".join(map(show, rows)), 200, headers)

    return routes
