"""`python -m delivery` runs until SIGTERM or SIGINT, then closes every connection."""

from __future__ import annotations

import logging
import sys
from functools import partial

from delivery import serving
from delivery.accounts import Accounts
from delivery.actuations.actuating import Actuating
from delivery.admission.overrides import Overrides
from delivery.admission.places_shared import SharedPlaces
from delivery.admission.resting import Resting
from delivery.admission.spending import Spending
from delivery.callbacks.asked_tests import AskedTests
from delivery.callbacks.http_client import HttpClient
from delivery.callbacks.receiver import Callbacks
from delivery.evaluating.evaluator import Evaluator
from delivery.feeds.pulls import Pulls
from delivery.metrics import observe, observe_actuations
from delivery.peering import Peering
from delivery.rest_api import Api
from delivery.transports.devices import Devices
from delivery.transports.http import HttpTransport
from delivery.transports.live import LiveSession
from delivery.transports.passing_on import PassingOn
from delivery.transports.websocket import WebSocketTransport
from delivery.workflows import Workflows
from monitoring import following
from servioticy import bootstrap
from servioticy.domain.quotas import LIVE_SUBSCRIPTIONS, SOCKETS, quotas
from servioticy.garbage import Garbage
from servioticy.identity.console_sessions import AddressesOfSessions
from servioticy.metrics import Registry
from servioticy.metrics.loop_lag import LoopLag
from servioticy.serving_metrics import serve
from servioticy.settings import Settings
from servioticy.settings.places import api_url, callback_networks, own_ports, peer_url
from servioticy.storage.actuations import PostgresActuations
from servioticy.storage.atoms import PostgresAtoms
from servioticy.storage.callback_tests import PostgresCallbackTests
from servioticy.storage.cursors import Deliverer, PostgresCursors
from servioticy.storage.dead_deliveries import PostgresDeadDeliveries
from servioticy.storage.history import PostgresHistory
from servioticy.storage.peers import PostgresPeers
from servioticy.storage.quotas import PostgresQuotas
from servioticy.storage.roles import Role
from servioticy.storage.service_objects import PostgresServiceObjects
from servioticy.storage.usage import PostgresUsage

CONDITION_WORKERS = 2
"""Processes for the conditions of tenants, of which one runs at a time."""

log = logging.getLogger("servioticy.delivery")


async def run(chosen: Settings) -> None:
    """Serve until told to stop. Raises Unavailable where what is emitted cannot be read."""
    stop = serving.stopping()
    database = bootstrap.connect(chosen, Role.DELIVERY)
    own, history = chosen.delivery, PostgresHistory(database)
    client = HttpClient(callback_networks(chosen), own_ports=own_ports(chosen))
    # What a killed Postgres has forgotten is done again, so nothing waits for the disk: what is
    # buried is forgotten only together with the cursor that has passed it.
    quick = bootstrap.connect(chosen, Role.DELIVERY, durable=False)
    quotas_given, resting, spending = PostgresQuotas(quick), Resting(), Spending()
    accounts = Accounts(PostgresUsage(quick), quotas_given, quotas(chosen), resting, spending)
    sessions = bootstrap.console_sessions(database)
    catalog = AddressesOfSessions(bootstrap.addresses(chosen, database), sessions)
    hub = serving.hub(chosen, catalog, history, own.sockets, resting, accounts.note)
    evaluator = Evaluator()
    callbacks = Callbacks(client, PostgresDeadDeliveries(quick), evaluator)
    tests = AskedTests(callbacks, PostgresCallbackTests(database))
    cursors = PostgresCursors(quick, Deliverer.DELIVERY, peer_url(chosen))
    pages = bootstrap.emitted_pages(chosen)
    certificate = bootstrap.certificate(chosen)
    trust = bootstrap.trust_in_api(chosen, certificate)
    api = Api(chosen.mqtt.api_url or api_url(chosen), trust)
    actuating = Actuating(
        PostgresActuations(quick),
        PostgresServiceObjects(database),
        partial(bootstrap.sandbox_pool, chosen, max_workers=CONDITION_WORKERS),
        spending,
        callbacks,
        evaluator,
        lambda: feeds.claim,
    )
    pulls = Pulls()
    workflows = Workflows(PostgresAtoms(database), quotas(chosen), quotas_given.of_all)
    receivers = {
        "actions": actuating.acting.receive,
        "http": callbacks.receive,
        "pull": pulls.receive,
        "workflow": workflows.receive,
    }
    reception = hub.reception
    places = {SOCKETS: reception.admitted, LIVE_SUBSCRIPTIONS: reception.subscriptions}
    overrides, peering = Overrides(quotas_given, places), Peering(PostgresPeers(quick))
    shared = SharedPlaces(peering, places)
    feeds = hub.feeds(cursors, pages, receivers)
    registry = Registry()
    observe(hub, feeds, callbacks, registry)
    observe_actuations(actuating.queues, actuating.acting, registry)
    serve(registry, chosen, "delivery")
    LoopLag(registry).start()
    following.begin(chosen, "delivery", registry)
    Garbage().start()
    passing_on = PassingOn(feeds, trust)
    http = HttpTransport(hub, feeds, pulls, passing_on)
    live = partial(LiveSession, hub, feeds, pulls, Devices(actuating.queues, api))
    place = bootstrap.console_place(chosen)
    sockets = WebSocketTransport(
        hub, chosen.host, own.port, http.protocol, live, place, certificate
    )
    try:
        await client.start()
        await api.start()
        await passing_on.start()
        await accounts.start()
        for part in (actuating, tests, overrides, peering, shared):
            part.start()
        await hub.start([http, sockets])
        await serving.read(chosen, hub, feeds, stop, "delivery_ready")
    finally:
        # What takes from others ends first.
        for ending in (
            feeds,
            actuating,
            tests,
            client,
            evaluator,
            overrides,
            hub,
            peering,
            accounts,
            api,
            passing_on,
        ):
            await ending.stop()


if __name__ == "__main__":
    sys.exit(serving.main(run))
