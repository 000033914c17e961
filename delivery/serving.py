"""What delivery and the broker have in common as programs: who is told, what is read, the end."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from delivery.admission.capacity import capacity, raise_descriptors
from delivery.admission.resting import Resting
from delivery.fanout import Note
from delivery.feeds.event_ids import log_digest
from delivery.feeds.feeds import Feeds
from delivery.hub import Hub
from servioticy import bootstrap, logs, settings
from servioticy.domain.quotas import LIVE_SUBSCRIPTIONS, SOCKETS, quotas
from servioticy.errors import ServioticyError, Unavailable
from servioticy.ports.addresses import Addresses
from servioticy.ports.history import History
from servioticy.settings import Settings
from servioticy.storage.access_changes import PostgresAccessChanges
from servioticy.storage.roles import Role

CHECK_SECONDS = 1.0
MAX_STARTS = 30
ALIVE_FILE = "SERVIOTICY_ALIVE_FILE"
"""Names a file that is touched while clients are served: a loop that hangs touches nothing."""

log = logging.getLogger("servioticy.delivery")


def stopping() -> asyncio.Event:
    """Return what is set by SIGTERM and SIGINT."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop


def hub(
    chosen: Settings,
    catalog: Addresses,
    history: History,
    clients: int,
    resting: Resting,
    note: Note,
) -> Hub:
    """Return one for so many clients."""
    every = quotas(chosen)
    return Hub(
        catalog,
        history,
        capacity(clients, every[SOCKETS], every[LIVE_SUBSCRIPTIONS], raise_descriptors()),
        resting=resting,
        note=note,
        access_changes=PostgresAccessChanges(bootstrap.connect(chosen, Role.DELIVERY)),
        max_backlog_bytes=chosen.delivery.backlog_bytes,
    )


async def read(chosen: Settings, hub: Hub, feeds: Feeds, stop: asyncio.Event, ready: str) -> None:
    """Read what is emitted until told to stop; without a reader we are of no use.

    `ready` is the event that says that clients are let in. Raises Unavailable.
    """
    reader = bootstrap.emitted_reader(chosen)
    for attempt in range(MAX_STARTS):
        try:
            thread = await asyncio.to_thread(reader.start, hub.publish)
            break
        except Unavailable:
            if stop.is_set() or attempt == MAX_STARTS - 1:
                raise
            await asyncio.sleep(CHECK_SECONDS)
    hub.fanout.begin_at(reader.begins)
    hub.fanout.log = log_digest(reader.topic_id)
    feeds.start()
    hub.let_in()
    log.info(ready)
    while not stop.is_set():
        _show_life()
        try:
            await asyncio.wait_for(stop.wait(), CHECK_SECONDS)
        except TimeoutError:
            if not thread.is_alive():
                raise Unavailable("what the pipeline emits cannot be read any more") from None
        # A balancer sends clients, those that are here already too, to one that has something.
        hub.reception.is_open = not reader.is_cut_off
    reader.stop()


def _show_life() -> None:
    if os.environ.get(ALIVE_FILE):
        Path(os.environ[ALIVE_FILE]).touch()


def main(run: Callable[[Settings], Awaitable[None]]) -> int:
    """Run the program; an expected failure is one line and exit code 1."""

    async def running(chosen: Settings) -> None:
        await run(chosen)

    try:
        chosen = settings.load()
        logs.configure(chosen.log_level)
        asyncio.run(running(chosen))
    except (ServioticyError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0
