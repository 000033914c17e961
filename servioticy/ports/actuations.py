"""Actuations: what devices are asked to do, how it is delivered, and what they say of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, auto
from typing import Any, NamedTuple, Protocol

from servioticy.domain.actuations import State
from servioticy.domain.model import ServiceObjectKey


class Actuation(NamedTuple):
    """One time a device is asked to do something."""

    id: str
    """The same, however often it is delivered."""
    parameters: str
    description: bytes
    """The action, as JSON of its document."""
    created_ms: int
    expires_ms: int


class NewActuation(NamedTuple):
    """An actuation that somebody submits."""

    id: str
    action: Mapping[str, Any]
    """As the document in force has it."""
    parameters: str
    timeout: int
    """Seconds within which it is to be done."""


class Submission(Enum):
    """What came of submitting one."""

    MADE = auto()
    UNKNOWN = auto()
    """There is no such Service Object of this tenant."""
    FULL = auto()
    """Too many wait for the Service Object."""
    FULL_FOR_TENANT = auto()
    """Too many wait for all of the tenant's."""


class ActuationRecord(NamedTuple):
    """An actuation as it was submitted, and all that is known of how it went."""

    action: str
    parameters: str
    status: str
    """What was said of it last."""
    reports: Sequence[Mapping[str, Any]]
    created_ms: int
    updated_ms: int
    state: State
    """As it is stored: whether its time is over is said by `expires_ms`."""
    times: Mapping[str, int]
    """When it came to each state."""
    expires_ms: int


class ActuationSummary(NamedTuple):
    """One of several, without its parameters and all that was said before."""

    id: str
    action: str
    status: str
    """What was said of it last."""
    created_ms: int
    updated_ms: int
    state: State
    """As it is stored: whether its time is over is said by `expires_ms`."""
    times: Mapping[str, int]
    """When it came to each state."""
    expires_ms: int


class News(NamedTuple):
    """Which devices have something to get, and from where to ask on."""

    upto: str
    service_objects: Sequence[ServiceObjectKey]
    calling: Sequence[ServiceObjectKey] = ()
    """Those of them whose documents name somebody to call."""


class ActuationRequest(NamedTuple):
    """An actuation that a composite stream asks for."""

    id: str
    """The same whenever the same output asks for the same: it is made once."""
    action: str
    parameters: str
    refusal: str | None = None
    """Why it cannot be done; then it is kept as one that has failed."""


class CalledBack(NamedTuple):
    """Whom a Service Object calls with its actuations."""

    callback: Mapping[str, Any]
    """As its document has it: `destination`, and perhaps `format` and `customFields`."""
    secrets: Sequence[Mapping[str, Any]]
    """As they are stored."""


class ActuationRecords(Protocol):
    """Actuations for those who submit and report them. Every call may raise Unavailable."""

    def submit(self, key: ServiceObjectKey, new: NewActuation, now_ms: int) -> Submission:
        """Queue an actuation, unless too much waits."""

    def find(self, key: ServiceObjectKey, id_: str) -> ActuationRecord | None:
        """Return an actuation of this Service Object; None: it has no such."""

    def newest(self, key: ServiceObjectKey, most: int) -> list[ActuationSummary]:
        """Return those of this Service Object that were asked for last, the latest first."""

    def report(
        self, key: ServiceObjectKey, id_: str, status: str, now_ms: int, *, by_device: bool
    ) -> bool:
        """Note what is said of one. False: the Service Object has no such.

        What somebody else than the device says does not mean that the device has it.
        """

    def callback(self, key: ServiceObjectKey) -> CalledBack | None:
        """Return whom the Service Object calls now; None: nobody."""

    def exchange_secrets(
        self,
        key: ServiceObjectKey,
        before: Sequence[Mapping[str, Any]],
        after: Sequence[Mapping[str, Any]],
    ) -> bool:
        """Let others sign what it is called with. False: those are not in force any more."""


class Actuations(Protocol):
    """What is queued for devices. Every call may raise Unavailable."""

    def news(self, since: str | None, asked: Iterable[ServiceObjectKey]) -> News:
        """Return those for which something is queued since the last `upto`, and of those that
        are asked about whoever has something waiting."""

    def ask(self, key: ServiceObjectKey, request: ActuationRequest, now_ms: int) -> bool:
        """Make an actuation once, though too much waits: then it has failed.

        False: there is no such Service Object of this tenant, or it has no such action.
        """

    def waiting(
        self, tenant: int, service_objects: Sequence[str], most: int, now_ms: int
    ) -> Mapping[str, Sequence[Actuation]]:
        """Return the first ones that devices have still to get, each its own in order."""

    def waiting_for(self, tenant: int, now_ms: int) -> list[ServiceObjectKey]:
        """Return the devices of a tenant that have still something to get."""

    def calling(self, now_ms: int) -> list[ServiceObjectKey]:
        """Return all for which something waits that somebody is to be called with."""

    def callback(self, key: ServiceObjectKey) -> CalledBack | None:
        """Return whom the Service Object calls now; None: nobody."""

    def failed(self, key: ServiceObjectKey, id_: str, reason: str, now_ms: int) -> None:
        """Note that this one has failed, unless it has ended already, and say why."""

    def moved(self, tenant: int, ids: Sequence[str], state: State, now_ms: int) -> None:
        """Note that these have come to a state, where they had not come so far."""
