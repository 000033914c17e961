"""Serves the REST API: granian's processes and threads around the application."""

from __future__ import annotations

import os

from granian import Granian
from granian.constants import Interfaces

from servioticy.settings import Settings, to_environment

SECONDS_TO_FINISH = 3
"""What is under way at SIGTERM may take so long; then its process is killed."""
IDLE_THREAD_SECONDS = 600
"""The longest granian allows: a thread takes its connection to Postgres with it."""


def run(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT. Worker processes get the settings as environment."""
    os.environ.update(to_environment(settings))
    Granian(
        "api.wsgi:build",
        factory=True,
        interface=Interfaces.WSGI,
        address=settings.host,
        port=settings.api_port,
        workers=settings.api_workers,
        blocking_threads=settings.api_threads,
        blocking_threads_idle_timeout=IDLE_THREAD_SECONDS,
        workers_kill_timeout=SECONDS_TO_FINISH,
        respawn_failed_workers=True,
        respawn_interval=1.0,
        websockets=False,
        log_access=False,
    ).serve()
