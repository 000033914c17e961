"""What is offered to the platform, and what becomes of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from servioticy.domain.model import StreamRef
from servioticy.errors import ServioticyError
from servioticy.ports.addresses import Address

LARGE_BYTES = 16_384
"""An update of so many bytes, and more, waits for the log as batches do: the pipeline has as much
work with 1 MiB as with a thousand small ones."""


def weight(updates: int, size: int) -> int:
    """Return what so many updates, of so many bytes together, count where they wait."""
    return updates + size // 1024


class Offered(NamedTuple):
    """An update as a device sends it, and the stream that it is for."""

    stream: StreamRef
    body: bytes
    trace: str = ""
    """its trace context (`servioticy/domain/traces.py`); empty: none"""

    @property
    def is_large(self) -> bool:
        """Whether it may have to wait for the log."""
        return len(self.body) >= LARGE_BYTES


class Sent(NamedTuple):
    """What came of one sender at once, in its order; it counts together for quotas."""

    token: str
    updates: Sequence[Offered]

    @property
    def is_large(self) -> bool:
        """Whether any of it may have to wait for the log: all of it waits then, for its order."""
        return any(each.is_large for each in self.updates)


class Taken(NamedTuple):
    """An update that is in the log, acknowledged by all replicas: a promise may be made."""

    address: Address
    document: bytes
    """as it is kept"""
    hints: Sequence[str]
    """what is odd about it though it is taken"""


class Unread(ServioticyError):
    """The document that declares the stream has to be read first, or the update is a large one.

    Others would wait for either: who is patient has it taken.
    """


class Fault(ServioticyError):
    """Something of ours failed; the log tells what."""


Outcome: TypeAlias = Taken | ServioticyError
"""Why it is not taken: with its status and words in `servioticy/refusals.py`."""
