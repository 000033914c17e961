"""One connected client, whatever it speaks: who it is, what it subscribes to, what it is owed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple, Protocol

from broker.topics import Filter
from delivery.admission.refusals import Refusal, Refused
from delivery.admission.requests import Identity
from delivery.backlog import Backlog
from delivery.endings import Ending
from servioticy.domain.access import Right, Scope
from servioticy.domain.model import StreamRef

NOT_LOGGED_IN = Refusal(403, "Log in with a token as password, or begin the topic with a token")
MAX_SUBSCRIPTIONS = 200
"""Of one client."""
MAX_UNSENT_BYTES = 8 * 1024 * 1024
"""A client for which more waits is cut off."""
ROOM_BYTES = 512 * 1024
"""What can wait elsewhere is sent while less than this waits here."""
MESSAGE_BYTES = 200
"""A message takes these beside its topic and its payload."""
STALL_SECONDS = 30.0

Taken = Callable[[bool], None]
"""Is told once whether the client has got a message."""


def nothing() -> None:
    """Nobody asks."""


def nothing_of(_client: Client) -> None:
    """Nobody asks what becomes of clients."""


class Publication(NamedTuple):
    """A message on its way to whoever subscribes to its topic."""

    tenant: int
    levels: tuple[str, ...]
    payload: bytes
    stream: StreamRef | None
    """What it is about: a token shows nothing that it is not for."""
    only_for: str | None = None
    """A token: who has it may have the message, and who has all rights of its tenant."""
    actuated: str | None = None
    """A Service Object: who may speak for its device may have what that is asked to do."""

    def is_for(self, identity: Identity) -> bool:
        """Whether somebody who subscribes to the topic may have it."""
        if self.only_for is not None:
            return identity.scope == Scope() or identity.token == self.only_for
        if self.actuated is not None:
            return identity.scope.reaches(self.actuated, None, Right.SEND)
        service_object, stream = self.stream or (None, None)
        return identity.scope.reaches(service_object, stream, Right.SUBSCRIBE)


class Parting(Enum):
    """For what kind of reason we end a connection."""

    OURS = "the client may come again"
    REFUSED = "it has no right to come again"
    TAKEN_OVER = "another client of its name has come"


class Outlet(Protocol):
    """How a client's protocol reaches it. No method waits."""

    def send(
        self, subscription: Subscription, topic: str, payload: bytes, taken: Taken, *, old: bool
    ) -> None:
        """Send a message; `taken` is told when the client has it, or is gone. `old`: it is the
        last one from before the subscription."""

    def unsent_bytes(self) -> int:
        """Return how many bytes are kept for the client because it has not taken them yet."""

    def close(self, why: str, parting: Parting = Parting.OURS) -> None:
        """Tell the client why, where its protocol can, and end the connection."""

    def abort(self) -> None:
        """End the connection at once."""


class Subscription:
    """A client's wish to get what is published to the topics that match."""

    def __init__(self, client: Client, name: str, wanted: Filter, qos: int) -> None:
        self.client = client
        self.name = name
        """What the client calls it."""
        self.wanted = wanted
        self.qos = qos

    def send(self, levels: tuple[str, ...], payload: bytes, taken: Taken, *, old: bool) -> None:
        """Send a message; its topic begins as the client wrote it, where it wrote it out."""
        first = levels[0] if self.wanted.is_everything else self.wanted.levels[0]
        self.client.send(self, "/".join((first, *levels[1:])), payload, taken, old=old)

    def wants(self, publication: Publication) -> bool:
        """Tell whether a message matches.

        Answers to requests go to where those came from, and of actuations each process asks for
        those of its own clients.
        """
        is_elsewhere = publication.only_for is not None and self.wanted.is_everything
        if self.client.is_passed_on:
            is_elsewhere = publication.only_for is not None or publication.actuated is not None
        return not is_elsewhere and self.wanted.takes(publication.levels)


class Client:
    """A client, and a holder of what waits for it. All methods belong to the loop's thread."""

    def __init__(self, outlet: Outlet, backlog: Backlog, name: str = "") -> None:
        self.identity: Identity | None = None
        self.name = name
        self.subscriptions: dict[str, Subscription] = {}
        self.ended = asyncio.Event()
        """Set when nothing more may be sent to it."""
        self.became_known: Callable[[], None] = nothing
        """Hears when it is known who it is."""
        self.is_passed_on = False
        """Whether it is another process of the broker, for a client of its own."""
        self.waiting_bytes = 0
        """What it has sent, and nobody has worked on yet."""
        self._outlet = outlet
        self._backlog = backlog
        self._room = asyncio.Event()
        self._room.set()
        self._unsent_before = 0
        self._sent = 0
        self._stalled_since: float | None = None

    @property
    def tenant(self) -> int:
        """Whose memory it takes."""
        return self.identity.tenant if self.identity else 0

    @property
    def known(self) -> Identity:
        """Who it is. Raises Refused where it has not said so."""
        if self.identity is None:
            raise Refused(NOT_LOGGED_IN)
        return self.identity

    def subscribe(self, name: str, wanted: Filter, qos: int) -> Subscription:
        """Return a new subscription. Raises Refused where there are too many."""
        if name not in self.subscriptions and len(self.subscriptions) >= MAX_SUBSCRIPTIONS:
            raise Refused(Refusal(429, f"A client has at most {MAX_SUBSCRIPTIONS} subscriptions"))
        subscription = Subscription(self, name, wanted, qos)
        self.subscriptions[name] = subscription
        return subscription

    def send(
        self, subscription: Subscription, topic: str, payload: bytes, taken: Taken, *, old: bool
    ) -> None:
        """Send a message; whoever does not take what comes is cut off."""
        if not self.is_open:
            taken(False)
            return
        self._sent += 1
        self._outlet.send(subscription, topic, payload, taken, old=old)
        self.note()
        if self._outlet.unsent_bytes() > MAX_UNSENT_BYTES:
            self.close("you read slower than messages come")

    @property
    def is_open(self) -> bool:
        """Whether it may be sent anything."""
        return not self.ended.is_set()

    def end(self) -> None:
        """Send it nothing more."""
        self.ended.set()
        self._room.set()

    async def ended_within(self, seconds: float) -> None:
        """Return after so many seconds, or as soon as it has ended."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.ended.wait()

    @property
    def has_room(self) -> bool:
        """Whether there is room for more."""
        return self._room.is_set()

    async def room(self) -> None:
        """Return when there is room for more, or the client is gone."""
        await self._room.wait()

    def note(self) -> None:
        """Note that something has changed in what is kept for it."""
        unsent = self._outlet.unsent_bytes()
        if unsent < ROOM_BYTES or not self.is_open:
            self._room.set()
        else:
            self._room.clear()
        self._backlog.update(self)

    def close(self, why: str, parting: Parting = Parting.OURS) -> None:
        """End the connection, and let the client know why."""
        if self.is_open:
            self.end()
            self._outlet.close(why, parting)

    def taken_over(self) -> None:
        """End the connection, as another client of its name has come."""
        self.close("another client of this name has connected", Parting.TAKEN_OVER)

    def dismiss(self, ending: Ending) -> None:
        """End the connection of a client that may not stay."""
        self.close(ending.value, Parting.REFUSED)

    def gone(self) -> None:
        """Note that the connection is lost."""
        self.end()
        self._backlog.remove(self)

    # As a holder

    def kept_bytes(self) -> int:
        """Return how many bytes are kept for it: unsent, not acknowledged, not worked on."""
        return self._outlet.unsent_bytes() + self.waiting_bytes

    def drop(self) -> None:
        """Keep nothing for it: durable subscriptions have what it did not take."""
        self.end()
        self._outlet.abort()

    def check_progress(self, now: float) -> None:
        """Cut it off where it has taken nothing for too long."""
        unsent = self._outlet.unsent_bytes()
        if not unsent or unsent < self._unsent_before:
            self._stalled_since = None
        elif self._stalled_since is None:
            self._stalled_since = now
        elif now - self._stalled_since >= STALL_SECONDS:
            self.drop()
        self._unsent_before = unsent
        self.note_room(unsent)

    def note_room(self, unsent: int) -> None:
        """Let those go on that wait for room, where there is some."""
        if unsent < ROOM_BYTES:
            self._room.set()
