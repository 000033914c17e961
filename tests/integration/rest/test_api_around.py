"""How far a request looks around: other tenants' documents must not make it long."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest
from api_builders import NOW, Caller, Platform, Served

from api.app import create_app
from api.documents import around
from api.resources import trees
from benchmarks import worst_documents
from sandbox.text import argument_names
from servioticy.domain.documents.limits import Meter
from servioticy.settings import Settings

CHANNEL = {"type": "number"}
READS = {"a": {"channels": {"x": CHANNEL}}, "b": {"channels": {"x": CHANNEL}}}


@pytest.fixture
def served(backend: Platform) -> Served:
    """Bodies may be as large as they are by default."""
    return Served(create_app(backend.ports, Settings(), lambda: NOW, argument_names), backend)


@pytest.fixture
def victim(alice: Caller) -> str:
    return alice.create({"public": True, "streams": READS})


def forgotten(served: Served, caller: Caller) -> Caller:
    """The caller at an API process that has not parsed anything yet."""
    app = create_app(served.platform.ports, Settings(), lambda: NOW, argument_names)
    return replace(caller, client=app.test_client())


def subscriber(victim: str, document: dict[str, Any]) -> dict[str, Any]:
    """The document, with one stream more that reads the victim's."""
    code = {"channels": {"x": {**CHANNEL, "current-value": "{$victim.x}"}}}
    groups = {**document.get("groups", {}), "victim": {"soIds": [victim], "stream": "a"}}
    return {
        **document,
        "groups": groups,
        "streams": {**document["streams"], "reads": code},
    }


def change(caller: Caller, service_object: str, name: str) -> Any:
    code = {"channels": {"x": {**CHANNEL, "current-value": "{$a.x}"}}}
    document = {"name": name, "public": True, "streams": {**READS, "c": code}}
    return caller.ask("PUT", f"/{service_object}", data=orjson.dumps(document)).get_json()


def edges(count: int) -> dict[str, Any]:
    """A document with so many subscriptions."""
    full, rest = divmod(count, 1000)
    code = {"channels": {"x": {**CHANNEL, "current-value": "{$many}"}}}
    some = {"channels": {"x": {**CHANNEL, "current-value": "{$some}"}}}
    return {
        "groups": {
            "many": {"soIds": [f"{n}" for n in range(1000)], "stream": "s"},
            "some": {"soIds": [f"{n}" for n in range(rest)], "stream": "s"},
        },
        "streams": {f"s{n}": code for n in range(full)} | ({"rest": some} if rest else {}),
    }


def stored(served: Served, victim: str, *documents: dict[str, Any]) -> None:
    """Service Objects that subscribe to the victim, whatever sources they name besides."""
    bob = served.tenant("bob")
    for document in documents:
        empty = {name: {**group, "soIds": []} for name, group in document["groups"].items()}
        created = bob.create(subscriber(victim, {**document, "groups": empty}))
        full = subscriber(victim, document)
        served.platform.put_document(created, {**served.platform.document(created), **full})


@pytest.mark.slow
def test_of_documents_not_parsed_yet_as_much_is_read_as_one_may_take(
    served: Served, alice: Caller, victim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three subscribers with bombs of aliases made the victim's own change take 30 s."""
    bob = served.tenant("bob")
    for n in range(5):
        document = worst_documents.everything(300_000) | {"name": f"{n}"}
        bob.create(subscriber(victim, document))
    shares: list[float] = []
    share = Meter.share
    monkeypatch.setattr(
        Meter, "share", lambda self, size: shares.append(share(self, size)) or shares[-1]
    )
    answer = change(forgotten(served, alice), victim, "changed")

    assert sum(shares) - shares[-1] < around.MAX_SHARE
    assert "of the Service Objects around it were looked at: they are" in answer["warnings"][-1]


@pytest.mark.slow
def test_what_is_known_is_looked_at_without_being_read_again(
    served: Served, alice: Caller, victim: str
) -> None:
    """With every request more of them are known."""
    bob = served.tenant("bob")
    for n in range(3):
        bob.create(subscriber(victim, worst_documents.everything(300_000) | {"name": f"{n}"}))
    caller = forgotten(served, alice)
    told = [change(caller, victim, f"{n}").get("warnings", [""])[-1] for n in range(8)]

    assert "only" in told[0]
    assert told[-1] == ""


@pytest.mark.parametrize(("more", "complete"), [(0, True), (1, False)])
def test_subscriptions_are_looked_at_up_to_a_number(
    served: Served, alice: Caller, victim: str, more: int, complete: bool
) -> None:
    """Their own and one each of the victim's; of two subscribers the second may be too much."""
    first = around.MAX_EDGES // 2
    stored(served, victim, edges(first - 1), edges(around.MAX_EDGES - first - 1 + more))
    served.app = create_app(served.platform.ports, Settings(), lambda: NOW, argument_names)
    alice = forgotten(served, alice)
    tree = alice.ask("GET", f"/{victim}/streams/a/tree").get_json()
    told = change(alice, victim, "changed").get("warnings", [])

    assert tree.get("complete", True) is complete
    assert any("were looked at" in each for each in told) is not complete


def test_an_object_of_its_own_is_looked_at_however_many_it_reads(
    served: Served, alice: Caller
) -> None:
    code = {"channels": {"x": {**CHANNEL, "current-value": "{$g.x} + {$a.x}"}}}
    id_ = alice.create(
        {"groups": {"g": {"soIds": [], "stream": "s"}}, "streams": READS | {"c": code}}
    )
    document = served.platform.document(id_)
    large = edges(around.MAX_EDGES + 1)
    document["streams"] |= large["streams"]
    document["groups"] |= large["groups"]
    served.platform.put_document(id_, document)
    tree = forgotten(served, alice).ask("GET", f"/{id_}/streams/a/tree").get_json()

    assert (tree["computations"], tree.get("complete", True)) == (1, True)


@pytest.mark.parametrize(("more", "complete"), [(0, True), (1, False)])
def test_a_tree_is_shown_up_to_a_number(
    alice: Caller, monkeypatch: pytest.MonkeyPatch, more: int, complete: bool
) -> None:
    monkeypatch.setattr(trees, "MAX_SHOWN", 10)
    code = {"channels": {"x": {**CHANNEL, "current-value": "{$a.x}"}}}
    id_ = alice.create({"streams": READS | {f"c{n}": code for n in range(10 + more)}})
    tree = alice.ask("GET", f"/{id_}/streams/a/tree").get_json()

    assert (tree["computations"], tree.get("complete", True)) == (10, complete)
    assert len(tree["levels"][0]) == 10


@pytest.mark.parametrize(("more", "complete"), [(0, True), (1, False)])
def test_the_nearest_service_objects_are_looked_at(
    alice: Caller, victim: str, monkeypatch: pytest.MonkeyPatch, more: int, complete: bool
) -> None:
    """Five thousand of them; here three, for time."""
    for module in (around, trees):
        monkeypatch.setattr(module, "MAX_RELATED", 4)
    for _ in range(2 + more):
        alice.create(subscriber(victim, {"streams": {}}))
    tree = alice.ask("GET", f"/{victim}/streams/a/tree").get_json()

    assert tree.get("complete", True) is complete
