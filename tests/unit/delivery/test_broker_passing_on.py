"""Which topics another process is asked for, and what it gives to one that asks for a client."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from broker import passing_on as module
from broker.bridge import packets as ours
from broker.client import Client, Publication, Subscription
from broker.mqtt_packets import PASSED_ON, V5, read_connect
from broker.passing_on import PassingOn, Peer, may_be_durable, read_peer
from broker.topics import read_filter
from delivery import repeating
from delivery.admission.requests import Identity
from delivery.backlog import Backlog
from servioticy.domain.access import Scope
from servioticy.domain.feed_slots import SLOTS, of_tenant, slot_of
from servioticy.ports.cursors import Claim


@pytest.mark.parametrize(
    ("text", "may"),
    [
        ("plant/pump/streams/flow/updates", True),
        ("plant/#", True),
        ("plant", True),
        ("destinations/pump/actions", True),
        ("pump/actuations/7", True),
        ("pump/actions", False),
        ("TOKEN/to", False),
        ("errors", False),
        ("claims", False),
        ("updates/pump/flow", False),
    ],
)
def test_only_what_a_subscription_may_deliver_is_asked_for(text: str, may: bool) -> None:
    """Most devices subscribe to what each process gives itself: they need no second connection."""
    assert may_be_durable(read_filter(text)) is may


@pytest.mark.parametrize(
    ("address", "peer"),
    [
        ("mqtt://10.1.0.7:1883", Peer("10.1.0.7", 1883, False)),
        ("mqtts://broker-1:8883", Peer("broker-1", 8883, True)),
        ("mqtt://[::1]:1883", Peer("::1", 1883, False)),
        ("mqtt://host", None),
        ("mqtt://host:99999", None),
        ("http://host:80", None),
        ("", None),
    ],
)
def test_an_address_of_a_process_is_read(address: str, peer: Peer | None) -> None:
    assert read_peer(address) == peer


@pytest.mark.parametrize("is_passed_on", [True, False])
def test_who_comes_for_a_client_of_its_own_says_so(is_passed_on: bool) -> None:
    hello = ours.Hello(V5, "", "user", "token", 30, 0, 64, 1_000, is_passed_on=is_passed_on)

    packet = ours.connect(hello)
    found = read_connect(packet[2:])

    assert packet[1] < 0x80
    assert (PASSED_ON in found.properties) is is_passed_on
    assert (found.user, found.password) == ("user", "token")


class Nobody:
    """An outlet that is never used."""

    def unsent_bytes(self) -> int:
        return 0


class Asked:
    """Another process, for a client."""

    def __init__(self, client: Client, peer: Peer) -> None:
        self.client, self.peer = client, peer
        self.task = asyncio.get_running_loop().create_future()

    def wants(self, _wanted: object) -> None:
        """It does."""


class Tenants:
    """Two clients of each of two tenants, and which processes others have been asked for them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.claim = Claim("own", frozenset(), frozenset(), SLOTS)
        self.asked: list[Asked] = []
        asked = self.asked

        class Asks(Asked):
            def __init__(self, client: Client, peer: Peer, *_: object) -> None:
                super().__init__(client, peer)
                asked.append(self)
                self.task.add_done_callback(lambda _: asked.remove(self))

        monkeypatch.setattr(module, "Relay", Asks)
        monkeypatch.setattr(module, "LOOK_SECONDS", 0.001)
        self.clients = [self._client(tenant) for tenant in (1, 1, 2, 2)]

    def _client(self, tenant: int) -> Client:
        client = Client(Nobody(), Backlog(1_000))  # type: ignore[arg-type]
        client.identity = Identity(tenant, Scope(), "token", b"")
        client.subscribe("s", read_filter("plant/#"), 1)
        return client

    async def until_asked(self, *tenants: int) -> None:
        async with asyncio.timeout(20):
            while sorted(each.client.tenant for each in self.asked) != [*tenants]:
                await asyncio.sleep(0.001)


def test_for_each_tenant_that_process_is_asked_which_has_its_topics(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And another one as soon as another has them; those of other tenants go on as they are."""

    async def run() -> None:
        tenants = Tenants(monkeypatch)
        broker = SimpleNamespace(clients=dict.fromkeys(tenants.clients))
        passing_on = PassingOn(broker, lambda: tenants.claim, False, 1_000)  # type: ignore[arg-type]
        passing_on.start()
        first, second = (slot_of(of_tenant(each), SLOTS) for each in (1, 2))
        tenants.claim = tenants.claim._replace(elsewhere={second: "mqtt://b:1"})
        await tenants.until_asked(2, 2)
        both = {first: "mqtt://c:1", second: "mqtt://b:1"}
        tenants.claim = tenants.claim._replace(elsewhere=both)
        await tenants.until_asked(1, 1, 2, 2)
        assert {each.peer.host for each in tenants.asked} == {"b", "c"}
        tenants.claim = tenants.claim._replace(elsewhere={first: "mqtt://b:1"})
        await tenants.until_asked(1, 1)
        assert {each.peer.host for each in tenants.asked} == {"b"}
        tenants.clients[0].end()
        passing_on.changed(tenants.clients[0])
        assert len(passing_on) == 1
        await passing_on.stop()

    asyncio.run(run())


def test_one_client_that_always_fails_keeps_nobody_from_its_topics(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(repeating, "RETRY_SECONDS", 0.0)

    async def run() -> None:
        tenants = Tenants(monkeypatch)
        broker = SimpleNamespace(clients=dict.fromkeys(tenants.clients))
        passing_on = PassingOn(broker, lambda: tenants.claim, False, 1_000)  # type: ignore[arg-type]
        changed = passing_on.changed

        def failing(client: Client) -> None:
            if client is tenants.clients[0]:
                raise ValueError("a bug")
            changed(client)

        monkeypatch.setattr(passing_on, "changed", failing)
        passing_on.start()
        slots = (slot_of(of_tenant(each), SLOTS) for each in (1, 2))
        tenants.claim = tenants.claim._replace(elsewhere=dict.fromkeys(slots, "mqtt://b:1"))
        await tenants.until_asked(1, 2, 2)
        await passing_on.stop()

    asyncio.run(run())


def test_a_look_that_fails_half_way_is_begun_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the others would ask the old process until who delivers changes again."""
    monkeypatch.setattr(repeating, "RETRY_SECONDS", 0.0)

    async def run() -> None:
        tenants = Tenants(monkeypatch)
        broker = SimpleNamespace(clients=dict.fromkeys(tenants.clients))
        passing_on = PassingOn(broker, lambda: tenants.claim, False, 1_000)  # type: ignore[arg-type]
        changed, failures = passing_on.changed, [ValueError("a bug")]

        def failing(client: Client) -> None:
            if failures and client is tenants.clients[1]:
                raise failures.pop()
            changed(client)

        monkeypatch.setattr(passing_on, "changed", failing)
        passing_on.start()
        slots = (slot_of(of_tenant(each), SLOTS) for each in (1, 2))
        tenants.claim = tenants.claim._replace(elsewhere=dict.fromkeys(slots, "mqtt://b:1"))
        await tenants.until_asked(1, 1, 2, 2)
        await passing_on.stop()

    asyncio.run(run())


@pytest.mark.parametrize("is_passed_on", [True, False])
def test_what_each_process_gives_its_own_clients_is_not_passed_on(is_passed_on: bool) -> None:
    """Else an actuation would come to a device by both."""
    client = Client(Nobody(), Backlog(1_000))  # type: ignore[arg-type]
    client.is_passed_on = is_passed_on
    asks_for_all = Subscription(client, "s", read_filter("pump/#"), 1)
    actuated = Publication(1, ("pump", "actions"), b"", None, actuated="pump")
    answer = Publication(1, ("pump", "to"), b"", None, only_for="token")
    durable = Publication(1, ("pump", "x"), b"", None)

    assert asks_for_all.wants(durable)
    assert asks_for_all.wants(actuated) is not is_passed_on
    assert asks_for_all.wants(answer) is not is_passed_on
