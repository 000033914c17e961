"""What delivery counts: its sockets, and what it gives to them."""

from __future__ import annotations

from delivery.server import Delivery
from servioticy.metrics import Registry
from servioticy.metrics.names import EMITTED_READ, PUSHED, SOCKET_BACKLOG, SOCKETS


def observe(delivery: Delivery, registry: Registry) -> None:
    """Let delivery be asked for its metrics."""
    registry.observe(SOCKETS, lambda: delivery.sockets)
    registry.observe(SOCKET_BACKLOG, lambda: delivery.backlog_bytes)
    registry.observe(EMITTED_READ, lambda: delivery.fanout.read)
    registry.observe(PUSHED, lambda: delivery.fanout.pushed)
