"""What delivery measures: its connections, and what it gives to them."""

from __future__ import annotations

from delivery.actuations.acting_streams import ActingStreams
from delivery.actuations.queues import Queues
from delivery.callbacks.receiver import Callbacks
from delivery.feeds.feeds import Feeds
from delivery.hub import Hub
from servioticy.metrics import Registry
from servioticy.metrics.names import (
    ACTUATION_LANES,
    ACTUATIONS_ASKED,
    BACKLOG_BYTES,
    CALLBACKS,
    CALLBACKS_FAILED,
    CONDITIONS_FAILED,
    CONNECTIONS,
    EMITTED_READ,
    FEEDS,
    FEEDS_BEHIND,
    OFFERED,
    RESTING,
)


def observe(hub: Hub, feeds: Feeds, callbacks: Callbacks, registry: Registry) -> None:
    """Let delivery be asked for its metrics, from any thread."""
    registry.observe(CONNECTIONS, lambda: hub.connections)
    registry.observe(BACKLOG_BYTES, lambda: hub.backlog.total)
    registry.observe(EMITTED_READ, lambda: hub.fanout.records_read)
    registry.observe(OFFERED, lambda: hub.fanout.updates_offered)
    registry.observe(FEEDS, lambda: len(feeds.feeds))
    registry.observe(FEEDS_BEHIND, lambda: feeds.behind)
    registry.observe(RESTING, lambda: hub.resting.count)
    registry.observe(CALLBACKS, lambda: callbacks.delivered)
    registry.observe(CALLBACKS_FAILED, lambda: callbacks.failed)


def observe_actuations(queues: Queues, acting: ActingStreams, registry: Registry) -> None:
    """Let actuations be asked about, from any thread."""
    registry.observe(ACTUATION_LANES, lambda: len(queues.lanes))
    registry.observe(ACTUATIONS_ASKED, lambda: acting.asked)
    registry.observe(CONDITIONS_FAILED, lambda: acting.faults)
