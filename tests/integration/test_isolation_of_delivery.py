"""The isolation run of delivery: each way in, for everybody who may not come that way.

The program itself, on a real Postgres as `servioticy_delivery`, and a real broker.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from delivery_doors import BROKER, IN, MINE, NOTHING, OURS, STREAMS
from support.delivery_program import World, broker_beside, settings, subscribe, world

from servioticy import bootstrap
from servioticy.domain.tokens import digest, new_token
from servioticy.storage.roles import Role
from servioticy.storage.statements import PostgresStatements

__all__ = ["broker_beside", "settings", "world"]

pytestmark = pytest.mark.usefixtures("broker_beside")


def a_token(world: World, **wanted: Any) -> str:
    """A token of the tenant `ours`."""
    address = world.addresses.address(world.ours, MINE, "data")
    assert address is not None
    token = new_token()
    api = bootstrap.connect(world.settings, Role.API)
    values: dict[str, Any] = {"service_object": None, "stream": None, "rights": None, **wanted}
    values |= {"id": uuid.uuid4().hex, "name": "n", "tenant": address.caller, "most": 99}
    made = PostgresStatements(api, "tokens").row(
        "make", digest=digest(token), expires=100, **values
    )
    api.close()
    assert made is not None
    return token


def ended(world: World, how: str) -> str:
    """A token that was good once."""
    token = a_token(world)
    database = bootstrap.connect(world.settings)
    database.rows(f"{how} WHERE digest = %(digest)s", {"digest": digest(token)})
    database.close()
    return token


IDENTITIES: Mapping[str, Callable[[World], str]] = {
    "another tenant": lambda world: world.theirs,
    "nobody": lambda _: "",
    "forged": lambda _: "x" * 43,
    "expired": lambda world: ended(world, "UPDATE tokens SET expires_at = now()"),
    "revoked": lambda world: ended(world, "DELETE FROM tokens"),
    "without the right": lambda world: a_token(world, rights=["read", "send", "admin"]),
}


EXPECTED: dict[str, dict[str, tuple[str, str]]] = {
    **{door: {"another tenant": ("401", "404")} for door in STREAMS},
    # A tenant's own token without the right may learn which subscriptions its tenant has.
    **{
        door: {"another tenant": ("404", "404"), "without the right": ("403", "404")}
        for door in OURS
    },
    **{door: dict.fromkeys(IDENTITIES, ("no", "no")) for door in BROKER},
}
"""What is answered where the stream is another's, and where there is none; else 403 for both."""


def test_whoever_may_not_is_refused_at_every_door(world: World) -> None:
    """And whoever may comes in, so that it is not the door that is shut."""
    subscribe(world, MINE)
    tokens = {name: make(world) for name, make in IDENTITIES.items()}
    doors = {**STREAMS, **OURS, **BROKER}
    found = {
        (door, name): tuple(enter(world, token, each) for each in (MINE, NOTHING))
        for door, enter in doors.items()
        for name, token in tokens.items()
    }

    assert found == {
        (door, name): EXPECTED[door].get(name, ("403", "403")) for door, name in found
    }
    assert {door: enter(world, world.ours, MINE) for door, enter in doors.items()} == (
        dict.fromkeys(doors, IN)
    )


@pytest.mark.parametrize("stream", ["data", "else"])
def test_a_token_of_another_stream_is_refused_at_every_door(world: World, stream: str) -> None:
    subscribe(world, MINE)
    token = a_token(world, service_object="open" if stream == "data" else MINE, stream=stream)
    doors = {**STREAMS, **OURS, **BROKER}

    found = {door: enter(world, token, MINE) for door, enter in doors.items()}

    assert set(found.values()) <= {"403", "no"}, found
