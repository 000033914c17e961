"""Which topic carries what, keyed by what."""

from __future__ import annotations

from dataclasses import dataclass

MAX_MESSAGE_BYTES = 2_097_152
"""Room for the largest body the API accepts, with its envelope."""


@dataclass(frozen=True, slots=True)
class Topics:
    """The names of the platform's topics; a prefix lets platforms share a broker."""

    prefix: str = ""

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
