"""What programs count, and `GET /metrics`. What there is stands in `names`."""

from servioticy.metrics.processes import join, shared
from servioticy.metrics.registry import Registry
from servioticy.metrics.server import serve

__all__ = ["Registry", "join", "serve", "shared"]
