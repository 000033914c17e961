"""What programs count, and `GET /metrics`. What there is stands in `names`."""

from servioticy.metrics.processes import join, shared
from servioticy.metrics.registry import Registry

__all__ = ["Registry", "join", "shared"]
