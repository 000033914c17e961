"""What clients call themselves: of those with one name the last that came stays, wherever.

Whoever comes is told to all processes of the broker, with a number that is larger than that of
whoever came before it: the fence. So all know which one is the last, in whatever order they
hear; nothing is stored, and no message that is published or delivered is told of.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import logging
from dataclasses import dataclass

from broker.client import Client
from delivery.peering import Peering
from servioticy.errors import Rejected
from servioticy.ports.peers import Row, Told

AT_ONCE = 1_000
"""Names that are told together; whoever comes meanwhile waits for the next time."""
RETRY_SECONDS = 1.0

log = logging.getLogger("servioticy.delivery")


@dataclass(slots=True, eq=False)
class _Held:
    client: Client
    fence: int = 0
    """0: nobody is told yet."""
    heard: tuple[int, int] = (0, 0)
    """The last one that came elsewhere before that, and its process."""


class Names:
    """Keeps to the protocol `Part`. All methods belong to the loop's thread."""

    kind = "names"

    def __init__(self, peering: Peering | None = None) -> None:
        """Without others there is only this process."""
        self._peering = peering
        self._held: dict[str, _Held] = {}
        self._untold: dict[str, _Held] = {}
        self._again: dict[str, int] = {}
        """What is to be told once more, as others do not know it: with the fence it has."""
        self._is_to_tell = asyncio.Event()
        if peering is not None:
            peering.add(self)

    def start(self) -> None:
        """Tell others from now on."""
        if self._peering is not None:
            self._peering.run(self._tell)

    def take(self, client: Client) -> None:
        """Let a client have its name, if it has one; another client that has it goes."""
        name = _digest(client)
        if name is None:
            return
        before = self._held.pop(name, None)
        if before is not None:
            before.client.taken_over()
        self._held[name] = held = _Held(client)
        if self._peering is not None:
            self._untold[name] = held
            self._is_to_tell.set()

    def leave(self, client: Client) -> None:
        """Forget a client that is gone."""
        name = _digest(client)
        held = self._held.get(name) if name is not None else None
        if name is not None and held is not None and held.client is client:
            del self._held[name]
            self._untold.pop(name, None)
            self._again.pop(name, None)

    # As a part of what processes tell each other

    def came(self) -> None:
        """Tell of all clients again: who has come elsewhere meanwhile is told of in return."""
        self._again |= {name: each.fence for name, each in self._held.items() if each.fence}
        self._is_to_tell.set()

    def other_came(self, process: int) -> None:
        """Nothing: it tells what it has itself."""

    def are_there(self, others: frozenset[int]) -> None:
        """Nothing: who has gone has no clients."""

    def heard(self, told: Told) -> None:
        """Let clients go that have come to another process since."""
        for name, own in told.rows:
            held = self._held.get(str(name))
            if held is None:
                continue
            elsewhere = int(own) or told.fence, told.process
            if not held.fence:
                held.heard = max(held.heard, elsewhere)
            elif elsewhere[0] >= held.fence:
                held.client.taken_over()
            elif own:
                self._again[str(name)] = held.fence
                self._is_to_tell.set()

    async def _tell(self) -> None:
        """Tell once, when there is something. Raises Unavailable: it is told later."""
        await self._is_to_tell.wait()
        try:
            await self._tell_new()
            await self._tell_again()
        except Rejected as error:
            log.warning("names_not_shared", extra={"why": str(error)})
            await asyncio.sleep(RETRY_SECONDS)
        if not self._untold and not self._again:
            self._is_to_tell.clear()

    async def _tell_new(self) -> None:
        these = dict(itertools.islice(self._untold.items(), AT_ONCE))
        if not these or self._peering is None:
            return
        fence = await self._peering.tell(self.kind, [(name, 0) for name in these])
        for name, held in these.items():
            if self._untold.get(name) is held:
                del self._untold[name]
            held.fence = fence
            if held.heard[0] > fence:
                held.client.taken_over()

    async def _tell_again(self) -> None:
        these = dict(itertools.islice(self._again.items(), AT_ONCE))
        if not these or self._peering is None:
            return
        rows: list[Row] = [*these.items()]
        await self._peering.tell(self.kind, rows)
        for name, fence in these.items():
            if self._again.get(name) == fence:
                del self._again[name]


def _digest(client: Client) -> str | None:
    """Return what stands for a name of a client: it is one of its own tenant's, and of those whose
    tokens are bound to the same.
    """
    if client.identity is None or not client.name:
        return None
    about = repr((client.identity.tenant, client.identity.scope[:2], client.name))
    return hashlib.blake2b(about.encode(), digest_size=16).hexdigest()
