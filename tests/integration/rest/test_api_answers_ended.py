"""An answer that is made while it is sent ends with the right to it, and never looks whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest
from api_builders import SIMPLE, Caller, Served
from granting import alice, bob, give
from histories import store_documents
from token_issuer import SECONDS, TokenIssuer

from api.http import while_allowed
from api.http.while_allowed import NoLongerAllowed
from api.resources import exports, histories, last_updates, search
from servioticy.domain.tokens import digest

__all__ = ["alice", "bob"]

PATH = "/{so}/streams/a"
EVERYTHING = {"timerange": True, "rangefrom": 0}
WAYS: dict[str, tuple[str, str, Any]] = {
    "history": ("GET", PATH, None),
    "export": ("GET", f"{PATH}/export", None),
    "search": ("POST", f"{PATH}/search", EVERYTHING),
}
"""Each route whose answer is made while it is sent, of what may be another's."""


@pytest.fixture(autouse=True)
def _small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(while_allowed, "ASK_AGAIN_SECONDS", 0.0)
    monkeypatch.setattr(histories, "PAGE_ROWS", 1)
    monkeypatch.setattr(exports, "PAGE_ROWS", 1)
    monkeypatch.setattr(search, "PAGE_BYTES", 1)
    monkeypatch.setattr(search, "PAGE_SECONDS", -1.0)
    monkeypatch.setattr(last_updates, "AT_ONCE", 1)


def update(n: int) -> bytes:
    return orjson.dumps({"channels": {"x": {"current-value": n}}, "lastUpdate": n})


@pytest.fixture
def so(served: Served, alice: Caller) -> str:
    made = alice.create(SIMPLE)
    # Searches look at many at once: a page is what one look has found.
    store_documents(served, made, [update(n) for n in range(3_000)])
    return made


def begun(who: Caller, so: str, way: str) -> Iterator[bytes]:
    """The rest of an answer whose first piece has come."""
    method, path, body = WAYS[way]
    answer = who.ask(method, path.format(so=so), json=body, buffered=False)
    assert (answer.status_code, answer.content_length) == (200, None)
    pieces = iter(answer.response)
    assert next(pieces)
    return pieces


ENDS: dict[str, Callable[[Served, Caller, Caller, str, str], object]] = {
    "grant revoked": lambda _s, alice, _b, _so, grant: alice.ask("DELETE", f"/grants/{grant}"),
    "grant expired": lambda served, _a, _b, _so, grant: served.platform.database.rows(
        "UPDATE grants SET expires_at = 1 WHERE id = %(id)s", {"id": grant}
    ),
    "token revoked": lambda served, _a, bob, _so, _g: served.platform.database.rows(
        "UPDATE tokens SET revoked_at = now() WHERE digest = %(digest)s",
        {"digest": digest(bob.token)},
    ),
    "token expired": lambda served, _a, bob, _so, _g: served.platform.database.rows(
        "UPDATE tokens SET expires_at = now() WHERE digest = %(digest)s",
        {"digest": digest(bob.token)},
    ),
    "deleted": lambda _s, alice, _b, so, _g: alice.ask("DELETE", f"/{so}"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("end", ENDS)
def test_an_answer_ends_with_the_right_to_it(
    served: Served, alice: Caller, bob: Caller, so: str, way: str, end: str
) -> None:
    grant = give(alice, so)
    theirs, own = begun(bob, so, way), begun(alice, so, way)

    ENDS[end](served, alice, bob, so, grant)

    with pytest.raises(NoLongerAllowed):
        list(theirs)
    if end != "deleted":
        assert len(list(own)) > 1, "the owner's own goes on"


@pytest.mark.parametrize("way", WAYS)
def test_an_answer_ends_when_its_stream_becomes_private(
    alice: Caller, bob: Caller, so: str, way: str
) -> None:
    alice.ask("PUT", f"/{so}", json=SIMPLE | {"public": True})
    theirs = begun(bob, so, way)

    alice.ask("PUT", f"/{so}", json=SIMPLE | {"public": False})

    with pytest.raises(NoLongerAllowed):
        list(theirs)


@pytest.mark.parametrize("removed", [True, False], ids=["removed", "token ran out"])
def test_an_answer_ends_with_its_member(
    served: Served, alice: Caller, so: str, issuer: TokenIssuer, removed: bool
) -> None:
    answer = alice.ask("POST", "/members", json={"subject": "carol", "role": "viewer"})
    assert answer.status_code == 201, answer.text
    carol = Caller(served.app.test_client(), f"alice~{issuer.token('carol')}")
    pieces = begun(carol, so, "export")

    if removed:
        alice.ask("DELETE", f"/members/{answer.get_json()['id']}")
    else:
        issuer.clock.now += SECONDS + 100

    with pytest.raises(NoLongerAllowed):
        list(pieces)


def test_last_updates_of_others_end_with_the_grant(alice: Caller, bob: Caller, so: str) -> None:
    """The answer is to many streams: those that may be read are still told."""
    grant = give(alice, so)
    wanted = {"streams": [{"serviceObject": so, "stream": "a"}] * 3}
    answer = bob.ask("POST", "/lastUpdates", json=wanted, buffered=False)
    pieces = iter(answer.response)
    first = next(pieces)

    alice.ask("DELETE", f"/grants/{grant}")

    assert b'"update":' in first
    assert b"".join(pieces).count(b'"status":404') == 2


def test_a_list_of_ones_own_ends_with_the_token(served: Served, alice: Caller, so: str) -> None:
    """Whatever is made while it is sent: no route has to think of it."""
    wanted = {"streams": [{"serviceObject": so, "stream": "a"}] * 3}
    answer = alice.ask("POST", "/lastUpdates", json=wanted, buffered=False)
    pieces = iter(answer.response)
    next(pieces)

    ENDS["token revoked"](served, alice, alice, so, "")

    with pytest.raises(NoLongerAllowed):
        list(pieces)
