"""The model of the random isolation run: who has what, and who may see which word of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from api_builders import NOW, Caller, Platform, Served, SwitchedDatabase
from token_issuer import OIDC
from werkzeug.test import TestResponse

from api.app import create_app
from sandbox.text import argument_names
from servioticy.domain.access import OF_GRANTS, Right, Scope
from servioticy.settings import Settings, changed

TENANTS = 3
WORD = re.compile(r"word\d+x")
NOTHING = "0" * 32
counted = {"steps": 0, "answers": 0}
"""In the whole run."""


@dataclass
class Thing:
    """A Service Object, subscription, template, job or token, as the model knows it."""

    id: str
    owners: set[int]
    public: bool = False
    there: bool = True
    words: set[str] = field(default_factory=set)


@dataclass
class Actor:
    """A token, and what the model knows of it."""

    tenant: int
    caller: Caller
    scope: Scope = field(default_factory=Scope)
    good: bool = True
    id: str = ""


class Walk:
    """An API with three tenants, and what the model knows of all that is theirs."""

    def begin_on(self, database: SwitchedDatabase) -> None:
        """Be as new."""
        backend = Platform(database)
        chosen = changed(Settings(), read_wait_seconds=0.0, **OIDC)
        self.served = Served(
            create_app(backend.ports, chosen, lambda: NOW, argument_names), backend
        )
        self.actors = [Actor(n, self.served.tenant(f"tenant{n}")) for n in range(TENANTS)]
        self.things: dict[str, list[Thing]] = {"so": [], "id": [], "template": [], "token": []}
        self.words = 0
        self.sent: set[str] = set()
        """Words in updates."""

    # What the rules are made of

    def word(self) -> str:
        self.words += 1
        return f"word{self.words}x"

    def owner(self, number: int) -> Actor:
        """A tenant's first token, which may do everything."""
        return self.actors[number % TENANTS]

    def any_of(self, kind: str, number: int) -> Thing:
        known = self.things[kind]
        return known[number % len(known)] if known else Thing(NOTHING, set(), there=False)

    def own(self, kind: str, tenant: int, number: int) -> Thing | None:
        known = [each for each in self.things[kind] if tenant in each.owners and each.there]
        return known[number % len(known)] if known else None

    def ask(self, actor: Actor, method: str, path: str, **more: Any) -> TestResponse:
        answer = actor.caller.ask(method, path, **more)
        self.check_words(actor, answer, f"{method} {path}")
        return answer

    def check_words(self, actor: Actor, answer: TestResponse, asked: str) -> None:
        """Nobody gets a word that is neither his own nor public."""
        counted["answers"] += 1
        assert answer.status_code < 500, (asked, answer.text)
        text = answer.get_data(as_text=True)
        seen = set(WORD.findall(text))
        if not seen:
            return
        assert actor.good, (asked, text)
        allowed: set[str] = set()
        for each in (thing for known in self.things.values() for thing in known):
            if actor.tenant in each.owners or (each.public and each.there):
                allowed |= each.words
        assert seen <= allowed, (asked, seen - allowed, text)

    def document(self, word: str, public: bool, source: str | None = None) -> dict[str, Any]:
        channel: dict[str, Any] = {"type": "string"}
        streams: dict[str, Any] = {"a": {"channels": {"x": channel}, "description": word}}
        made: dict[str, Any] = {"name": word, "public": public, "customFields": {"k": word}}
        if source is not None:
            made["groups"] = {"g": {"soIds": [source], "stream": "a"}}
            derived = {"type": "string", "current-value": "{$g.channels.x.current-value}"}
            streams["b"] = {"channels": {"x": derived}}
        actions = [{"name": "act", "description": word}]
        return {**made, "streams": streams, "actions": actions}

    def keep_old_words_secret(self, thing: Thing, before: set[str]) -> None:
        """Earlier versions are the owner's alone; updates are read by whoever reads it now."""
        documents = {each for each in before if each not in self.sent}
        thing.words -= documents
        self.things.setdefault("earlier", []).append(
            Thing(thing.id, set(thing.owners), words=documents)
        )

    def check_status(
        self,
        who: Actor,
        right: Right,
        named: dict[str, Thing],
        answer: TestResponse,
        route: tuple[str, str],
    ) -> None:
        so, told = named.get("so"), (route, answer.text)
        if not who.good or not who.scope.reaches(so.id if so else None, "a", right):
            assert answer.status_code == 403, told
            return
        if so is not None:
            # Who belongs to a group is its owner's to know, though the object is public.
            asked = Right.INSPECT if "{group}" in route[1] else right
            wanted = self.expected(who, asked, so, 0)
            assert answer.status_code == wanted or (wanted == 0 and answer.status_code != 401), (
                told
            )
        for kind, thing in named.items():
            if kind != "so" and who.tenant not in thing.owners:
                assert answer.status_code in ((401, 404) if kind == "id" else (404,)), told

    def expected(self, actor: Actor, right: Right, thing: Thing, good: int) -> int:
        if not thing.there:
            return 404
        may = actor.tenant in thing.owners or (thing.public and right in OF_GRANTS)
        return good if may else 401
