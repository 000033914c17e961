"""Who names a stream that is not there is told which are: of a Service Object of its own."""

from __future__ import annotations

from flask import Flask, Response, g

from api.http.errors import told
from api.services import Services
from ingest.hints import short
from servioticy.domain.access import Right
from servioticy.refusals import NoStream

MOST_TOLD = 10


def tell_streams(app: Flask, services: Services) -> None:
    """Put the names into the answer, where who asks may read all of them."""

    def with_names(error: NoStream) -> Response:
        error.hint = _hint(services) or error.hint
        return told(error)

    app.register_error_handler(NoStream, with_names)


def _hint(services: Services) -> str:
    asked = g.get("authenticated")
    if asked is None or asked.caller != asked.address.owner:
        return ""
    address = asked.address
    if not address.scope.reaches(address.service_object, None, Right.READ):
        return ""
    names = services.definitions.streams(address)
    more = f" and {len(names) - MOST_TOLD} more" if len(names) > MOST_TOLD else ""
    return f"Its streams are {', '.join(map(short, names[:MOST_TOLD]))}{more}" if names else ""
