"""Serves the REST API: one event loop a process, and more processes where that is asked."""

from __future__ import annotations

import asyncio
import errno
import logging
import resource
import signal
import socket
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from api.allocation import keep_some_memory
from api.edge.calls import Application, KnownQuotas, Together
from api.edge.connection import Connection
from api.edge.edge import Edge
from api.http.read_after_write import Progress
from servioticy.errors import SetupError
from servioticy.metrics import Registry
from servioticy.metrics.loop_lag import LoopLag
from servioticy.settings import Settings, changed

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

log = logging.getLogger("api")

MAX_AT_ONCE = 64
SURELY_AT_ONCE = 32
"""So many are let in whenever the door has its turn: who is known waits among them."""
PAUSE_SECONDS = 0.1
"""Until we accept again where that has failed."""
ROOM_AT_ONCE = 8
"""Silent connections that go then, for want of open files."""
SECONDS_TO_FINISH = 3.0
"""What is under way at SIGTERM may take so long."""
CONNECT_SECONDS = 0.00005
"""What it takes to let one in, beside what is measured of it."""
BACKLOG = 4_096
UNSENT_BYTES = 128 * 1024
"""Of an answer, that Linux keeps beside what is under way. By itself it takes megabytes, and makes
a slow reader look like one that has taken them: its right to the rest is not asked about then."""
SWITCH_SECONDS = 0.001
"""So long a thread may compute while others want to: a PUT waits no longer for a large batch."""
FILES_OF_OUR_OWN = 512
"""Open files that are no clients' connections: Postgres, Kafka, the sandbox."""
NO_FILES = (errno.EMFILE, errno.ENFILE)
"""Our process, or the machine, may open no more files: a connection has to close."""

_arriving: set[asyncio.Task[Any]] = set()
"""The loop itself keeps no hold on its tasks."""


def run(
    settings: Settings,
    listener: socket.socket,
    build: Callable[[], tuple[WSGIApplication, Progress, Together, KnownQuotas]],
    registry: Registry,
) -> None:
    """Serve what comes to the listening socket until SIGTERM or SIGINT."""
    settings = changed(
        settings,
        api_connections=max(1, min(settings.api.connections, raise_files() - FILES_OF_OUR_OWN)),
    )
    keep_some_memory()
    sys.setswitchinterval(SWITCH_SECONDS)
    app, progress, together, quotas = build()
    host, port = listener.getsockname()[:2]
    application = Application(app, host, port, together, quotas)
    asyncio.run(_serve(settings, listener, application, progress, registry))


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


async def _serve(
    settings: Settings,
    listener: socket.socket,
    application: Application,
    progress: Progress,
    registry: Registry,
) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    edge = Edge(application, progress, settings, loop, registry)
    LoopLag(registry).start()
    attend(listener, edge, loop)
    await stop.wait()
    loop.remove_reader(listener)
    listener.close()
    await edge.stop(SECONDS_TO_FINISH)


def attend(listener: socket.socket, edge: Edge, loop: asyncio.AbstractEventLoop) -> None:
    """Let in whoever connects, from now on."""
    if edge.stopping:
        return
    listener.setblocking(False)
    # What it accepts inherits that.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)
    loop.add_reader(listener, _accept, listener, edge, loop)


def _accept(listener: socket.socket, edge: Edge, loop: asyncio.AbstractEventLoop) -> None:
    """Let in who waits, in the part of the loop that the door has.

    It is its own: with that of the strangers inside it would be shut as long as they want more
    than theirs. As soon as that is paid for, one of them takes the next turn.
    """
    if not edge.door.turn(None, edge, partial(_let_in, listener, edge, loop)):
        loop.remove_reader(listener)  # the others wait where they are


def _let_in(listener: socket.socket, edge: Edge, loop: asyncio.AbstractEventLoop) -> None:
    """Let in who waits, but not so many at once that the others notice."""
    if edge.stopping:
        return
    loop.add_reader(listener, _accept, listener, edge, loop)
    for number in range(MAX_AT_ONCE):
        if number >= SURELY_AT_ONCE and edge.door.owed() > 0:
            return
        try:
            client, _address = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        except OSError as error:
            # Tried again at once it would fail again, and nothing else would be done.
            log.warning("cannot_accept", extra={"reason": str(error)})
            loop.remove_reader(listener)
            loop.call_later(PAUSE_SECONDS, attend, listener, edge, loop)
            if error.errno in NO_FILES:
                for _ in range(ROOM_AT_ONCE):
                    edge.make_room()
            return
        client.setblocking(False)
        edge.door.charge(CONNECT_SECONDS)
        task = loop.create_task(
            loop.connect_accepted_socket(partial(Connection, edge, client), client)
        )
        _arriving.add(task)
        task.add_done_callback(_arriving.discard)
