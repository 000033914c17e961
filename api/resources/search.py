"""Searching the updates of a stream, as one answer that is made while it is sent."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from flask import Blueprint, Response

from api.http import authentication
from api.http.answers import JSON, nothing, stored
from api.http.authentication import needs
from api.http.bodies import json_object
from api.http.listening import listening
from api.search.searching import Search
from api.services import Services
from api.stepping.step import Step
from api.stepping.turns import in_turns
from servioticy.domain.access import Right
from servioticy.domain.documents.criteria import parse_criteria
from servioticy.errors import Unavailable
from servioticy.refusals import NoStream
from servioticy.turns import Turns

PAGE_BYTES = 262_144
PAGE_SECONDS = 0.5
"""So long a page is made; then others have their turn."""
TURN_SECONDS = 20.0
"""So long a step waits for those of others, which take some milliseconds each."""
FIRST_SECONDS = 20.0
"""So long nothing at all may be found; what is done until then need not be done again."""


def blueprint(services: Services) -> Blueprint:
    """`/{service_object}/streams/{stream}/search`."""
    routes = Blueprint("search", __name__)
    turns = Turns(TURN_SECONDS)

    @routes.post("/<service_object>/streams/<stream>/search")
    @needs(Right.READ)
    def search(stream: str, **_names: str) -> Response:
        address, key = authentication.stream()
        declared = services.definitions.stream(address, stream)
        if declared is None:
            raise NoStream
        criteria = parse_criteria(json_object(), declared)
        headers = services.reads.wait(address)
        wanted = Search(key, criteria, address.caller)
        found = in_turns(services.searches.steps(wanted), turns, address.caller, listening())
        return _answer(_pages(_noted(found, services, address.caller)), headers)

    return routes


def _answer(pages: Iterator[bytes], headers: Mapping[str, str]) -> Response:
    """`{"data":[..]}`, or 204. What fits on a page has a Content-Length."""
    until = time.monotonic() + FIRST_SECONDS
    first = b""
    for page in pages:
        if page:
            first = page
            break
        if time.monotonic() > until:
            raise Unavailable("nothing is found yet; ask again, and the search goes on")
    if not first:
        return nothing(headers)
    second = next(pages, None)
    if second is None:
        return stored(b'{"data":[%b]}' % first, 200, headers)
    return Response(_parts(first, second, pages), 200, headers, content_type=JSON)


def _parts(first: bytes, second: bytes, pages: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the answer piece by piece; while nothing is found, a blank."""
    yield b'{"data":[' + first
    yield b"," + second if second else b" "
    for page in pages:
        yield b"," + page if page else b" "
    yield b"]}"


def _noted(steps: Iterator[Step], services: Services, tenant: int) -> Iterator[bytes]:
    """Yield what is found; what it took of the processor elsewhere counts as if it were here."""
    for step in steps:
        services.quotas.has_read(tenant, step.seconds)
        yield step.documents


def _pages(found: Iterator[bytes]) -> Iterator[bytes]:
    """Yield what is found in pages; an empty one where a while has found nothing."""
    page: list[bytes] = []
    size, since = 0, time.monotonic()
    for some in found:
        if some:
            page.append(some)
            size += len(some)
        if size >= PAGE_BYTES or time.monotonic() - since > PAGE_SECONDS:
            yield b",".join(page)
            page, size, since = [], 0, time.monotonic()
    if page:
        yield b",".join(page)
