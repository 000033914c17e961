"""The REST application: which resources there are. Each route names who may use it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

from flask import Flask, request

from api.console.mount import Own, mounted
from api.documents.streams_there import tell_streams
from api.edge.kinds import READING, kind
from api.http import authentication
from api.http.acceptable import check_accept
from api.http.answers import with_common_headers
from api.http.authentication import guard
from api.http.errors import handle_errors
from api.http.idempotency import Idempotency
from api.http.parameters import check_parameters
from api.http.quotas import Quotas
from api.http.read_after_write import ReadAfterWrite
from api.http.reading import is_counted
from api.resources import blueprints
from api.search.searching import Searches, SearchesHere
from api.services import Check, CheckPrograms, Services
from api.trials.stored import Stored
from api.trials.trial import Trials
from api.trials.trying import NoSandbox, TrialsHere
from ingest.accepting import Accepting
from ingest.ingest import Ingest
from ingest.pacing import MAX_SECONDS, Pacing
from ingest.parsing.batch_reader import BatchReader
from ingest.parsing.definitions import Definitions
from ingest.parsing.document_parser import DocumentParser
from ingest.progress import Progress
from ingest.routes import Routes
from ingest.updates_waiting import UpdatesWaiting
from sandbox import argument_names as read_argument_names
from sandbox.program import Program
from servioticy import bootstrap
from servioticy.bootstrap import Ports
from servioticy.domain.documents import BadDocument
from servioticy.domain.documents.service_objects import ArgumentNames
from servioticy.domain.model import Definition
from servioticy.domain.quotas import quotas
from servioticy.embedded import javascript
from servioticy.identity.console_sessions import ConsoleSessions
from servioticy.refusals import within
from servioticy.settings import Settings

SERVICES = "servioticy"
"""Among the extensions of the application: what its routes work with."""


def no_problems(_tenant: int, _definition: Definition) -> list[BadDocument]:
    """Accept every snippet."""
    return []


def no_problems_of_programs(_tenant: int, programs: Sequence[Program]) -> Sequence[Sequence[str]]:
    """Accept every program."""
    return [() for _ in programs]


def create_app(
    ports: Ports,
    settings: Settings,
    clock: Callable[[], float] = time.time,
    argument_names: ArgumentNames = read_argument_names,
    check: Check = no_problems,
    check_programs: CheckPrograms = no_problems_of_programs,
    searches: Searches | None = None,
    trials: Trials | None = None,
) -> Flask:
    """Wire the application. The clock gives seconds since 1970.

    Without another place for them `searches` are computed here, and `trials` where no code is run.
    """
    caller = authentication.caller
    limits = Quotas(ports.statements("used_quotas"), quotas(settings))
    definitions = Definitions(
        ports.service_objects, argument_names, DocumentParser(caller), DocumentParser(caller)
    )
    waiting = UpdatesWaiting(ports.history, limits)
    accepting = Accepting(settings.requests, waiting, limits, clock)
    reading = (ports.statements("last_updates"), ports.statements("trials"))
    stored = Stored(ports.history, *reading)
    wait = partial(Progress(ports.history, ports.log).hold, seconds=MAX_SECONDS)
    pacing = Pacing(wait, elsewhere=ports.log.others_at)
    routes = Routes(ports.statements("routes"))
    services = Services(
        ports=ports,
        settings=settings,
        clock=clock,
        argument_names=argument_names,
        check=check,
        check_programs=check_programs,
        definitions=definitions,
        reads=ReadAfterWrite(ports.history, ports.log, settings.requests.read_wait_seconds),
        searches=searches or SearchesHere(ports.history, ports.statements("search")),
        trials=trials or TrialsHere(stored, NoSandbox()),
        ingest=Ingest(ports.addresses, ports.log, definitions, limits, accepting, routes, pacing),
        batches=BatchReader(caller),
        quotas=limits,
        idempotency=Idempotency(ports.statements("idempotency"), lambda: int(clock() * 1000)),
    )
    app = Flask("api", static_folder=None)
    app.extensions[SERVICES] = services
    # One more than is allowed: a body without a Content-Length is cut there in silence.
    app.config["MAX_CONTENT_LENGTH"] = settings.requests.max_body_bytes + 1
    # Clients end paths with a slash or not, and do not follow redirections.
    app.url_map.strict_slashes = False
    app.url_map.merge_slashes = False
    handle_errors(app)
    tell_streams(app, services)
    check_accept(app)
    for blueprint in blueprints(services):
        app.register_blueprint(blueprint)
    guard(app, ports.addresses)
    check_parameters(app)
    app.before_request(lambda: _learn_quotas(services))
    answering = with_common_headers(app.wsgi_app)
    sessions = ConsoleSessions(ports.statements("console_sessions"))
    seconds, downloaded = settings.requests.console_hours * 3_600, javascript.folder(settings)
    own = Own(seconds, downloaded, settings.mqtt.port)
    place = bootstrap.console_place(settings)
    console = mounted(answering, ports.addresses, sessions, place, own)
    app.wsgi_app = console  # type: ignore[method-assign, assignment]
    return app


def _learn_quotas(services: Services) -> None:
    """Know what who asks may have before it asks for too much: the event loop asks nobody."""
    asking = authentication.caller()
    if asking is not None:
        services.quotas.learn((asking,))
        if kind(request.method, request.path) in READING and is_counted(request.path):
            within(services.quotas.beyond_reading(asking))
