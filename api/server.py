"""Serves the REST API: one event loop a process, and more processes where that is asked."""

from __future__ import annotations

import asyncio
import logging
import resource
import signal
import socket
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from api.allocation import keep_some_memory
from api.edge.calls import Application, KnownQuotas, Together
from api.edge.edge import Edge
from api.edge.hall import Hall
from ingest.progress import Progress
from servioticy import bootstrap
from servioticy.doors.certificate import Certificate
from servioticy.doors.door import Door
from servioticy.doors.vestibule import PLAIN_HTTP, door
from servioticy.errors import SetupError
from servioticy.garbage import Garbage
from servioticy.metrics import Registry
from servioticy.metrics.loop_lag import LoopLag
from servioticy.settings import Settings, changed

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

log = logging.getLogger("api")

SECONDS_TO_FINISH = 3.0
"""What is under way at SIGTERM may take so long."""
BACKLOG = 4_096
UNSENT_BYTES = 128 * 1024
"""Of an answer, that Linux keeps beside what is under way. By itself it takes megabytes, and makes
a slow reader look like one that has taken them: its right to the rest is not asked about then."""
SWITCH_SECONDS = 0.001
"""So long a thread may compute while others want to: a PUT waits no longer for a large batch."""
FILES_OF_OUR_OWN = 512
"""Open files that are no clients' connections: Postgres, Kafka, the sandbox."""
MOST_AT_THE_DOOR = 1_000
"""And an eighth of the files at most."""


def run(
    settings: Settings,
    listener: socket.socket,
    build: Callable[[], tuple[WSGIApplication, Progress, Together, KnownQuotas]],
    registry: Registry,
) -> None:
    """Serve what comes to the listening socket until SIGTERM or SIGINT. Raises SetupError."""
    certificate = bootstrap.certificate(settings)
    files = raise_files()
    inside = files - FILES_OF_OUR_OWN - at_the_door(files)
    settings = changed(settings, api_connections=max(1, min(settings.api.connections, inside)))
    keep_some_memory()
    sys.setswitchinterval(SWITCH_SECONDS)
    app, progress, together, quotas = build()
    host, port = listener.getsockname()[:2]
    application = Application(app, host, port, together, quotas)
    asyncio.run(_serve(settings, listener, application, progress, registry, certificate))


def listen(settings: Settings) -> socket.socket:
    """Return the socket clients connect to. Raises SetupError."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server(
            (settings.host, settings.api.port), family=family, backlog=BACKLOG
        )
    except OSError as error:
        raise SetupError(
            f"cannot listen on {settings.host} port {settings.api.port}: {error}"
        ) from error


def raise_files() -> int:
    """Let this process open as many files as the machine allows; how many that is."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard if hard != resource.RLIM_INFINITY else 1 << 20


def at_the_door(files: int) -> int:
    """Return how many of these files may be those of connections that wait to be let in."""
    return min(MOST_AT_THE_DOOR, files // 8)


async def _serve(
    settings: Settings,
    listener: socket.socket,
    application: Application,
    progress: Progress,
    registry: Registry,
    certificate: Certificate | None,
) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    edge = Edge(application, progress, settings, loop, registry)
    LoopLag(registry).start()
    Garbage().start()
    entrance = attend([listener], edge, loop, certificate)
    await stop.wait()
    entrance.close()
    listener.close()
    await edge.stop(SECONDS_TO_FINISH)


def attend(
    listeners: Iterable[socket.socket],
    edge: Edge,
    loop: asyncio.AbstractEventLoop,
    certificate: Certificate | None = None,
) -> Door:
    """Let in whoever connects, from now on."""
    listeners = list(listeners)
    for each in listeners:
        # What it accepts inherits that.
        each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    found = door(loop, Hall(edge, loop), at_the_door(files), certificate, PLAIN_HTTP)
    found.attend(listeners)
    return found
