"""The last updates of many streams in one answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import orjson
from flask import Blueprint, Response

from api.http.answers import JSON, stored
from api.http.authentication import authenticated, needs
from api.http.bodies import json_object
from api.resources.histories import Show, shown
from api.services import Services
from servioticy.domain.access import Right
from servioticy.domain.documents import BadDocument
from servioticy.domain.documents.codes import REQUIRED, TOO_MUCH, WRONG_TYPE
from servioticy.domain.documents.errors import WHOLE
from servioticy.domain.model import StreamRef
from servioticy.ports.addresses import Address
from servioticy.ports.history import VersionedUpdate
from servioticy.ports.statements import Statements

MAX_STREAMS = 1_000
AT_ONCE = 32
"""Streams whose last updates are held at once, of a megabyte each at worst."""


class _Asked(msgspec.Struct, rename="camel"):
    """A stream, as the request names it."""

    service_object: str
    stream: str


def blueprint(services: Services) -> Blueprint:
    """`POST /lastUpdates`."""
    routes = Blueprint("last_updates", __name__)
    statements = services.ports.statements("last_updates")

    @routes.post("/lastUpdates")
    @needs(Right.READ)
    def last_updates() -> Response:
        wanted = _wanted(json_object())
        caller = authenticated().caller
        headers = services.reads.wait_for_all(_readable(caller, wanted, statements).values())
        pages = _pages(caller, wanted, shown(), statements)
        first = next(pages)
        if len(wanted) <= AT_ONCE:
            return stored(first + b"".join(pages), 200, headers)
        return Response(_after(first, pages), 200, headers, content_type=JSON)

    return routes


def _wanted(body: Mapping[str, Any]) -> list[StreamRef]:
    """Return the streams that the body names. Raises BadDocument."""
    listed = body.get("streams")
    if not isinstance(listed, list):
        code = WRONG_TYPE if "streams" in body else REQUIRED
        raise BadDocument(
            "streams has to be an array", "/streams" if "streams" in body else "", code
        )
    if len(listed) > MAX_STREAMS:
        reason = f"There are {len(listed)} streams, at most {MAX_STREAMS} may be asked for"
        raise BadDocument(reason, "/streams", TOO_MUCH)
    return [_stream(number, each) for number, each in enumerate(listed)]


def _stream(number: int, asked: Any) -> StreamRef:
    try:
        found = msgspec.convert(asked, _Asked)
    except msgspec.ValidationError as error:
        pointer = WHOLE.at("streams", number).pointer
        reason = f"A stream is named by serviceObject and stream: {error}"
        raise BadDocument(reason, pointer, WRONG_TYPE) from error
    return StreamRef(found.service_object, found.stream)


def _readable(
    caller: int, wanted: Sequence[StreamRef], statements: Statements
) -> dict[StreamRef, Address]:
    """Return those that exist and that the caller may read."""
    named = [each for each in dict.fromkeys(wanted) if "\0" not in "".join(each)]
    rows = statements.rows(
        "readable",
        tenant=caller,
        service_objects=[each.service_object for each in named],
        streams=[each.stream for each in named],
    )
    return {StreamRef(id_, stream): Address(caller, id_, *rest) for id_, stream, *rest in rows}


def _pages(
    caller: int, wanted: Sequence[StreamRef], show: Show, statements: Statements
) -> Iterator[bytes]:
    """Yield the answer: an entry for each stream, in the order of the request.

    Of each page it is asked anew what may be read: whoever takes pages takes his time, and what
    others had granted may have ended.
    """
    before = b'{"data":['
    for first in range(0, len(wanted), AT_ONCE):
        some = wanted[first : first + AT_ONCE]
        readable = _readable(caller, some, statements)
        keys = [each.stream for ref in some if (each := readable.get(ref)) and each.stream]
        rows = statements.rows(
            "newest",
            tenants=[each.tenant for each in keys],
            stream_ids=[each.stream_id for each in keys],
        )
        newest = {id_: VersionedUpdate(at, text.encode(), v) for id_, at, text, v in rows}
        entries = [_entry(ref, readable.get(ref), newest, show) for ref in some]
        yield before + b",".join(entries)
        before = b","
    yield before + b"]}" if before == b'{"data":[' else b"]}"


def _entry(
    ref: StreamRef, address: Address | None, newest: Mapping[int, VersionedUpdate], show: Show
) -> bytes:
    """Return what is told of one stream; of one that is not readable not why."""
    named = orjson.dumps({"serviceObject": ref.service_object, "stream": ref.stream})[:-1]
    if address is None or address.stream_id is None:
        return b'%b,"status":404}' % named
    update = newest.get(address.stream_id)
    return b'%b,"update":%b}' % (named, b"null" if update is None else show(update))


def _after(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest
