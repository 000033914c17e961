"""The ports' in-memory twins: a whole platform in one object, for tests and trials.

What a twin promises, `tests/ports/` also asks of Postgres and Kafka.
"""

from servioticy.memory.platform import MemoryPlatform

__all__ = ["MemoryPlatform"]
