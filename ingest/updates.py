"""What is offered to the platform, and what becomes of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from servioticy.domain.model import StreamRef
from servioticy.errors import ServioticyError
from servioticy.ports.addresses import Address


class Offered(NamedTuple):
    """An update as a device sends it, and the stream that it is for."""

    stream: StreamRef
    body: bytes


class Sent(NamedTuple):
    """What came of one sender at once, in its order; it counts together for quotas."""

    token: str
    updates: Sequence[Offered]


class Taken(NamedTuple):
    """An update that is in the log, acknowledged by all replicas: a promise may be made."""

    address: Address
    document: bytes
    """as it is kept"""
    hints: Sequence[str]
    """what is odd about it though it is taken"""


class Unread(ServioticyError):
    """The document that declares the stream has to be read first, and others would wait for it."""


class Fault(ServioticyError):
    """Something of ours failed; the log tells what."""


Outcome: TypeAlias = Taken | ServioticyError
"""Why it is not taken: with its status and words in `servioticy/refusals.py`."""
