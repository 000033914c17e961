"""What the broker measures: its clients, and what goes to them."""

from __future__ import annotations

from broker.bridge.bridge import Bridges
from broker.broker import Broker
from broker.passing_on import PassingOn
from delivery.actuations.queues import Queues
from delivery.feeds.feeds import Feeds
from delivery.hub import Hub
from servioticy.metrics import Registry
from servioticy.metrics.names import (
    ACTUATION_LANES,
    BACKLOG_BYTES,
    BRIDGES,
    BROKER_CLIENTS,
    BROKER_PASSED_ON,
    BROKER_PUSHED,
    BROKER_REFUSED,
    BROKER_TAKEN,
    EMITTED_READ,
    FEEDS,
    FEEDS_BEHIND,
    OFFERED,
    RESTING,
)


def observe_broker(
    hub: Hub,
    feeds: Feeds,
    broker: Broker,
    queues: Queues,
    bridges: Bridges,
    passing_on: PassingOn,
    registry: Registry,
) -> None:
    """Let the broker be asked for its metrics, from any thread."""
    registry.observe(BACKLOG_BYTES, lambda: hub.backlog.total)
    registry.observe(EMITTED_READ, lambda: hub.fanout.records_read)
    registry.observe(OFFERED, lambda: hub.fanout.updates_offered)
    registry.observe(FEEDS, lambda: len(feeds.feeds))
    registry.observe(FEEDS_BEHIND, lambda: feeds.behind)
    registry.observe(RESTING, lambda: hub.resting.count)
    registry.observe(ACTUATION_LANES, lambda: len(queues.lanes))
    registry.observe(BRIDGES, lambda: bridges.connected)
    registry.observe(BROKER_CLIENTS, lambda: len(broker.clients))
    registry.observe(BROKER_PASSED_ON, lambda: len(passing_on))
    registry.observe(BROKER_PUSHED, lambda: broker.exchange.published)
    registry.observe(BROKER_REFUSED, lambda: broker.refused)
    registry.observe(BROKER_TAKEN, lambda: broker.lane.taken)
