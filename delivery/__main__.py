"""`python -m delivery` runs until SIGTERM or SIGINT, then closes every connection."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from functools import partial

from delivery.accounts import Accounts
from delivery.actuations.actuating import Actuating
from delivery.admission.capacity import capacity, raise_descriptors
from delivery.admission.overrides import Overrides
from delivery.admission.resting import Resting
from delivery.admission.spending import Spending
from delivery.bridge.bridge import Bridges
from delivery.broker.api import Api
from delivery.broker.broker import Broker
from delivery.broker.listener import ENVELOPE_BYTES, BrokerTransport
from delivery.broker.receiver import TopicReceiver
from delivery.callbacks.asked_tests import AskedTests
from delivery.callbacks.http_client import HttpClient
from delivery.callbacks.receiver import Callbacks
from delivery.evaluating.evaluator import Evaluator
from delivery.fanout import Note
from delivery.feeds.feeds import Feeds
from delivery.feeds.pulls import Pulls
from delivery.hub import Hub
from delivery.metrics import observe, observe_actuations, observe_broker
from delivery.transports.devices import Devices
from delivery.transports.http import HttpTransport
from delivery.transports.live import LiveSession
from delivery.transports.websocket import WebSocketTransport
from servioticy import bootstrap, logs, settings
from servioticy.domain.quotas import LIVE_SUBSCRIPTIONS, SOCKETS, quotas
from servioticy.errors import ServioticyError, Unavailable
from servioticy.identity.issuers import with_persons
from servioticy.metrics import Registry, serve
from servioticy.metrics.loop_lag import LoopLag
from servioticy.ports.history import History
from servioticy.settings import Settings
from servioticy.settings.places import api_url
from servioticy.storage.access_changes import PostgresAccessChanges
from servioticy.storage.actuations import PostgresActuations
from servioticy.storage.addresses import PostgresAddresses
from servioticy.storage.callback_tests import PostgresCallbackTests
from servioticy.storage.cursors import PostgresCursors
from servioticy.storage.database import Database
from servioticy.storage.dead_deliveries import PostgresDeadDeliveries
from servioticy.storage.history import PostgresHistory
from servioticy.storage.quotas import PostgresQuotas
from servioticy.storage.roles import Role
from servioticy.storage.service_objects import PostgresServiceObjects
from servioticy.storage.usage import PostgresUsage

CHECK_SECONDS = 1.0
MAX_STARTS = 30
CONDITION_WORKERS = 2
"""Processes for the conditions of tenants, of which one runs at a time."""

log = logging.getLogger("servioticy.delivery")


async def run(chosen: Settings) -> None:
    """Serve until told to stop. Raises Unavailable where what is emitted cannot be read."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    database = bootstrap.connect(chosen, Role.DELIVERY)
    own, history = chosen.delivery, PostgresHistory(database)
    client = HttpClient(own.callback_networks.split())
    # What a killed Postgres has forgotten is done again, so nothing waits for the disk: what is
    # buried is forgotten only together with the cursor that has passed it.
    quick = bootstrap.connect(chosen, Role.DELIVERY, durable=False)
    quotas_given, resting, spending = PostgresQuotas(quick), Resting(), Spending()
    accounts = Accounts(PostgresUsage(quick), quotas_given, quotas(chosen), resting, spending)
    hub = _hub(chosen, database, history, resting, accounts.note)
    evaluator = Evaluator()
    callbacks = Callbacks(client, PostgresDeadDeliveries(quick), evaluator)
    tests = AskedTests(callbacks, PostgresCallbackTests(database))
    cursors = PostgresCursors(quick)
    pages = bootstrap.emitted_pages(chosen)
    api = Api(chosen.mqtt.api_url or api_url(chosen))
    broker = Broker(hub, history, api)
    actuating = Actuating(
        PostgresActuations(quick),
        PostgresServiceObjects(database),
        partial(bootstrap.sandbox_pool, chosen, max_workers=CONDITION_WORKERS),
        spending,
        broker.exchange,
        callbacks,
        evaluator,
        lambda: feeds.is_owner,
    )
    topics, pulls = TopicReceiver(broker.exchange).receive, Pulls()
    receivers = {
        "actions": actuating.acting.receive,
        "http": callbacks.receive,
        "pull": pulls.receive,
        "pubsub": topics,
        "service": topics,
    }
    reception = hub.reception
    places = {SOCKETS: reception.admitted, LIVE_SUBSCRIPTIONS: reception.subscriptions}
    overrides = Overrides(quotas_given, places)
    feeds = hub.feeds(cursors, pages, receivers)
    largest = chosen.requests.max_body_bytes
    bridges = Bridges(broker, chosen.bridge, largest + ENVELOPE_BYTES, lambda: feeds.is_owner)
    registry = Registry()
    observe(hub, feeds, callbacks, registry)
    observe_broker(broker, bridges, registry)
    observe_actuations(actuating.queues, actuating.acting, registry)
    serve(registry, chosen.metrics_host, own.metrics_port)
    LoopLag(registry).start()
    http = HttpTransport(hub, feeds, pulls)
    live = partial(LiveSession, hub, feeds, pulls, Devices(actuating.queues, api))
    sockets = WebSocketTransport(hub, chosen.host, own.port, http.protocol, live)
    messages = BrokerTransport(broker, chosen.host, chosen.mqtt.port, largest)
    try:
        await client.start()
        await api.start()
        await accounts.start()
        for part in (actuating, tests, overrides, bridges):
            part.start()
        await hub.start([http, sockets, messages])
        await _read(chosen, hub, feeds, stop)
    finally:
        # What takes from others ends first.
        for ending in (
            bridges,
            feeds,
            actuating,
            tests,
            client,
            evaluator,
            overrides,
            hub,
            accounts,
            api,
        ):
            await ending.stop()


def _hub(
    chosen: Settings, database: Database, history: History, resting: Resting, note: Note
) -> Hub:
    own, all_ = chosen.delivery, quotas(chosen)
    return Hub(
        with_persons(PostgresAddresses(database), chosen.identity),
        history,
        capacity(own.sockets, all_[SOCKETS], all_[LIVE_SUBSCRIPTIONS], raise_descriptors()),
        resting=resting,
        note=note,
        access_changes=PostgresAccessChanges(bootstrap.connect(chosen, Role.DELIVERY)),
        max_backlog_bytes=own.backlog_bytes,
    )


async def _read(chosen: Settings, hub: Hub, feeds: Feeds, stop: asyncio.Event) -> None:
    """Read what is emitted until told to stop; without a reader we are of no use."""
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
    feeds.start()
    hub.let_in()
    log.info("delivery_ready", extra={"port": chosen.delivery.port})
    while not stop.is_set():
        try:
            await asyncio.wait_for(stop.wait(), CHECK_SECONDS)
        except TimeoutError:
            if not thread.is_alive():
                raise Unavailable("what the pipeline emits cannot be read any more") from None
    reader.stop()


def main() -> int:
    """Run the program; an expected failure is one line and exit code 1."""
    try:
        chosen = settings.load()
        logs.configure(chosen.log_level)
        asyncio.run(run(chosen))
    except (ServioticyError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
