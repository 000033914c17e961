"""The REST application: which routes there are and who may use them."""

from __future__ import annotations

import time
from collections.abc import Callable

from flask import Flask

from api import (
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
from api.authentication import READS, guarded
from api.backlog import Backlog
from api.definitions import Definitions
from api.errors import handle_errors
from api.inflow import Inflow
from api.read_after_write import ReadAfterWrite
from api.services import Check, Ports, Services
from sandbox import argument_names as read_argument_names
from servioticy.domain.documents import BadDocument
from servioticy.domain.documents.service_objects import ArgumentNames
from servioticy.domain.model import Definition
from servioticy.settings import Settings


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
    services = Services(
        catalog=ports.catalog,
        history=ports.history,
        log=ports.log,
        settings=settings,
        clock=clock,
        argument_names=argument_names,
        check=check,
        definitions=Definitions(ports.catalog, argument_names),
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
    for resource, others in (
        (service_objects, READS),
        (replacing, frozenset[str]()),
        # An earlier version may have been private.
        (versions, frozenset[str]()),
        (trees, READS),
        (streams, READS),
        (updates, READS),
        (subscriptions, READS | {"POST"}),
        # Verdicts tell the values of inputs, which may be another tenant's.
        (status, frozenset[str]()),
    ):
        app.register_blueprint(guarded(resource.blueprint(services), ports.catalog, others))
    app.register_blueprint(health.blueprint(services))
    app.wsgi_app = with_common_headers(app.wsgi_app)  # type: ignore[method-assign, assignment]
    return app
