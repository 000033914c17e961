"""A span of a stream's history as a file, made while it is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import NamedTuple

from flask import Blueprint, Response

from api.exports.comma_separated import CommaSeparated
from api.exports.writer import Lines, Writer
from api.http import authentication
from api.http.authentication import needs
from api.http.content_types import wanted
from api.http.queries import span
from api.resources.histories import PAGE_BYTES, PAGE_ROWS
from api.services import Services
from servioticy.domain.access import Right
from servioticy.domain.model import Channel, StreamKey, Timestamp
from servioticy.ports.history import History, VersionedUpdate
from servioticy.refusals import NoStream

Make = Callable[[Sequence[Channel]], Writer]


class Format(NamedTuple):
    """A kind of file."""

    content_type: str
    make: Make


def _columns(name: str) -> Make:
    """Return a format of pyarrow's, which is loaded when somebody first asks: it takes 50 MB."""

    def make(channels: Sequence[Channel]) -> Writer:
        writer: Writer = getattr(import_module("api.exports.columns"), name)(channels)
        return writer

    return make


FORMATS = {
    "ndjson": Format("application/x-ndjson", Lines),
    "csv": Format("text/csv", CommaSeparated),
    "parquet": Format("application/vnd.apache.parquet", _columns("ParquetFile")),
    "arrow": Format("application/vnd.apache.arrow.stream", _columns("ArrowStream")),
}
TYPES = [each.content_type for each in FORMATS.values()]


def blueprint(services: Services) -> Blueprint:
    """`GET /{service_object}/streams/{stream}/export`."""
    routes = Blueprint("exports", __name__)

    @routes.get("/<service_object>/streams/<stream>/export")
    @needs(Right.READ)
    def export(stream: str, **_names: str) -> Response:
        address, key = authentication.stream()
        declared = services.definitions.stream(address, stream)
        if declared is None:
            raise NoStream
        (first, last), chosen = span(), wanted(FORMATS, TYPES)
        headers = services.reads.wait(address)
        newest = services.ports.history.newest(key)
        last = min(last, -1 if newest is None else newest)
        rows = _page(services.ports.history, key, first, last)
        writer = chosen.make(declared.channels)
        name = next(name for name, each in FORMATS.items() if each is chosen)
        disposition = {"Content-Disposition": f'attachment; filename="updates.{name}"'}
        pieces = _pieces(services.ports.history, key, writer, rows, last)
        return Response(pieces, 200, headers | disposition, content_type=chosen.content_type)

    return routes


def _pieces(
    history: History,
    stream: StreamKey,
    writer: Writer,
    rows: list[VersionedUpdate],
    last: Timestamp,
) -> Iterator[bytes]:
    """Yield the file in pieces, none of them empty: an empty chunk would end the answer.

    What is stored later, with larger timestamps, is not in it. Where the store fails, this does,
    and the answer breaks off.
    """
    while rows:
        at = rows[-1].timestamp
        piece = [writer.page(rows)]
        rows = []  # nobody holds a page here while it is sent
        if piece[0]:
            yield piece.pop()
        rows = _page(history, stream, at + 1, last)
    if rest := writer.end():
        yield rest


def _page(
    history: History, stream: StreamKey, first: Timestamp, last: Timestamp
) -> list[VersionedUpdate]:
    return history.page(stream, (first, last), PAGE_ROWS, PAGE_BYTES)
