"""Searching the updates of a stream, as one answer that is made while it is sent."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from flask import Blueprint, Response

from api.http import authentication
from api.http.answers import JSON, nothing, stored
from api.http.authentication import needs
from api.http.bodies import json_object
from api.search.blocks import Blocks, Kept
from api.search.walk import Walk
from api.services import Services
from servioticy.domain.access import Right
from servioticy.domain.documents.criteria import parse_criteria
from servioticy.errors import Unavailable
from servioticy.ports.history import VersionedUpdate
from servioticy.refusals import NoStream
from servioticy.turns import Turns

ROOM = 64 * 1024 * 1024
"""Bytes of blocks that a process remembers."""
ROOM_FOR_BOUNDS = 8 * 1024 * 1024
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
    statements, kept = services.ports.statements("search"), Kept(ROOM, ROOM_FOR_BOUNDS)
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
        blocks = Blocks(statements, kept, key, criteria.conditions)
        walk = Walk(services.ports.history, statements, key, blocks, criteria)
        return _answer(_pages(_in_turns(walk.found(), turns, address.caller)), headers)

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


def _in_turns(
    found: Iterator[list[VersionedUpdate]], turns: Turns, tenant: int
) -> Iterator[list[VersionedUpdate]]:
    """Yield the same: of all searches one takes a step at a time, tenants by turns.

    More at once would not be quicker, as one thread of a process computes at a time; but an
    update would wait for each of them.
    """
    while True:
        with turns.turn(tenant):
            some = next(found, None)
        if some is None:
            return
        yield some


def _pages(found: Iterator[list[VersionedUpdate]]) -> Iterator[bytes]:
    """Yield what is found in pages; an empty one where a while has found nothing."""
    page: list[bytes] = []
    size, since = 0, time.monotonic()
    for some in found:
        page += [each.document for each in some]
        size += sum(len(each.document) for each in some)
        if size >= PAGE_BYTES or time.monotonic() - since > PAGE_SECONDS:
            yield b",".join(page)
            page, size, since = [], 0, time.monotonic()
    if page:
        yield b",".join(page)
