"""Two tenants of whom one grants streams to the other, and all that the other may try then."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from api_builders import SIMPLE, Caller, Served
from contract_world import OPERATIONS

from delivery.admission.refusals import Refusal
from delivery.admission.requests import WatchRequest, admit
from servioticy.domain.model import StreamRef

ALICE, BOB = "a" * 32, "b" * 32
"""Their ids as others know them, in the place of those that chance gave them."""


TWO = {"streams": dict.fromkeys(("a", "b"), SIMPLE["streams"]["a"])}


BODIES: dict[str, Any] = {
    "search": {"timerange": True, "rangefrom": 0},
    "subscriptions": {"callback": "pubsub"},
}


@pytest.fixture
def so(alice: Caller, served: Served) -> str:
    """A private Service Object of alice with an update in its stream `a`."""
    made = alice.create(TWO)
    assert alice.put(made).status_code == 202
    served.store()
    return made


@pytest.fixture
def bob(served: Served) -> Caller:
    return known(served, "bob", BOB)


@pytest.fixture
def alice(served: Served) -> Caller:
    return known(served, "alice", ALICE)


def known(served: Served, name: str, public_id: str) -> Caller:
    found = served.tenant(name)
    sql = "UPDATE tenants SET public_id = %(public_id)s WHERE name = %(name)s"
    served.platform.database.rows(sql, {"public_id": public_id, "name": name})
    return found


def id_of(who: Caller) -> str:
    id_: str = who.ask("GET", "/grants").get_json()["tenant"]
    return id_


def give(owner: Caller, so: str, stream: str | None = "a", **wanted: Any) -> str:
    """A grant to bob, who has told his id."""
    path = f"/{so}/grants" if stream is None else f"/{so}/streams/{stream}/grants"
    answer = owner.ask("POST", path, json={"tenant": BOB, **wanted})
    assert answer.status_code == 201, answer.text
    id_: str = answer.get_json()["id"]
    return id_


def reader(*sources: str, stream: str = "a") -> dict[str, Any]:
    """A document with a composite over these Service Objects."""
    channel = {"type": "number", "current-value": "function(g) { return 1 }"}
    groups = {"g": {"soIds": list(sources), "stream": stream}}
    streams = {"c": {"channels": {"x": channel}}}
    return {"version": "0.2.0", "groups": groups, "streams": streams}


def derives(who: Caller, so: str, stream: str = "a") -> bool:
    answer = who.ask("POST", "/", json=reader(so, stream=stream))
    assert answer.status_code in (201, 401), answer.text
    return answer.status_code == 201


def ways_to_read(so: str, stream: str = "a") -> Iterator[tuple[str, str, Any]]:
    """Every route by which others get something of a stream, as the OpenAPI document has them."""
    for (method, path), operation in OPERATIONS.items():
        if operation["x-right"] in ("read", "subscribe") and "{so}/streams/{s}" in path:
            last = path.rsplit("/", 1)[-1]
            yield method, path.format(so=so, s=stream), BODIES.get(last)


def live(served: Served, who: Caller, so: str, stream: str = "a") -> int:
    """The status with which a socket is refused; 101 where it is not."""
    found = admit(
        WatchRequest(StreamRef(so, stream), who.token, None), served.platform.ports.addresses
    )
    return found.status if isinstance(found, Refusal) else 101


def reads(served: Served, who: Caller, so: str, stream: str = "a") -> set[bool]:
    """Whether each way leads to the stream: one answer, where all of them agree."""
    found = {
        who.ask(method, path, json=body).status_code != 401
        for method, path, body in ways_to_read(so, stream)
    }
    asked = {"streams": [{"serviceObject": so, "stream": stream}]}
    (last,) = who.ask("POST", "/lastUpdates", json=asked).get_json()["data"]
    if stream == "a":
        found.add("update" in last or "lastUpdate" in str(last))
    return found | {live(served, who, so, stream) == 101}
