"""What delivery measures: its connections, and what it gives to them."""

from __future__ import annotations

from delivery.hub import Hub
from servioticy.metrics import Registry
from servioticy.metrics.names import BACKLOG_BYTES, CONNECTIONS, EMITTED_READ, OFFERED


def observe(hub: Hub, registry: Registry) -> None:
    """Let the hub be asked for its metrics, from any thread."""
    registry.observe(CONNECTIONS, lambda: hub.connections)
    registry.observe(BACKLOG_BYTES, lambda: hub.backlog.total)
    registry.observe(EMITTED_READ, lambda: hub.fanout.records_read)
    registry.observe(OFFERED, lambda: hub.fanout.updates_offered)
