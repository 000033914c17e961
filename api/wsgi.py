"""The application of one worker process, as its environment describes it."""

from __future__ import annotations

from flask import Flask

from api.app import SERVICES, create_app
from api.background.worker import worker
from api.documents.snippets import Snippets
from api.edge.calls import Together
from api.http.metrics import note_route
from api.http.read_after_write import Progress
from api.updates_lane import UpdatesLane
from servioticy import bootstrap
from servioticy.settings import Settings


def build(settings: Settings) -> tuple[Flask, Progress, Together]:
    """Connect and wire: the application, what reads that wait ask, and the lane of updates."""
    pool = bootstrap.sandbox_pool(settings)
    ports = bootstrap.ports(settings)
    app = create_app(ports, settings, check=Snippets(pool).problems)
    app.before_request(note_route)
    worker(app.extensions[SERVICES]).start()
    lane = UpdatesLane(app.extensions[SERVICES])
    return app, Progress(ports.history, ports.log), lane.answers
