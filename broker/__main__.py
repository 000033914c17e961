"""`python -m broker` runs until SIGTERM or SIGINT, then lets all clients go."""

from __future__ import annotations

import sys
import time
from functools import partial

from broker.actuations import TopicWay, attach
from broker.bridge.bridge import Bridges
from broker.broker import Broker
from broker.ingesting import ingest
from broker.lane import Lane
from broker.listener import ENVELOPE_BYTES, BrokerTransport, Ports
from broker.metrics import observe_broker
from broker.names import Names
from broker.passing_on import PassingOn
from broker.receiver import TopicReceiver
from delivery import serving
from delivery.accounts import Accounts
from delivery.actuations.queues import Queues
from delivery.admission.fair_executor import FairExecutor
from delivery.admission.overrides import Overrides
from delivery.admission.places_shared import SharedPlaces
from delivery.admission.resting import Resting
from delivery.admission.spending import Spending
from delivery.peering import Peering
from delivery.rest_api import Api
from monitoring import following
from servioticy import bootstrap
from servioticy.domain.feed_slots import of_tenant
from servioticy.domain.quotas import LIVE_SUBSCRIPTIONS, SOCKETS, quotas
from servioticy.errors import SettingsError
from servioticy.garbage import Garbage
from servioticy.metrics import Registry
from servioticy.metrics.loop_lag import LoopLag
from servioticy.serving_metrics import serve
from servioticy.settings import Settings
from servioticy.settings.places import api_url, broker_peer_url
from servioticy.storage.actuations import PostgresActuations
from servioticy.storage.cursors import Deliverer, PostgresCursors
from servioticy.storage.history import PostgresHistory
from servioticy.storage.peers import PostgresPeers
from servioticy.storage.quotas import PostgresQuotas
from servioticy.storage.rates import PostgresRates
from servioticy.storage.roles import Role
from servioticy.storage.usage import PostgresUsage

THREADS = 2
SWITCH_SECONDS = 0.001
"""So long a thread that reads updates may compute while the loop wants to."""


async def run(chosen: Settings) -> None:
    """Serve until told to stop. Raises Unavailable where what is emitted cannot be read."""
    stop = serving.stopping()
    sys.setswitchinterval(SWITCH_SECONDS)
    database = bootstrap.connect(chosen, Role.DELIVERY)
    quick = bootstrap.connect(chosen, Role.DELIVERY, durable=False)
    quotas_given, resting = PostgresQuotas(quick), Resting()
    usage = PostgresUsage(quick)
    accounts = Accounts(usage, quotas_given, quotas(chosen), resting, Spending())
    history = PostgresHistory(database)
    asked = bootstrap.connect(chosen, Role.DELIVERY, statement_seconds=bootstrap.STATEMENT_SECONDS)
    catalog = bootstrap.addresses(chosen, asked)
    hub = serving.hub(chosen, catalog, history, chosen.mqtt.clients, resting, accounts.note)
    log, rates = bootstrap.log(chosen, asked), PostgresRates(quick)
    lane = Lane(ingest(chosen, asked, catalog, log, rates=rates))
    certificate = bootstrap.certificate(chosen, chosen.mqtt.client_ca)
    if chosen.mqtt.tls_port and certificate is None:
        raise SettingsError("mqtt_tls_port needs tls_certificate and tls_key, too")
    trust = bootstrap.trust_in_api(chosen, certificate)
    api = Api(chosen.mqtt.api_url or api_url(chosen), trust)
    peering = Peering(PostgresPeers(quick))
    names = Names(peering)
    broker = Broker(hub, history, api, lane, names)
    topics = TopicReceiver(broker.exchange).receive
    cursors = PostgresCursors(quick, Deliverer.BROKER, broker_peer_url(chosen))
    receivers = {"pubsub": topics, "service": topics}
    feeds = hub.feeds(cursors, bootstrap.emitted_pages(chosen), receivers)
    ask = FairExecutor("actuations", THREADS).run
    way = partial(TopicWay, broker.exchange)
    queues = Queues(PostgresActuations(quick), way, ask, clock=time.time)
    attach(broker.exchange, queues)
    reception = hub.reception
    places = {SOCKETS: reception.admitted, LIVE_SUBSCRIPTIONS: reception.subscriptions}
    overrides, shared = Overrides(quotas_given, places), SharedPlaces(peering, places)
    largest = chosen.requests.max_body_bytes
    passing_on = PassingOn(broker, lambda: feeds.claim, trust, largest + ENVELOPE_BYTES)
    bridges = Bridges(
        broker,
        chosen.bridge,
        largest + ENVELOPE_BYTES,
        lambda tenant: feeds.claim.has(of_tenant(tenant)),
    )
    registry = Registry()
    observe_broker(hub, feeds, broker, queues, bridges, passing_on, registry)
    serve(registry, chosen, "broker")
    LoopLag(registry).start()
    following.begin(chosen, "broker", registry)
    Garbage().start()
    try:
        await api.start()
        await accounts.start()
        for part in (queues, overrides, bridges, peering, names, shared, passing_on):
            part.start()
        ports = Ports(chosen.mqtt.port, chosen.mqtt.tls_port, certificate)
        await hub.start([BrokerTransport(broker, chosen.host, ports, largest)])
        await serving.read(chosen, hub, feeds, stop, "broker_ready")
    finally:
        # What takes from others ends first.
        for ending in (
            bridges,
            passing_on,
            feeds,
            queues,
            overrides,
            hub,
            peering,
            accounts,
            api,
            lane,
        ):
            await ending.stop()


if __name__ == "__main__":
    sys.exit(serving.main(run))
