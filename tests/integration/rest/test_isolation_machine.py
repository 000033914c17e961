"""Three tenants do whatever the API lets them, in any order; a model knows who may see what.

Everything that a tenant writes carries a word of its own, and all that is made has an id. Whoever
gets a word, an id or a secret that the model does not let him see has found a leak; whoever is
answered otherwise than the model says has found a wrong status. A few walks are tried each time,
`make isolation` tries hundreds and tells how many routes, identities and steps that were;
`make isolation WALKS=1 FIRST=n` takes walk n once more.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from random import Random
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from api_builders import SwitchedDatabase
from isolation_bodies import Body
from isolation_model import MANY, NOTHING, OF_OTHERS, TENANTS, Actor, Thing
from isolation_walk import GUARDED, Figures, Walk, right_to
from rest_page import Route
from token_issuer import TokenIssuer

WALKS = int(os.environ.get("WALKS", "2"))
FIRST = int(os.environ.get("FIRST", "0"))
STEPS = 100
MAKING: list[Route] = [
    *[("POST", "/")] * 4,
    *[("POST", "/{so}/grants"), ("POST", "/{so}/streams/{s}/grants")] * 3,
    *[("PUT", "/{so}/streams/{s}")] * 3,
    *[("POST", "/{so}/streams/{s}/subscriptions"), ("POST", "/{so}/subscriptions")],
    *[("DELETE", "/grants/{grant}"), ("POST", "/{so}/groups/{group}/subscriptions")],
    *[("PUT", "/{so}/actuations/{actuation}"), ("DELETE", "/claim-codes/{claim_code}")],
    *[("POST", "/subscriptions/{id}/test"), ("GET", "/subscriptions/{id}/test")],
    *[("POST", "/{so}/claim-codes"), ("POST", "/templates/{template}/claim-codes")],
    *[("POST", "/templates"), ("POST", "/templates/{template}/objects")],
    *[("POST", "/tokens"), ("POST", "/tokens"), ("POST", "/members")],
    *[("POST", "/{so}/actuations/{actuation}"), ("PATCH", "/{so}"), ("PUT", "/{so}")],
]
"""What fills the platform; the rest is done by whoever comes by."""
PLAIN = {"channels": {"x": {"type": "string"}}}
SAME = {"name": "the same", "streams": {"a": PLAIN, "b": PLAIN}}
SHOWING = [each for each in GUARDED if each[0] == "GET" and right_to(each) in OF_OTHERS]
KINDS = ("so", "id", "actuation", *MANY)


class Isolation(Walk):
    """What is tried, in any order."""

    def step(self, chance: Random) -> None:
        """Do something, and look at one of the lists now and then."""
        self.figures.steps += 1
        (action,) = chance.choices(list(OFTEN), list(OFTEN.values()))
        action(self, chance)
        if chance.random() < 0.3:
            chance.choice(LISTS)(self, self.owner(chance.randrange(TENANTS)))

    def named(self, who: Actor, route: Route, chance: Random, own: float) -> dict[str, Thing]:
        """Return something for each parameter of the path, so often his own."""
        found: dict[str, Thing] = {}
        for kind in KINDS:
            if f"{{{kind}}}" not in route[1] or (kind == "actuation" and route[0] == "POST"):
                continue
            known = self.model.things[kind]
            if kind == "so" and right_to(route) in OF_OTHERS and chance.random() < 0.4:
                known = [each for each in known if self.is_open(who, each)] or known
            elif chance.random() < own:
                known = [t for t in known if t.tenant == who.tenant and t.is_there()] or known
                if who.service_object is not None and kind == "so":
                    known = [who.service_object]
            nothing = Thing(kind, NOTHING[kind], -1, there=False)
            found[kind] = chance.choice(known) if known else nothing
        asked = found.get("actuation")
        if asked is not None and asked.about is not None and chance.random() < 0.7:
            found["so"] = asked.about
        return found

    def is_open(self, who: Actor, so: Thing) -> bool:
        """Tell whether it is another tenant's, and open in some way to this one."""
        return so.tenant != who.tenant and self.model.derives(who.tenant, so, "a")

    def anybody(self, chance: Random) -> Actor:
        """Return somebody of one of the kinds that there are, each as often."""
        kinds = sorted({each.identity for each in self.model.actors})
        kind = chance.choice(kinds)
        return chance.choice([each for each in self.model.actors if each.identity == kind])

    def make(self, chance: Random) -> None:
        """An owner makes or changes something of its own."""
        who, route = self.owner(chance.randrange(TENANTS)), chance.choice(MAKING)
        self.request(who, route, self.named(who, route, chance, own=1.0), chance)

    def ask_anything(self, chance: Random) -> None:
        """Anybody asks for anything: deletions, changes and what is another's, too."""
        who, route, own = self.anybody(chance), chance.choice(GUARDED), chance.random()
        self.request(who, route, self.named(who, route, chance, own), chance)

    def ask_as_owner(self, chance: Random) -> None:
        """Who may do everything with what is its own, and nothing with the rest."""
        who, route = self.owner(chance.randrange(TENANTS)), chance.choice(GUARDED)
        own = chance.choice([0.0, 1.0])
        self.request(who, route, self.named(who, route, chance, own), chance)

    def look(self, chance: Random) -> None:
        """Everybody reads what may show something of others: most leaks would be there."""
        who, route = self.owner(chance.randrange(TENANTS)), chance.choice(SHOWING)
        self.request(who, route, self.named(who, route, chance, own=0.5), chance)

    def send_the_same_with_one_key(self, chance: Random) -> None:
        """An answer that is kept to be given again is given to nobody else."""
        told = []
        for tenant in chance.sample(range(TENANTS), 2):
            who, key = self.owner(tenant), {"Idempotency-Key": "the-same"}
            answer = who.caller.ask("POST", "/", json=SAME, headers=key)
            assert answer.status_code == 201, answer.text
            told.append(answer.get_json())
            if "Idempotency-Replayed" not in answer.headers:
                self.learning.done(("POST", "/"), who, {}, Body(SAME), told[-1])
        assert told[0]["id"] != told[1]["id"]
        assert told[0]["api_token"] != told[1]["api_token"]

    def send_claim_code(self, chance: Random) -> None:
        if self.model.things["claim_code"]:
            code = chance.choice(self.model.things["claim_code"])
            self.claim(code, f"device {chance.randrange(3)}")

    def let_expire(self, chance: Random) -> None:
        kind = chance.choice(["token", "grant"])
        known = [each for each in self.model.things[kind] if each.there]
        if known:
            self.expire(chance.choice(known))

    def store(self, _chance: Random) -> None:
        self.served.store()

    # What lists and searches tell

    def pages(self, who: Actor, path: str, **query: str) -> list[dict[str, Any]]:
        """Return all of a list, and see that another tenant cannot go on with it."""
        found: list[dict[str, Any]] = []
        while True:
            answer = self.ask(who, ("GET", path), {}, query=query)
            assert answer.status_code == 200, answer.text
            found += answer.get_json()["data"]
            if "Link" not in answer.headers:
                return found
            link = answer.headers["Link"].split(">")[0].lstrip("<")
            query = {name: each[0] for name, each in parse_qs(urlsplit(link).query).items()}
            stranger = self.owner(((who.tenant or 0) + 1) % TENANTS)
            refused = self.ask(stranger, ("GET", path), {}, query=query)
            assert refused.status_code == 400, (path, query, refused.text)

    def of(self, kind: str, who: Actor) -> set[str]:
        return {t.id for t in self.model.things[kind] if t.tenant == who.tenant and t.is_there()}

    def objects(self, who: Actor) -> None:
        listed = self.ask(who, ("GET", "/"), {}).get_json()
        assert sorted(listed) == sorted(self.of("so", who))

    def open_objects(self, who: Actor) -> None:
        found = {t["id"] for t in self.pages(who, "/service-objects", public="true", limit="3")}
        assert found == {t.id for t in self.model.things["so"] if self.model.reads(who.tenant, t)}

    def search(self, who: Actor) -> None:
        """By a word of anybody's: only what one may read is found by it."""
        words = list(self.model.marks)
        if not words:
            return
        word = Random(len(words)).choice(words)
        for query in ({"name": word}, {"customFields.k": word}):
            for each in self.pages(who, "/service-objects", public="true", **query):
                so = self.model.by_id[each["id"]]
                assert self.model.reads(who.tenant, so), (word, each)
                assert word in so.shown or so.tenant == who.tenant, (word, each)

    def many(self, who: Actor) -> None:
        for kind, path in (("template", "/templates"), ("claim_code", "/claim-codes")):
            found = {each["id"] for each in self.pages(who, path, limit="2")}
            going = {each.id for each in self.model.things[kind] if each.ending}
            assert found - going == self.of(kind, who) - going, path
        members = self.ask(who, ("GET", "/members"), {}).get_json()["members"]
        assert {each["id"] for each in members} == self.of("member", who)
        self.pages(who, "/audit", limit="40")

    def grants(self, who: Actor) -> None:
        told = self.ask(who, ("GET", "/grants"), {}).get_json()["grants"]
        known = [each for each in self.model.things["grant"] if each.is_there()]
        given = {each.id for each in known if each.tenant == who.tenant}
        received = {each.id for each in known if each.grantee == who.tenant}
        for side, expected in (("given", given), ("received", received)):
            assert {each["id"] for each in told if each["side"] == side} == expected

    def counts(self, who: Actor) -> None:
        told = self.ask(who, ("GET", "/quotas"), {}).get_json()["quotas"]
        used = {each["name"]: each.get("used") for each in told}
        assert used["documents"] == len(self.of("so", who))
        assert used["members"] == len(self.of("member", who))


OFTEN: dict[Callable[[Isolation, Random], None], int] = {
    Isolation.make: 30,
    Isolation.ask_anything: 40,
    Isolation.ask_as_owner: 20,
    Isolation.look: 20,
    Isolation.send_claim_code: 3,
    Isolation.send_the_same_with_one_key: 1,
    Isolation.let_expire: 2,
    Isolation.store: 4,
}
"""How often each is done."""
LISTS: list[Callable[[Isolation, Actor], None]] = [
    *(Isolation.objects, Isolation.open_objects, Isolation.many),
    *(Isolation.grants, Isolation.counts, Isolation.search),
]


@pytest.mark.slow
def test_nobody_sees_what_is_not_his(
    database: SwitchedDatabase, capsys: pytest.CaptureFixture[str]
) -> None:
    issuer, figures = TokenIssuer(), Figures()
    for number in range(FIRST, FIRST + WALKS):
        chance, walk = Random(f"walk {number}"), Isolation(database, issuer, figures)
        try:
            for _ in range(STEPS):
                walk.step(chance)
        except AssertionError as error:
            error.add_note(f"in walk {number}: {figures}")
            raise
    if "WALKS" in os.environ:
        with capsys.disabled():
            sys.stdout.write(f"\n{figures}\n")
