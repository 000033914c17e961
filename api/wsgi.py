"""The application of one worker process, as its environment describes it."""

from __future__ import annotations

from flask import Flask

from api.app import SERVICES, create_app
from api.backfills.apart import BackfillsApart, filling_process
from api.background.worker import ending, filling, worker
from api.documents.snippets import Snippets
from api.edge.calls import KnownQuotas, Together
from api.http.metrics import note_route
from api.http.patience import patience
from api.search.apart import SearchesApart, searching_process
from api.trials.apart import TrialsApart, trying_process
from api.updates_lane import UpdatesLane
from ingest.progress import Progress
from ingest.sharing import Sharing
from servioticy import bootstrap
from servioticy.forgetting import Forgetting
from servioticy.settings import Settings
from servioticy.storage.rates import PostgresRates
from servioticy.storage.roles import Role


def build(settings: Settings) -> tuple[Flask, Progress, Together, KnownQuotas]:
    """Connect and wire: the application, what reads that wait ask, the lane of updates, quotas."""
    pool = bootstrap.sandbox_pool(settings)  # it only looks at documents
    ports = bootstrap.ports(settings)
    searches = SearchesApart(searching_process(settings))
    trials = TrialsApart(trying_process(settings))
    snippets = Snippets(pool, patience=patience)
    app = create_app(
        ports,
        settings,
        check=snippets.problems,
        check_programs=snippets.of_programs,
        searches=searches,
        trials=trials,
    )
    app.before_request(note_route)
    services = app.extensions[SERVICES]
    worker(services).start()
    ending(services).start()
    filling(services, BackfillsApart(filling_process(settings))).start()
    services.quotas.reading.start()
    telling = bootstrap.connect(settings, Role.API, durable=False)
    Sharing(PostgresRates(telling), services.quotas).start()
    ways = (services.definitions.forget_unused, services.quotas.forget_unused)
    Forgetting(settings.forget_seconds, ways).start()
    lane = UpdatesLane(services.ingest)
    return app, Progress(ports.history, ports.log), lane.answers, services.quotas
