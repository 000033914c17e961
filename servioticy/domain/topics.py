"""Which topic carries what, keyed by what."""

from __future__ import annotations

from dataclasses import dataclass

MAX_MESSAGE_BYTES = 2_097_152
"""Key and value of one message; room for the largest body the API accepts, with its envelope."""

ENVELOPE_BYTES = 16_384
"""More than the rest of a log record can take: an id and the longest stream name, escaped."""

FRAME_BYTES = 1024
"""More than what Kafka's protocol puts around a message, which the topic's limit counts, too."""

MAX_LETTER_BYTES = MAX_MESSAGE_BYTES + 8192
"""A dead letter: a message of any other topic as it was, with headers that say what is wrong."""


def largest_update(max_body_bytes: int) -> int:
    """Return how many bytes the document of an accepted update may have."""
    return min(max_body_bytes, MAX_MESSAGE_BYTES - ENVELOPE_BYTES)


MAX_MESSAGE = "max.message.bytes"
RETENTION = "retention.ms"
DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Topics:
    """The platform's topics: names, and what the broker keeps. A prefix lets platforms share one.

    A program that is away for longer than `retention_days` misses what came first.
    """

    prefix: str = ""
    retention_days: int = 30

    @property
    def updates(self) -> str:
        """The log: accepted updates and control records; key: component."""
        return self.prefix + "updates"

    @property
    def emitted(self) -> str:
        """Every stored update, raw or derived, after its commit; key: stream."""
        return self.prefix + "emitted"

    @property
    def dead_letters(self) -> str:
        """Records that can never succeed, with the reason; key: none."""
        return self.prefix + "dead-letters"

    @property
    def all(self) -> tuple[str, ...]:
        """Every topic."""
        return (self.updates, self.emitted, self.dead_letters)

    @property
    def least(self) -> dict[str, dict[str, int]]:
        """By topic, what each setting of the broker's has to be at least."""
        retention = self.retention_days * DAY_MS
        return {
            name: {MAX_MESSAGE: size, RETENTION: retention} for name, size in self.sizes.items()
        }

    @property
    def sizes(self) -> dict[str, int]:
        """The `max.message.bytes` that each topic needs at least."""
        return {
            self.updates: MAX_MESSAGE_BYTES + FRAME_BYTES,
            self.emitted: MAX_MESSAGE_BYTES + FRAME_BYTES,
            self.dead_letters: MAX_LETTER_BYTES + FRAME_BYTES,
        }
