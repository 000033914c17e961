"""The REST application: which resources there are. Each route names who may use it."""

from __future__ import annotations

import time
from collections.abc import Callable

from flask import Flask

from api import (
    authentication,
    health,
    replacing,
    service_objects,
    status,
    streams,
    subscriptions,
    trees,
    updates,
    versions,
)
from api.answers import with_common_headers
from api.authentication import guard
from api.backlog import Backlog
from api.definitions import Definitions
from api.document_parser import DocumentParser
from api.errors import handle_errors
from api.inflow import Inflow
from api.read_after_write import ReadAfterWrite
from api.services import Check, Services
from sandbox import argument_names as read_argument_names
from servioticy.bootstrap import Ports
from servioticy.domain.documents import BadDocument
from servioticy.domain.documents.service_objects import ArgumentNames
from servioticy.domain.model import Definition
from servioticy.settings import Settings

RESOURCES = (
    service_objects,
    replacing,
    versions,
    trees,
    streams,
    updates,
    subscriptions,
    status,
    health,
)


def no_problems(_definition: Definition) -> list[BadDocument]:
    """Accept every snippet."""
    return []


def create_app(
    ports: Ports,
    settings: Settings,
    clock: Callable[[], float] = time.time,
    argument_names: ArgumentNames = read_argument_names,
    check: Check = no_problems,
) -> Flask:
    """Wire the application. The clock gives seconds since 1970."""
    caller = authentication.caller
    services = Services(
        ports=ports,
        settings=settings,
        clock=clock,
        argument_names=argument_names,
        check=check,
        definitions=Definitions(
            ports.service_objects, argument_names, DocumentParser(caller), DocumentParser(caller)
        ),
        reads=ReadAfterWrite(ports.history, ports.log, settings.requests.read_wait_seconds),
        backlog=Backlog(ports.history, settings.requests.max_put_off),
        inflow=Inflow(settings.requests.tenant_bytes_per_second),
    )
    app = Flask("api", static_folder=None)
    # One more than is allowed: a body without a Content-Length is cut there in silence.
    app.config["MAX_CONTENT_LENGTH"] = settings.requests.max_body_bytes + 1
    # Clients end paths with a slash or not, and do not follow redirections.
    app.url_map.strict_slashes = False
    app.url_map.merge_slashes = False
    handle_errors(app)
    for resource in RESOURCES:
        app.register_blueprint(resource.blueprint(services))
    guard(app, ports.addresses)
    app.wsgi_app = with_common_headers(app.wsgi_app)  # type: ignore[method-assign, assignment]
    return app
