"""Three tenants do whatever the API lets them, in any order; a model knows who may see what.

Everything that a tenant writes carries a word of its own. Whoever gets a word that the model does
not let him see has found a leak. `SERVIOTICY_ISOLATION_EXAMPLES` walks of fifty steps are tried.
"""

from __future__ import annotations

import json
import logging
import os
from typing import Any

import pytest
from api_builders import Caller, SwitchedDatabase
from contract_world import OPERATIONS, World, examples_with_types
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from isolation_model import NOTHING, TENANTS, Actor, Thing, Walk, counted

from servioticy.domain.access import Right, Scope

EXAMPLES = int(os.environ.get("SERVIOTICY_ISOLATION_EXAMPLES", "4"))
STEPS = 50
GUARDED = [each for each, its in OPERATIONS.items() if its["x-right"] != "none"]
CHANGES_THE_MODEL = {
    *(("PUT", "/{so}"), ("PATCH", "/{so}"), ("DELETE", "/{so}")),
    *(("POST", "/{so}/versions/{n}/activate"), ("POST", "/{so}/api_token")),
    *(("POST", "/tokens"), ("DELETE", "/tokens/{token}"), ("POST", "/tokens/{token}/rotation")),
    *(("DELETE", "/subscriptions/{id}"), ("DELETE", "/templates/{template}"), ("POST", "/")),
    ("POST", "/templates"),
}
"""What an owner does by rules of its own, which tell the model."""


class Isolation(RuleBasedStateMachine, Walk):
    """What is tried, in any order."""

    database: SwitchedDatabase

    @initialize()
    def begin(self) -> None:
        self.begin_on(self.database)

    # What tenants do

    @rule(tenant=st.integers(0, 2), public=st.booleans())
    def create(self, tenant: int, public: bool) -> None:
        actor, word = self.owner(tenant), self.word()
        thing = Thing("", {actor.tenant}, public, words={word})
        self.things["so"].append(thing)
        answer = self.ask(actor, "POST", "/", json=self.document(word, public))
        assert answer.status_code == 201, answer.text
        thing.id = answer.get_json()["id"]

    @rule(tenant=st.integers(0, 2), which=st.integers(0, 99), public=st.booleans())
    def compose(self, tenant: int, which: int, public: bool) -> None:
        """Over anybody's, of whom one may read what is public."""
        actor, word, source = self.owner(tenant), self.word(), self.any_of("so", which)
        document = self.document(word, public, source.id)
        answer = self.ask(actor, "POST", "/", json=document)
        may = source.there and (source.public or actor.tenant in source.owners)
        refused = 401 if source.there else 400
        assert answer.status_code == (201 if may else refused), answer.text
        if may:
            made = Thing(answer.get_json()["id"], {actor.tenant}, public, words={word})
            self.things["so"].append(made)

    @rule(tenant=st.integers(0, 2), which=st.integers(0, 99), public=st.booleans())
    def replace(self, tenant: int, which: int, public: bool) -> None:
        actor, word = self.owner(tenant), self.word()
        thing = self.own("so", actor.tenant, which)
        if thing is None:
            return
        before = set(thing.words)
        thing.words.add(word)
        answer = self.ask(actor, "PUT", f"/{thing.id}", json=self.document(word, public))
        if answer.status_code < 300:
            thing.public = public
            self.keep_old_words_secret(thing, before)
        else:  # others read a stream that it would lack
            assert answer.status_code == 409, answer.text

    @rule(tenant=st.integers(0, 2), which=st.integers(0, 99))
    def delete(self, tenant: int, which: int) -> None:
        actor = self.owner(tenant)
        thing = self.own("so", actor.tenant, which)
        if thing is None:
            return
        answer = self.ask(actor, "DELETE", f"/{thing.id}")
        assert answer.status_code in (204, 409), answer.text
        if answer.status_code == 204:
            thing.there = False
            for each in self.actors:
                each.good = each.good and each.scope.service_object != thing.id

    @rule(tenant=st.integers(0, 2), which=st.integers(0, 99), at=st.integers(1, 50))
    def send(self, tenant: int, which: int, at: int) -> None:
        actor, word, thing = self.owner(tenant), self.word(), self.any_of("so", which)
        if actor.tenant in thing.owners:
            self.sent.add(word)
            thing.words.add(word)
        body = {"channels": {"x": {"current-value": word}}, "lastUpdate": at}
        answer = self.ask(actor, "PUT", f"/{thing.id}/streams/a", json=body)
        assert answer.status_code == self.expected(actor, Right.SEND, thing, 202)

    @rule()
    def store(self) -> None:
        self.served.store()

    @rule(
        tenant=st.integers(0, 2), which=st.integers(0, 99), kind=st.sampled_from(["http", "pull"])
    )
    def subscribe(self, tenant: int, which: int, kind: str) -> None:
        actor, word, thing = self.owner(tenant), self.word(), self.any_of("so", which)
        wanted = {
            "callback": kind,
            "destination": "http://example.org/",
            "customFields": {"w": word},
        }
        path = f"/{thing.id}/streams/a/subscriptions"
        answer = self.ask(actor, "POST", path, json=wanted)
        assert answer.status_code == self.expected(actor, Right.SUBSCRIBE, thing, 201)
        if answer.status_code == 201:
            owners = {actor.tenant} | thing.owners
            self.things["id"].append(Thing(answer.get_json()["id"], owners, words={word}))

    @rule(tenant=st.integers(0, 2))
    def make_template(self, tenant: int) -> None:
        actor, word = self.owner(tenant), self.word()
        content = {"name": word, "document": self.document(word, False)}
        answer = self.ask(actor, "POST", "/templates", json=content)
        if answer.status_code == 201:
            made = Thing(answer.get_json()["id"], {actor.tenant}, words={word})
            self.things["template"].append(made)

    @rule(
        tenant=st.integers(0, 2),
        which=st.integers(0, 99) | st.none(),
        rights=st.sets(st.sampled_from(["read", "send", "subscribe", "inspect"]), min_size=1),
    )
    def make_token(self, tenant: int, which: int | None, rights: set[str]) -> None:
        actor, word = self.owner(tenant), self.word()
        wanted: dict[str, Any] = {"name": word, "rights": sorted(rights)}
        thing = None if which is None else self.any_of("so", which)
        if thing is not None:
            wanted["serviceObject"] = thing.id
        self.things["token"].append(Thing("", {actor.tenant}, words={word}))
        answer = self.ask(actor, "POST", "/tokens", json=wanted)
        good = thing is None or (thing.there and actor.tenant in thing.owners)
        assert answer.status_code == (201 if good else 400), answer.text
        if good:
            made = answer.get_json()
            self.things["token"][-1].id = made["id"]
            caller = Caller(self.served.app.test_client(), made["token"])
            scope = Scope(thing.id if thing else None, None, rights)
            self.actors.append(Actor(actor.tenant, caller, scope, id=made["id"]))

    @rule(number=st.integers(0, 99))
    def revoke(self, number: int) -> None:
        made = [each for each in self.actors if each.id and each.good]
        if made:
            actor = made[number % len(made)]
            answer = self.ask(self.owner(actor.tenant), "DELETE", f"/tokens/{actor.id}")
            assert answer.status_code == 204
            actor.good = False

    @rule(tenant=st.integers(0, 2), which=st.integers(0, 99))
    def unsubscribe(self, tenant: int, which: int) -> None:
        actor, thing = self.owner(tenant), self.any_of("id", which)
        answer = self.ask(actor, "DELETE", f"/subscriptions/{thing.id}")
        if actor.tenant in thing.owners and answer.status_code == 204:
            thing.there = False
        assert actor.tenant in thing.owners or answer.status_code in (401, 404)

    # Every route, for whoever it is

    @rule(
        actor=st.integers(0, 99),
        route=st.sampled_from(GUARDED),
        which=st.tuples(*[st.integers(0, 99)] * 4),
    )
    def ask_anything(self, actor: int, route: tuple[str, str], which: tuple[int, ...]) -> None:
        who = self.actors[actor % len(self.actors)]
        named = {
            kind: self.any_of(kind, number)
            for kind, number in zip(("so", "id", "template", "token"), which, strict=True)
            if f"{{{kind}}}" in route[1]
        }
        own = all(who.tenant in each.owners for each in named.values())
        right = Right(OPERATIONS[route]["x-right"])
        so = named.get("so")
        reaches = who.scope.reaches(so.id if so else None, "a", right)
        if own and route in CHANGES_THE_MODEL and who.good and reaches:
            return
        if route[0] != "GET" and own and reaches and right is Right.CHANGE:
            return
        names = {"s": "a", "n": "1", "actuation": "act", "group": "g"}
        names |= dict.fromkeys(("job", "grant", "member", "claim_code"), NOTHING)
        names |= {kind: each.id for kind, each in named.items()}
        more: dict[str, Any] = {}
        for media, value in examples_with_types(*route).values():
            more["content_type"] = media
            more["data"] = value if isinstance(value, str) else json.dumps(value)
        answer = self.ask(who, route[0], World(who.caller, names).path(*route), **more)
        self.check_status(who, right, named, answer, route)

    @invariant()
    def everybody_lists_his_own(self) -> None:
        counted["steps"] += 1
        if not hasattr(self, "actors"):
            return
        number = counted["steps"] % TENANTS
        listed = self.ask(self.actors[number], "GET", "/").get_json()
        own = [t.id for t in self.things["so"] if t.there and number in t.owners]
        assert sorted(listed) == sorted(own)


@pytest.mark.slow
def test_nobody_sees_what_is_not_his(database: SwitchedDatabase) -> None:
    Isolation.database = database
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Isolation,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
    logging.getLogger("isolation").info("no leak in %(steps)s steps, %(answers)s answers", counted)
