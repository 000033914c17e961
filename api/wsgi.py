"""The application of one worker process, as its environment describes it."""

from __future__ import annotations

from flask import Flask

from api.app import FLEETS, create_app
from api.documents.snippets import Snippets
from api.http.metrics import note_route
from api.http.read_after_write import Progress
from servioticy import bootstrap
from servioticy.settings import Settings


def build(settings: Settings) -> tuple[Flask, Progress]:
    """Connect and wire: the application, and what reads that wait ask."""
    pool = bootstrap.sandbox_pool(settings)
    ports = bootstrap.ports(settings)
    app = create_app(ports, settings, check=Snippets(pool).problems)
    app.before_request(note_route)
    app.extensions[FLEETS].start()
    return app, Progress(ports.history, ports.log)
