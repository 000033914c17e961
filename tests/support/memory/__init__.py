"""In-memory twins of the ports that the engine's laws are tested with, in one object.

What a twin promises, `tests/ports/` also asks of Postgres and Kafka. What only the REST API
asks for has no twin: it is tested on the embedded Postgres (`tests/integration/rest/`).
"""

from memory.platform import MemoryPlatform

__all__ = ["MemoryPlatform"]
