"""Keeps a connection to the broker for each tenant that has topics there.

Only the process that delivers to the tenant has it, so what comes is taken once. A broker that is
away is asked for again and again, later each time; what is to go there waits where it is.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable

from broker.bridge import reasons
from broker.bridge.bindings import Binding, Target, read_bindings, read_target
from broker.bridge.complaints import Complaints
from broker.bridge.conversation import Conversation, OtherVersion, Terms
from broker.bridge.reasons import Lost
from broker.broker import Broker
from broker.mqtt_packets import V5
from broker.wire import Wire
from delivery.admission.refusals import Refusal, Refused
from delivery.transport import CLOSE_SECONDS
from servioticy.settings.outward import Bridge as Chosen

CONNECT_SECONDS = 10.0
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0
LASTED_SECONDS = 10.0
"""A connection that stood for so long was a good one: the next one is not waited for long."""
LOOK_SECONDS = 0.5
V3_1_1 = 4
OTHER = {V5: V3_1_1, V3_1_1: V5}
NOT_ANSWERED = (
    "the broker ends the connection without a word: it may not know bridge_user with "
    "bridge_password, or speak another version of MQTT, which is tried next"
)

log = logging.getLogger("servioticy.delivery")


class Bridge:
    """One tenant's connection."""

    def __init__(
        self,
        broker: Broker,
        target: Target,
        binding: Binding,
        terms: Terms,
        is_ours: Callable[[int], bool],
    ) -> None:
        """`is_ours` tells whether this process is the one that delivers to a tenant."""
        self.is_connected = False
        self._is_ours = is_ours
        self._broker = broker
        self._target = target
        self._binding = binding
        self._terms = terms
        self._version = V5
        self._complaints = Complaints(binding.prefix)

    async def run(self) -> None:
        """Be connected, or try to be, until cancelled."""
        pause, clock = FIRST_PAUSE_SECONDS, asyncio.get_running_loop().time
        while True:
            began = clock()
            try:
                await self._once()
            except OtherVersion:
                self._version = OTHER[self._version]
                self._complaints.note("bridge_not_answered", why=NOT_ANSWERED)
            except Lost as error:
                self._complaints.note("bridge_lost", why=str(error))
            except Refused as error:
                self._complaints.note("bridge_token_refused", why=error.refusal.message)
            except Exception:
                log.exception("bridge_failed")
            is_good = clock() - began >= LASTED_SECONDS
            pause = FIRST_PAUSE_SECONDS if is_good else min(LONGEST_PAUSE_SECONDS, pause * 2)
            # Those of many tenants do not come together.
            await asyncio.sleep(pause * (0.5 + random.random() / 2))  # noqa: S311

    async def _once(self) -> None:
        """Keep one connection for as long as the tenant is ours, once it is.

        Raises Lost, Refused, OtherVersion.
        """
        reception = self._broker.hub.reception
        while not reception.is_open:
            await asyncio.sleep(LOOK_SECONDS)
        found = await reception.whose(self._binding.token)
        if isinstance(found, Refusal):
            raise Refused(found)
        while not self._is_ours(found.tenant):
            await asyncio.sleep(LOOK_SECONDS)
        talking = asyncio.create_task(self._talk())
        try:
            while self._is_ours(found.tenant) and not talking.done():
                await asyncio.wait((talking,), timeout=LOOK_SECONDS)
            if talking.done():
                talking.result()
        finally:
            talking.cancel()
            await asyncio.gather(talking, return_exceptions=True)

    async def _talk(self) -> None:
        """Keep one connection. Raises Lost, Refused, OtherVersion."""
        target = self._target
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                reader, writer = await asyncio.open_connection(
                    target.host, target.port, ssl=target.tls
                )
        except TimeoutError:
            raise Lost("the broker does not answer") from None
        except OSError as error:
            raise reasons.unreachable(error) from None
        wire = Wire(reader, writer.transport)
        talk = Conversation(self._broker, self._binding, self._terms, wire, self._complaints)
        try:
            await talk.run(target, self._version, self._connected)
        finally:
            self.is_connected = False
            wire.close()
            asyncio.get_running_loop().call_later(CLOSE_SECONDS, wire.abort)
            wire.lost()

    def _connected(self) -> None:
        self.is_connected = True
        facts = {"prefix": self._binding.prefix, "version": self._version}
        log.info("bridge_connected", extra=facts)


class Bridges:
    """All of them, each as long as this process is the one that delivers to its tenant."""

    def __init__(
        self, broker: Broker, chosen: Chosen, most_bytes: int, is_ours: Callable[[int], bool]
    ) -> None:
        """`is_ours` tells that of a tenant. Raises SettingsError."""
        self._bridges: list[Bridge] = []
        if chosen.url:
            target, terms = (
                read_target(chosen),
                Terms(chosen.qos, chosen.session_seconds, most_bytes),
            )
            bindings = read_bindings(chosen)
            self._bridges = [Bridge(broker, target, each, terms, is_ours) for each in bindings]
        self._running: list[asyncio.Task[None]] = []

    @property
    def connected(self) -> int:
        """How many tenants are connected; may be asked from any thread."""
        return sum(each.is_connected for each in self._bridges)

    def start(self) -> None:
        """Connect from now on."""
        self._running = [asyncio.create_task(each.run()) for each in self._bridges]

    async def stop(self) -> None:
        """Let all connections go."""
        for each in self._running:
            each.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
