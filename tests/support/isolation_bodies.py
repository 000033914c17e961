"""What the random isolation run sends to each route: bodies with words, right and wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from contract_world import examples_with_types
from isolation_model import OF_ROLES, Actor, Mark, Model, Thing
from rest_page import Route

JSON = "application/json"
WRONG: list[Any] = [[], 7, "text", None, {"streams": 7}, {"name": [], "rights": {}}]
PARTS = {"room": {"type": "string"}, "limit": {"type": "number", "default": 1}}
RIGHTS = ["create", "list", "read", "subscribe", "send", "actuate", "change", "inspect", "admin"]
OF_ONE = ["read", "subscribe", "send", "actuate", "change", "inspect"]


@dataclass
class Body:
    """What is sent with a request, and what follows from it."""

    content: Any = None
    media: str = JSON
    right: bool = True
    refused: int | None = None
    """how it is refused because of what it names, though it is of the right form"""
    facts: dict[str, Any] = field(default_factory=dict)
    """what the model learns where it is taken"""

    @property
    def text(self) -> str:
        is_text = isinstance(self.content, str) and self.media != JSON
        return self.content if is_text else json.dumps(self.content)


class Bodies:
    """Makes them for one walk."""

    def __init__(self, model: Model, tenant_ids: list[str]) -> None:
        self._model, self._tenant_ids = model, tenant_ids
        self._subjects = 0

    def of(self, route: Route, who: Actor, named: dict[str, Thing], chance: Random) -> Body:
        """Return a body for the route, now and then a wrong one."""
        if route not in MAKERS:
            return self._example(route)
        if chance.random() < 0.15:
            return Body(chance.choice(WRONG), right=False)
        return MAKERS[route](self, who, named, chance)

    def _example(self, route: Route) -> Body:
        for media, value in reversed(examples_with_types(*route).values()):
            return Body(value, media)
        return Body()

    def _word(self, who: Actor, about: Thing | None = None, **more: Any) -> str:
        return self._model.word(Mark(who.tenant, about, **more))

    def any(self, kind: str, chance: Random, tenant: int | None = None) -> Thing | None:
        """Return one of all that there are or were, or of a tenant's."""
        known = [each for each in self._model.things[kind] if tenant in (None, each.tenant)]
        return chance.choice(known) if known else None

    # Service Objects and templates

    def _document(self, who: Actor, so: Thing | None, chance: Random) -> dict[str, Any]:
        name, place, described, acts = (self._word(who, so) for _ in range(4))
        channels = {"x": {"type": "string"}}
        streams: dict[str, Any] = {each: {"channels": channels} for each in ("a", "b")}
        streams["a"]["description"] = described
        fields = {"k": place, "kind": "thing"}
        made: dict[str, Any] = {
            "name": name,
            "public": chance.random() < 0.35,
            "customFields": fields,
        }
        if chance.random() < 0.5:
            destination = f"http://example.org/{self._word(who, so)}"
            made["actuationCallback"] = {"destination": destination}
        return {**made, "streams": streams, "actions": [{"name": "act", "description": acts}]}

    def document(self, who: Actor, named: dict[str, Thing], chance: Random) -> Body:
        so = named.get("so")
        content = self._document(who, so, chance)
        refused, source = None, None
        if chance.random() < 0.4:
            source = self.any("so", chance)
        if so is not None and so.grouped and source is not None:
            # What a document named already may stay, whatever became of it.
            source = source if self._model.derives(who.tenant, source, "a") else None
        if source is not None and source is not so:
            derived = {"type": "string", "current-value": "{$g.channels.x.current-value}"}
            content["streams"]["c"] = {"channels": {"x": derived}}
            content["groups"] = {"g": {"soIds": [source.id], "stream": "a"}}
            if not source.there:
                refused = 400
            elif not self._model.derives(who.tenant, source, "a"):
                refused = 401
        elif chance.random() < 0.2:
            where = {"where": {"customFields.kind": "thing"}, "stream": "a", "public": True}
            content["groups"] = {"g": where}
        return Body(content, refused=refused, facts={"public": content["public"]})

    def patch(self, who: Actor, named: dict[str, Thing], chance: Random) -> Body:
        so = named["so"]
        choices: list[dict[str, Any]] = [
            {"name": self._word(who, so)},
            {"public": not so.public},
            {"customFields": {"k": self._word(who, so)}},
        ]
        content = chance.choice(choices)
        public = content.get("public", so.public)
        return Body(content, "application/merge-patch+json", facts={"public": public})

    def template(self, who: Actor, _named: dict[str, Thing], chance: Random) -> Body:
        document = self._document(who, None, chance)
        document["customFields"]["room"] = {"$parameter": "room"}
        content = {"parameters": PARTS, "document": document}
        return Body(content, facts={"public": document["public"]})

    def workflow(self, who: Actor, _named: dict[str, Thing], _chance: Random) -> Body:
        content = {
            "name": self._word(who),
            "source": {"http": {}},
            "procedures": {"p": {"code": f"a => ({{w: '{self._word(who)}', a}})"}},
            "links": [["source", "p"], ["p", "sink"]],
            "sink": {"collect": {}},
        }
        return Body(content)

    def aspect(self, who: Actor, _named: dict[str, Thing], chance: Random) -> Body:
        so = self.any("so", chance)
        found = so is not None and so.there and so.tenant == who.tenant
        content = {
            "serviceObject": so.id if so else "0" * 45,
            "stream": "a",
            "purpose": self._word(who),
        }
        return Body(content, refused=None if found else 404, facts={"so": so})

    def atoms(self, who: Actor, _named: dict[str, Thing], _chance: Random) -> Body:
        return Body({"atoms": [{"w": self._word(who)}]})

    def objects(self, who: Actor, _named: dict[str, Thing], _chance: Random) -> Body:
        return Body([{"room": self._word(who)}])

    # Who may what

    def grant(self, who: Actor, named: dict[str, Thing], chance: Random) -> Body:
        use = chance.choice(["read", "derive"])
        content: dict[str, Any] = {"use": use}
        grantee = chance.choice([None, 0, 1, 2])
        if grantee is None:
            content["everyone"] = True
        else:
            content["tenant"] = self._tenant_ids[grantee]
        if chance.random() < 0.3:
            content["expiresIn"] = 3_000_000_000
        own = grantee is not None and grantee == who.tenant
        facts = {"grantee": grantee, "derive": use == "derive"}
        return Body(content, refused=400 if own else None, facts=facts)

    def token(self, who: Actor, _named: dict[str, Thing], chance: Random) -> Body:
        so, rights = None, chance.sample(RIGHTS, chance.randint(1, 5))
        content: dict[str, Any] = {"name": self._word(who, right="admin")}
        refused, stream = None, None
        if chance.random() < 0.7:
            so = self.any("so", chance, who.tenant if chance.random() < 0.7 else None)
        if so is not None:
            content["serviceObject"], rights = so.id, chance.sample(OF_ONE, chance.randint(1, 4))
            if not so.there or so.tenant != who.tenant:
                refused = 400
            if chance.random() < 0.4:
                content["stream"] = stream = "a"
        facts: dict[str, Any] = {"so": so, "stream": stream, "rights": None}
        if chance.random() < 0.8:
            content["rights"] = facts["rights"] = rights
        return Body(content, refused=refused, facts=facts)

    def overlap(self, _who: Actor, _named: dict[str, Thing], chance: Random) -> Body:
        return Body({"overlapSeconds": 3600} if chance.random() < 0.7 else None)

    def member(self, who: Actor, _named: dict[str, Thing], chance: Random) -> Body:
        self._subjects += 1
        subject, role = f"person {self._subjects}", chance.choice(list(OF_ROLES))
        content = {"subject": subject, "role": role, "name": self._word(who, right="admin")}
        return Body(content, facts={"subject": subject, "role": role})

    def role(self, _who: Actor, _named: dict[str, Thing], chance: Random) -> Body:
        role = chance.choice(list(OF_ROLES))
        return Body({"role": role}, facts={"role": role})

    def code(self, who: Actor, named: dict[str, Thing], chance: Random) -> Body:
        content: dict[str, Any] = {"uses": chance.randint(1, 3)}
        if "template" in named:
            content["parameters"] = {"room": self._word(who)}
        else:
            content["devicePattern"] = f"*{self._word(who, named['so'])}*"
            del content["uses"]
        return Body(content)

    # Updates, and who gets them

    def _update(self, who: Actor, so: Thing, stream: str, chance: Random) -> tuple[str, Any]:
        word = self._word(who, so, stream=stream)
        at = chance.randint(1, 60)
        return word, {"channels": {"x": {"current-value": word}}, "lastUpdate": at}

    def update(self, who: Actor, named: dict[str, Thing], chance: Random) -> Body:
        word, content = self._update(who, named["so"], "a", chance)
        return Body(content, facts={"sent": [(named["so"], "a", word)]})

    def updates(self, who: Actor, named: dict[str, Thing], chance: Random) -> Body:
        made = [self._update(who, named["so"], "a", chance) for _ in range(2)]
        facts = {"sent": [(named["so"], "a", word) for word, _ in made]}
        return Body([each for _, each in made], facts=facts)

    def updates_of_many(self, who: Actor, _named: dict[str, Thing], chance: Random) -> Body:
        sent, content, unknown = [], [], []
        for number in range(3):
            so = self.any("so", chance)
            if so is None:
                continue
            stream = chance.choice(["a", "b"])
            word, update = self._update(who, so, stream, chance)
            content.append({"serviceObject": so.id, "stream": stream, "update": update})
            if so.there and so.tenant == who.tenant:
                sent.append((so, stream, word))
            else:
                unknown.append(number)
        return Body(content, right=bool(content), facts={"sent": sent, "unknown": unknown})

    def last_updates(self, who: Actor, _named: dict[str, Thing], chance: Random) -> Body:
        asked = [self.any("so", chance) for _ in range(4)]
        found = [(each, chance.choice(["a", "b"])) for each in asked if each is not None]
        content = [{"serviceObject": so.id, "stream": stream} for so, stream in found]
        readable = [self._model.reads(who.tenant, so, stream) for so, stream in found]
        return Body({"streams": content}, facts={"readable": readable})

    def search(self, _who: Actor, _named: dict[str, Thing], chance: Random) -> Body:
        if chance.random() < 0.5 or not self._model.marks:
            return Body({"timerange": True, "rangefrom": 0})
        word = chance.choice(list(self._model.marks))
        wanted = {"match": True, "matchfield": "channels.x.current-value", "matchstring": word}
        return Body(wanted)

    def subscription(self, who: Actor, named: dict[str, Thing], chance: Random) -> Body:
        callback = chance.choice(["http", "pull", "service"])
        content = {"callback": callback, "customFields": {"aliases": {}, "w": ""}}
        content["customFields"]["w"] = self._word(who, named["so"])
        if callback != "pull":
            place = self._word(who, named["so"])
            http = f"http://example.org/{place}"
            content["destination"] = http if callback == "http" else place
        return Body(content, facts={"callback": callback})

    def moved(self, who: Actor, named: dict[str, Thing], _chance: Random) -> Body:
        place = self._word(who, named["id"].about)
        return Body({"destination": f"http://example.org/{place}"})

    def text(self, who: Actor, named: dict[str, Thing], _chance: Random) -> Body:
        return Body(self._word(who, named["so"]), "text/plain")


Maker = Callable[[Bodies, Actor, dict[str, Thing], Random], Body]
MAKERS: dict[Route, Maker] = {
    ("POST", "/"): Bodies.document,
    ("PUT", "/{so}"): Bodies.document,
    ("PATCH", "/{so}"): Bodies.patch,
    ("POST", "/{so}/versions"): Bodies.document,
    ("POST", "/monitoring/aspects"): Bodies.aspect,
    ("POST", "/workflows"): Bodies.workflow,
    ("PUT", "/workflows/{workflow}"): Bodies.workflow,
    ("POST", "/workflows/{workflow}/atoms"): Bodies.atoms,
    ("POST", "/templates"): Bodies.template,
    ("PUT", "/templates/{template}"): Bodies.template,
    ("POST", "/templates/{template}/objects"): Bodies.objects,
    ("POST", "/templates/{template}/claim-codes"): Bodies.code,
    ("POST", "/{so}/claim-codes"): Bodies.code,
    ("POST", "/{so}/grants"): Bodies.grant,
    ("POST", "/{so}/streams/{s}/grants"): Bodies.grant,
    ("POST", "/tokens"): Bodies.token,
    ("POST", "/{so}/api_token"): Bodies.overlap,
    ("POST", "/tokens/{token}/rotation"): Bodies.overlap,
    ("POST", "/members"): Bodies.member,
    ("PATCH", "/members/{member}"): Bodies.role,
    ("PUT", "/{so}/streams/{s}"): Bodies.update,
    ("POST", "/{so}/streams/{s}/updates"): Bodies.updates,
    ("POST", "/updates"): Bodies.updates_of_many,
    ("POST", "/lastUpdates"): Bodies.last_updates,
    ("POST", "/{so}/streams/{s}/search"): Bodies.search,
    ("POST", "/{so}/streams/{s}/subscriptions"): Bodies.subscription,
    ("POST", "/{so}/subscriptions"): Bodies.subscription,
    ("POST", "/{so}/groups/{group}/subscriptions"): Bodies.subscription,
    ("PUT", "/subscriptions/{id}"): Bodies.moved,
    ("POST", "/{so}/actuations/{actuation}"): Bodies.text,
    ("PUT", "/{so}/actuations/{actuation}"): Bodies.text,
}
