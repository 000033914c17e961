"""One walk of the random isolation run: an API with three tenants, asked and checked."""

from __future__ import annotations

import base64
from collections import Counter
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from api_builders import NOW, Caller, Platform, Served, SwitchedDatabase
from contract_world import ARCHIVE, OPERATIONS
from fleet_builders import work
from isolation_bodies import Bodies, Body
from isolation_learning import Learning
from isolation_model import ID, MANY, NOTHING, TENANTS, WORD, Actor, Model, Thing
from rest_page import Route, rights_on_the_page
from token_issuer import OIDC, TokenIssuer
from werkzeug.test import TestResponse

from api.app import create_app
from sandbox.text import argument_names
from servioticy.identity.addresses import AddressesOfPersons
from servioticy.settings import Settings, changed

ON_THE_PAGE = rights_on_the_page()
GUARDED = [each for each, its in OPERATIONS.items() if its["x-right"] != "none"]
WRONG_TOKEN = "The web object has presented the wrong API_TOKEN"
QUERIES: dict[Route, dict[str, str]] = {
    ("GET", "/{so}/streams/{s}/aggregates"): {"channel": "x", "bucket": "5", "functions": "count"},
    ("GET", "/{so}/streams/{s}/updates"): {"limit": "1"},
}
"""Of what asks for more than a path."""
MAY_LACK = ("{operator}", "{n}", "{group}", "{actuation}", "{id}", "{s}", "actuation_secret")
"""Parts of paths that may name what an object of one's own does not have."""


def right_to(route: Route) -> str:
    """Return the right that docs/rest.md names; it calls actuations by what POST and GET take."""
    method, path = route
    called = "{action}" if method == "POST" else "{id}"
    return ON_THE_PAGE[method, path.replace("{actuation}", called)]


@dataclass
class Figures:
    """Of the whole run."""

    steps: int = 0
    answers: int = 0
    leaks: int = 0
    done: Counter[Route] = field(default_factory=Counter)
    """how often each route has done what it is for"""
    tried: Counter[tuple[Route, str]] = field(default_factory=Counter)
    """each route with each kind of identity"""
    relations: set[tuple[Route, str, str]] = field(default_factory=set)
    """and whose was named: one's own, open to one, another's, or nobody's"""

    def __str__(self) -> str:
        identities = {identity for _, identity in self.tried}
        never = [" ".join(each) for each in GUARDED if each not in self.done]
        return (
            f"isolation: {self.steps:,} steps, {self.answers:,} answers looked through; "
            f"{len({route for route, _ in self.tried})} routes x {len(identities)} identities, "
            f"{len(self.tried):,} pairs tried, {len(self.relations):,} with whose was named; "
            f"{len(self.done)} routes have done what they are for, {self.done.total():,} times; "
            f"leaks: {self.leaks}\nidentities: {', '.join(sorted(identities))}\n"
            f"routes that have done nothing: {', '.join(never) or 'none'}"
        )


class Walk:
    """An API, and what the model knows of all that is there."""

    def __init__(self, database: SwitchedDatabase, issuer: TokenIssuer, figures: Figures) -> None:
        self.figures = figures
        backend = Platform(database)
        addresses = AddressesOfPersons(
            backend.ports.addresses, issuer.tokens(), clock=issuer.clock
        )
        backend.ports = replace(backend.ports, addresses=addresses)
        chosen = changed(Settings(), read_wait_seconds=0.0, operators_protection="any", **OIDC)
        self.served = Served(
            create_app(backend.ports, chosen, lambda: NOW, argument_names), backend
        )
        self.issuer, self.model = issuer, Model()
        self.client = self.served.app.test_client()
        for number in range(TENANTS):
            token = self.served.tenant(f"tenant{number}").token
            self.enter("owner", number, token)
            self.model.secrets.add(token)
        for number, actor in enumerate(list(self.model.actors)):
            id_ = actor.caller.ask("GET", "/grants").get_json()["tenant"]
            self.model.tenants.append(self.model.add(Thing("tenant", id_, number)))
        self.enter("nobody", None, "", good=False, ended="nobody")
        self.enter("forged", None, "x" * 43, good=False, ended="forged")
        stranger = self.person(0, "of none")
        self.enter("person", None, stranger, good=False, ended="person that is no member")
        self.bodies = Bodies(self.model, [each.id for each in self.model.tenants])
        self.learning = Learning(self.model, self.enter, self.document_of, self.person)

    def enter(self, kind: str, tenant: int | None, token: str, **scope: Any) -> None:
        """Let somebody come with this token."""
        self.model.actors.append(Actor(kind, tenant, Caller(self.client, token), **scope))

    def person(self, tenant: int, subject: str) -> str:
        """Return what a person shows that acts for a tenant."""
        return f"Bearer tenant{tenant}~{self.issuer.token(subject)}"

    def document_of(self, so: Thing) -> dict[str, Any]:
        """Return what its owner sees of a Service Object."""
        answer = self.model.actors[so.tenant].caller.ask("GET", f"/{so.id}")
        assert answer.status_code == 200, answer.text
        document: dict[str, Any] = answer.get_json()
        return document

    def owner(self, tenant: int) -> Actor:
        """A tenant's first token, which may do everything."""
        return self.model.actors[tenant]

    # A request

    def request(self, who: Actor, route: Route, named: dict[str, Thing], chance: Random) -> None:
        """Ask, and compare the answer with the model; then let the model learn of it."""
        body = self.bodies.of(route, who, named, chance)
        stream = "a" if "{s}" in route[1] else None
        names = {"s": "a", "n": chance.choice("11129"), "group": "g", "actuation": "act"}
        names |= {
            "operator": "forward",
            "application": "loop",
            "trace": "a" * 32,
            "tenant": NOTHING["id"],
        }
        if stream and chance.random() < 0.25:
            names["s"] = stream = chance.choice(["b", "b", "none"])
        names |= {kind: each.id for kind, each in named.items()}
        refused = self.model.refusal(who, right_to(route), route, named, stream)
        query = {"detach": "true"} if chance.random() < 0.3 else {}
        query |= QUERIES.get(route, {})
        self._count(who, route, named, refused)
        answer = self.ask(who, route, names, body, query)
        ending = any(each.ending for each in named.values())
        self.check_status(who, route, names, body, refused, ending, answer)
        self.compare_with_nothing(who, route, named, names, body, answer)
        if answer.status_code < 300 and who.good:
            self.figures.done[route] += 1
            work(self.served)
            self.learning.done(route, who, named, body, answer.get_json(silent=True))

    def _count(self, who: Actor, route: Route, named: dict[str, Thing], refused: set[int]) -> None:
        kind = who.identity
        whose = {"own" if each.tenant == who.tenant else "another's" for each in named.values()}
        relation = min(whose, default="nobody's")
        if relation == "another's" and not refused:
            relation = "open"
        self.figures.tried[route, kind] += 1
        self.figures.relations.add((route, kind, relation))

    def ask(
        self,
        who: Actor,
        route: Route,
        names: dict[str, str],
        body: Body | None = None,
        query: dict[str, str] | None = None,
    ) -> TestResponse:
        """Ask, and look whether the answer holds what is another's."""
        method, path = route[0], route[1].format_map(names)
        more: dict[str, Any] = {"query_string": query} if query else {}
        if body is not None and body.content is not None:
            is_archive = body.right and body.media == ARCHIVE
            content = base64.b64decode(body.text) if is_archive else body.text
            more |= {"data": content, "content_type": body.media}
        answer = who.caller.ask(method, path, **more)
        sent = f"{path} {query or ''} {more.get('data', '')}"
        self.check_words(who, answer, sent, f"{who.kind} of {who.tenant}: {method} {sent}")
        return answer

    def check_words(self, who: Actor, answer: TestResponse, sent: str, asked: str) -> None:
        """Nobody gets a word, an id or a secret that is neither his own nor open to him."""
        self.figures.answers += 1
        text = f"{answer.headers} {answer.get_data(as_text=True)}"
        told = (asked, answer.status_code, text)
        assert answer.status_code < 500, told
        words = set(WORD.findall(text)) - set(WORD.findall(sent))
        leaks = {each for each in words if not self.model.sees_word(who, each)}
        for id_ in set(ID.findall(text)) - set(ID.findall(sent)):
            thing = self.model.by_id.get(id_)
            if thing is not None and not self.model.knows_id(who, thing):
                leaks.add(id_)
        leaks |= {each for each in self.model.secrets if each in text and each not in sent}
        self.figures.leaks += len(leaks)
        assert not leaks, told

    def check_status(
        self,
        who: Actor,
        route: Route,
        names: dict[str, str],
        body: Body,
        refused: set[int],
        ending: bool,
        answer: TestResponse,
    ) -> None:
        """Whether this is one of the statuses that the model has for it."""
        status = answer.status_code
        told = (who.kind, who.tenant, route, names, body, refused, status, answer.text)
        if refused:
            by_its_form = {400, 415} if not body.right and 404 in refused else set()
            assert status in refused | by_its_form, told
            if status == 401:
                assert answer.get_json()["message"] == "Not authorized", told
            return
        if not body.right:
            assert status not in (401, 403), told
        elif body.refused is not None:
            assert status == body.refused or status in (404, 409), told
        else:
            may_lack = any(each in route[1] for each in MAY_LACK) or ending
            allowed = {404} if may_lack else set()
            assert status < 300 or status in allowed | {409}, told
        if status < 300 and "unknown" in body.facts:
            self._check_batch(body, answer)
        if status < 300 and "readable" in body.facts:
            found = ["status" not in each for each in answer.get_json()["data"]]
            assert found == body.facts["readable"], told

    def _check_batch(self, body: Body, answer: TestResponse) -> None:
        items = answer.get_json().get("items", [])
        assert [each["index"] for each in items] == body.facts["unknown"], (body, answer.text)
        assert {each["code"] for each in items} <= {"unknown-stream"}, answer.text

    def compare_with_nothing(
        self,
        who: Actor,
        route: Route,
        named: dict[str, Thing],
        names: dict[str, str],
        body: Body,
        answer: TestResponse,
    ) -> None:
        """What is another's is answered, word for word, as what there is not."""
        of_others = [
            kind
            for kind, each in named.items()
            if kind in MANY and not self.model.is_told(who, route, each)
        ]
        if not of_others:
            return
        nothing = names | {kind: NOTHING[kind] for kind in of_others}
        again = self.ask(who, route, nothing, body)
        found = [answer.get_data(as_text=True), again.get_data(as_text=True)]
        for kind in of_others:
            found = [each.replace(names[kind], NOTHING[kind]) for each in found]
        assert (answer.status_code, found[0]) == (again.status_code, found[1]), (route, found)

    # Beside the routes that ask who one is

    def claim(self, code: Thing, device: str) -> None:
        """A device sends a claim code, without a token."""
        sent = {"code": code.secret, "device": device, "key": "k" * 20}
        answer = self.client.post("/claims", json=sent)
        told = (code, answer.status_code, answer.text)
        self.figures.answers += 1
        self.figures.tried[("POST", "/claims"), "claiming device"] += 1
        if not code.is_there():
            assert answer.status_code == 404, told
        assert answer.status_code in (200, 201, 404, 409), told
        if answer.status_code < 300:
            self.learning.claimed(code, answer.get_json())

    def expire(self, thing: Thing) -> None:
        """Let a token or a grant come to its end by its time."""
        table, ended = "tokens", "now() - interval '1 second'"
        if thing.kind == "grant":
            table, ended, thing.there = "grants", "1", False
        sql = f"UPDATE {table} SET expires_at = {ended} WHERE id = %(id)s"
        self.served.platform.database.rows(sql, {"id": thing.id})
        thing.ending = True
        for each in self.model.actors:
            if each.thing is thing:
                each.good, each.ended = False, "expired"
