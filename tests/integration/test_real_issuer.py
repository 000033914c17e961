"""Persons with tokens of an OpenID Connect provider of others, at every door of the platform."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from unittest import mock

import pytest
import waiting
from api_builders import Caller
from delivery_doors import BROKER, IN, MINE, NOTHING, OURS, STREAMS
from ended_streams import REASON, end_of
from memory.log import MemoryLog
from memory.state import State
from support.delivery_program import World, broker_beside, subscribe, world
from support.mqtt_client import MqttClient
from support.real_issuer import AUDIENCE, ELSEWHERE, RealIssuer, real_issuer
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection

from api.app import create_app
from servioticy import bootstrap
from servioticy.domain.topics import Topics
from servioticy.embedded import tcp_ports as ports
from servioticy.embedded.kafka import EmbeddedKafka
from servioticy.identity import keys
from servioticy.identity.addresses import AddressesOfPersons
from servioticy.identity.issuers import with_persons
from servioticy.messaging.admin import ensure_topics
from servioticy.settings import Settings, load
from servioticy.storage.addresses import PostgresAddresses
from servioticy.storage.roles import Role

__all__ = ["broker_beside", "world"]

pytestmark = pytest.mark.usefixtures("broker_beside")

DOORS = {**STREAMS, **OURS, **BROKER}
SOON = 2
"""Seconds for which a token is good whose end a test waits for."""


@pytest.fixture(scope="module")
def issuer() -> Iterator[RealIssuer]:
    with real_issuer() as found:
        yield found


@pytest.fixture
def settings(
    dsn: str, real_kafka: EmbeddedKafka, topic_prefix: str, issuer: RealIssuer
) -> Settings:
    chosen = load(
        {},
        {
            "dsn": dsn,
            "bootstrap_servers": real_kafka.bootstrap_servers,
            "topic_prefix": topic_prefix,
            "live_port": ports.free(),
            "mqtt_port": ports.free(),
            "oidc_issuers": issuer.url,
            "oidc_audience": AUDIENCE,
            "oidc_leeway_seconds": 0,
        },
    )
    ensure_topics(bootstrap.kafka(chosen), Topics(topic_prefix), 1)
    return chosen


@pytest.fixture
def api(world: World) -> Iterator[Caller]:
    """The tenant `ours` at the REST API, which asks the issuer oftener than others do."""
    database = bootstrap.connect(world.settings, Role.API)
    stored = bootstrap.ports_on(database, MemoryLog(State(log=[[]])), dict)
    with mock.patch.object(keys, "PAUSE_SECONDS", 0.05):
        addresses = with_persons(PostgresAddresses(database), world.settings.identity)
        assert isinstance(addresses, AddressesOfPersons)
        found = create_app(replace(stored, addresses=addresses), world.settings)
        yield Caller(found.test_client(), world.ours)
        for each in addresses.issuers:
            each.stop()
    database.close()


def add(api: Caller, subject: str, role: str) -> str:
    answer = api.ask("POST", "/members", json={"subject": subject, "role": role})
    assert answer.status_code == 201, answer.text
    return f"/members/{answer.get_json()['id']}"


def status(api: Caller, token: str, path: str = "/mine") -> int:
    """What a person is answered, once the issuer's keys are known."""
    person = Caller(api.client, f"Bearer ours~{token}")
    waiting.until(lambda: person.ask("GET", path).status_code != 503)
    return person.ask("GET", path).status_code


def test_who_logs_in_comes_in_where_it_is_a_member_until_it_is_none(
    world: World, api: Caller, issuer: RealIssuer
) -> None:
    """By every door; and by none with a token that is for somebody or something else."""
    subscribe(world, MINE)
    token = issuer.log_in("alice")["access_token"]
    assert status(api, token) == 403

    member = add(api, "alice", "viewer")
    assert status(api, token) == 200
    assert status(api, token, "/members") == 403
    mine, other = f"ours~{token}", issuer.log_in("mallory")
    until_known(world, mine)
    assert {door: enter(world, mine, MINE) for door, enter in DOORS.items()} == (
        dict.fromkeys(DOORS, IN)
    )
    refused = {
        "no member": f"ours~{other['access_token']}",
        "of another tenant": f"theirs~{token}",
        "of no tenant": token,
        "an ID token": f"ours~{issuer.log_in('alice')['id_token']}",
        "for others": f"ours~{issuer.log_in('alice', ELSEWHERE)['access_token']}",
    }
    answers = {
        (who, door): {enter(world, each, name) for name in (MINE, NOTHING)}
        for who, each in refused.items()
        for door, enter in DOORS.items()
    }
    assert answers == {key: {"no"} if key[1] in BROKER else {"403"} for key in answers}

    socket = watching(world, token)
    with MqttClient(world.settings.mqtt.port, mine) as client:
        assert client.subscribe("updates/mine/data")
        assert api.ask("DELETE", member).status_code == 204
        assert end_of(socket) == (1008, REASON)
        assert client.is_gone.wait(20)
    assert status(api, token) == 403


def test_what_a_token_has_opened_ends_with_it(
    world: World, api: Caller, issuer: RealIssuer
) -> None:
    """And not before."""
    add(api, "bob", "operator")
    try:
        token, socket = come_in_for_a_while(world, issuer, "bob")
        assert end_of(socket) == (1008, REASON)
    finally:
        issuer.start()
    assert status(api, token) == 403
    assert status(api, issuer.log_in("bob")["access_token"]) == 200


def test_keys_change_without_a_restart_and_stay_while_the_issuer_is_away(
    world: World, api: Caller, issuer: RealIssuer
) -> None:
    add(api, "carol", "viewer")
    old = issuer.log_in("carol")["access_token"]
    assert status(api, old) == 200

    issuer.rotate()
    issuer.start()
    new = issuer.log_in("carol")["access_token"]
    # Issued in the second in which the keys were asked for last, it waits until they are again.
    waiting.until(lambda: status(api, new) == 200)
    assert status(api, old) == 403  # its key is withdrawn
    issuer.stop()
    try:
        assert status(api, new) == 200
    finally:
        issuer.start()


def until_known(world: World, token: str) -> None:
    """Wait until delivery knows the issuer's keys."""
    waiting.until(lambda: DOORS["events"](world, token, MINE) != "503")


def watching(world: World, token: str) -> ClientConnection:
    """A person's socket."""
    until_known(world, f"ours~{token}")
    return world.watch(additional_headers={"Authorization": f"Bearer ours~{token}"})


def come_in_for_a_while(
    world: World, issuer: RealIssuer, subject: str
) -> tuple[str, ClientConnection]:
    """A person's token that ends soon, and his socket.

    The token is good for longer where the machine was too slow to come in with it.
    """
    seconds = SOON
    while True:
        issuer.start(seconds)
        token = issuer.log_in(subject)["access_token"]
        try:
            return token, watching(world, token)
        except InvalidStatus as refused:
            assert refused.response.status_code == 403
            seconds *= 2
