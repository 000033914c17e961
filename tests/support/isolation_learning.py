"""What the model of the random isolation run learns of a request that was done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from isolation_bodies import Body
from isolation_model import ID, OF_ROLES, WORD, Actor, Model, Thing
from rest_page import Route

Named = dict[str, Thing]


class Learning:
    """Brings the model up to date, asking only what an owner sees of its own."""

    def __init__(
        self,
        model: Model,
        enter: Callable[..., None],
        document_of: Callable[[Thing], dict[str, Any]],
        person: Callable[[int, str], str],
    ) -> None:
        self._model, self._enter = model, enter
        self._document_of, self._person = document_of, person

    def done(self, route: Route, who: Actor, named: Named, body: Body, told: Any) -> None:
        """Note what a request has changed. `told`: the body of its answer."""
        for so, stream, word in body.facts.get("sent", ()):
            so.sent.setdefault(stream, set()).add(word)
        if route in LESSONS:
            LESSONS[route](self, who, named, body, told)
            self._model.note_who_knows()

    def _tell(self, secret: str) -> str:
        self._model.secrets.add(secret)
        return secret

    def _tenant(self, who: Actor) -> int:
        assert who.tenant is not None, "nobody has changed something"
        return who.tenant

    # Service Objects

    def created(self, who: Actor, _named: Named, body: Body, told: Any) -> None:
        so = self._model.add(Thing("so", told["id"], self._tenant(who)))
        so.public = so.versions[1] = body.facts.get("public", False)
        self.device("device", so, told["api_token"])
        self._shows(so)

    def device(self, kind: str, so: Thing, token: str) -> None:
        """Let a device come with its token; it may have got the same before."""
        self._model.secrets.add(token)
        self._enter(kind, so.tenant, token, service_object=so)

    def changed(self, _who: Actor, named: Named, body: Body, told: Any) -> None:
        so = named["so"]
        so.public = body.facts.get("public", so.public)
        if "version" in told:
            so.versions[told["version"]] = so.public
            so.about = None
        self._shows(so)

    def saved(self, _who: Actor, named: Named, body: Body, told: Any) -> None:
        named["so"].versions[told["version"]] = body.facts["public"]

    def activated(self, _who: Actor, named: Named, _body: Body, told: Any) -> None:
        so = named["so"]
        so.public = so.versions[told["version"]]
        so.about = None
        self._shows(so)

    def _shows(self, so: Thing) -> None:
        """Take the words of its document from what its owner sees of it."""
        document = self._document_of(so)
        assert document["public"] in (so.public, str(so.public).lower()), document
        so.grouped = "groups" in document
        words = set(WORD.findall(str(document)))
        document.pop("actuationCallback", None)  # whom it calls is for its owner alone
        so.shown, so.names = set(WORD.findall(str(document))), set(ID.findall(str(document)))
        for word in words:
            mark = self._model.marks[word]
            assert mark.tenant == so.tenant, (word, document)
            if mark.about is None:
                self._model.marks[word] = replace(mark, about=so)

    def deleted(self, _who: Actor, named: Named, _body: Body, _told: Any) -> None:
        so = named["so"]
        so.there = False
        self._end_tokens_of(so)
        self._end_what_is_of(so)

    def _end_what_is_of(self, about: Thing) -> None:
        """Codes and grants are good for nothing, and told of until they are purged, as aspects."""
        for kind in ("claim_code", "grant", "aspect"):
            self._end_all_of(kind, about)

    def _end_all_of(self, kind: str, about: Thing) -> None:
        for each in self._model.things[kind]:
            each.ending = each.ending or each.about is about

    def _end_tokens_of(self, so: Thing) -> None:
        for each in self._model.things["token"]:
            if each.about is so:
                each.there = False
        for each in self._model.actors:
            if each.service_object is so:
                each.good = False

    def renewed(self, _who: Actor, named: Named, body: Body, told: Any) -> None:
        """With an overlap those before it are good yet, but for those that were ending already."""
        if body.content is None:
            self._end_tokens_of(named["so"])
        for each in self._model.things["token"]:
            each.ending = each.ending or each.about is named["so"]
        for device in self._model.actors:
            if device.service_object is named["so"] and device.thing is None:
                device.good, device.ending = device.good and not device.ending, True
        self.device("device", named["so"], told["api_token"])

    # Templates

    def template_made(self, who: Actor, _named: Named, body: Body, told: Any) -> None:
        made = self._model.add(Thing("template", told["id"], self._tenant(who)))
        made.public = made.versions[1] = body.facts.get("public", False)

    def workflow_made(self, who: Actor, _named: Named, _body: Body, told: Any) -> None:
        self._model.add(Thing("workflow", told["id"], self._tenant(who)))

    def aspect_made(self, who: Actor, _named: Named, body: Body, told: Any) -> None:
        made = Thing("aspect", told["id"], self._tenant(who), about=body.facts["so"])
        self._model.add(made)

    def template_changed(self, _who: Actor, named: Named, body: Body, told: Any) -> None:
        template = named["template"]
        template.public = template.versions.get(told["version"], body.facts.get("public", False))
        template.versions[told["version"]] = template.public
        self._job(template, told)
        for each in self._followers(template):
            each.public = template.public
            each.versions[max(each.versions) + 1] = template.public
            self._shows(each)

    def _followers(self, template: Thing) -> list[Thing]:
        return [each for each in self._model.things["so"] if each.there and each.about is template]

    def _job(self, template: Thing, told: Any) -> None:
        if "job" in told:
            self._model.add(Thing("job", told["job"], template.tenant, about=template))

    def objects_made(self, _who: Actor, named: Named, _body: Body, told: Any) -> None:
        template = named["template"]
        self._job(template, told)
        for id_ in told["ids"]:
            self._follower(template, id_)

    def _follower(self, template: Thing, id_: str) -> Thing:
        so = self._model.add(Thing("so", id_, template.tenant, about=template))
        so.public = so.versions[1] = template.public
        self._shows(so)
        return so

    # Who may what

    def granted(self, who: Actor, named: Named, body: Body, told: Any) -> None:
        grant = Thing("grant", told["id"], self._tenant(who), about=named["so"])
        grant.stream = told.get("stream")
        grant.grantee, grant.derive = body.facts["grantee"], body.facts["derive"]
        self._model.add(grant)
        if grant.grantee is not None:
            named["so"].known_to.add(grant.grantee)
            self._model.tenants[grant.grantee].known_to.add(grant.tenant)

    def gone(self, _who: Actor, named: Named, _body: Body, _told: Any) -> None:
        """Of whatever the path names last."""
        *_, thing = named.values()
        thing.there, thing.ending = False, thing.kind == "grant"  # which is told of for a while
        self._end_what_is_of(thing)
        for each in self._model.actors:
            each.good = each.good and each.thing is not thing

    def token_made(self, who: Actor, _named: Named, body: Body, told: Any) -> None:
        facts = body.facts
        about = facts["so"]
        token = self._model.add(Thing("token", told["id"], self._tenant(who), about=about))
        kind = "token of a stream" if facts["stream"] else "token of an object"
        if about is None:
            kind = "token of rights" if facts["rights"] else "token for all"
        scope = {"service_object": about, "stream": facts["stream"], "rights": facts["rights"]}
        self._tell(told["token"])
        self._enter(kind, token.tenant, told["token"], thing=token, **scope)

    def rotated(self, _who: Actor, named: Named, body: Body, told: Any) -> None:
        """With an overlap the one before it is good yet."""
        before = named["token"]
        before.ending = True
        token = self._model.add(Thing("token", told["id"], before.tenant, about=before.about))
        self._tell(told["token"])
        for each in [each for each in self._model.actors if each.thing is before]:
            scope = (each.service_object, each.stream, each.rights)
            names = dict(zip(("service_object", "stream", "rights"), scope, strict=True))
            each.good = each.good and body.content is not None
            self._enter(each.kind, before.tenant, told["token"], thing=token, **names)

    def member_added(self, who: Actor, _named: Named, body: Body, told: Any) -> None:
        tenant, role = self._tenant(who), body.facts["role"]
        member = self._model.add(Thing("member", told["id"], tenant, role=role))
        shown = self._person(tenant, body.facts["subject"])
        self._enter(f"member: {role}", tenant, shown, thing=member, rights=OF_ROLES[role])

    def member_changed(self, _who: Actor, named: Named, body: Body, _told: Any) -> None:
        member = named["member"]
        member.role = body.facts.get("role", member.role)
        for each in self._model.actors:
            if each.thing is member:
                each.kind, each.rights = f"member: {member.role}", OF_ROLES[member.role]

    def codes_made(self, who: Actor, named: Named, _body: Body, told: Any) -> None:
        about = named.get("so") or named["template"]
        for each in told["claimCodes"]:
            code = Thing("claim_code", each["id"], self._tenant(who), about=about)
            code.secret = self._tell(each["code"])
            self._model.add(code)

    def claimed(self, code: Thing, told: Any) -> None:
        """A device has got what the code is for."""
        assert code.about is not None
        so = self._model.by_id.get(told["id"])
        if so is None:
            so = self._follower(code.about, told["id"])
        assert so is code.about or so.about is code.about, told
        self.device("claimed device", so, told["api_token"])
        self._model.note_who_knows()

    # Subscriptions and actuations

    def subscribed(self, who: Actor, named: Named, body: Body, told: Any) -> None:
        made = Thing("id", told["id"], self._tenant(who), about=named["so"])
        made.callback = body.facts["callback"]
        self._model.add(made)
        if "secret" in told:
            self._tell(told["secret"])

    def secret_made(self, _who: Actor, _named: Named, _body: Body, told: Any) -> None:
        self._tell(told["secret"])

    def asked_to_act(self, _who: Actor, named: Named, _body: Body, told: Any) -> None:
        so = named["so"]
        self._model.add(Thing("actuation", told["id"], so.tenant, about=so))


Lesson = Callable[[Learning, Actor, Named, Body, Any], None]
LESSONS: dict[Route, Lesson] = {
    ("POST", "/"): Learning.created,
    ("PUT", "/{so}"): Learning.changed,
    ("PATCH", "/{so}"): Learning.changed,
    ("POST", "/{so}/versions"): Learning.saved,
    ("POST", "/{so}/versions/{n}/activate"): Learning.activated,
    ("DELETE", "/{so}"): Learning.deleted,
    ("POST", "/{so}/api_token"): Learning.renewed,
    ("POST", "/monitoring/aspects"): Learning.aspect_made,
    ("POST", "/workflows"): Learning.workflow_made,
    ("POST", "/templates"): Learning.template_made,
    ("PUT", "/templates/{template}"): Learning.template_changed,
    ("POST", "/templates/{template}/versions/{n}/activate"): Learning.template_changed,
    ("POST", "/templates/{template}/objects"): Learning.objects_made,
    ("POST", "/{so}/grants"): Learning.granted,
    ("POST", "/{so}/streams/{s}/grants"): Learning.granted,
    ("POST", "/tokens"): Learning.token_made,
    ("POST", "/tokens/{token}/rotation"): Learning.rotated,
    ("POST", "/members"): Learning.member_added,
    ("PATCH", "/members/{member}"): Learning.member_changed,
    ("POST", "/templates/{template}/claim-codes"): Learning.codes_made,
    ("POST", "/{so}/claim-codes"): Learning.codes_made,
    ("POST", "/{so}/streams/{s}/subscriptions"): Learning.subscribed,
    ("POST", "/{so}/subscriptions"): Learning.subscribed,
    ("POST", "/{so}/groups/{group}/subscriptions"): Learning.subscribed,
    ("POST", "/subscriptions/{id}/secret"): Learning.secret_made,
    ("POST", "/{so}/actuation_secret"): Learning.secret_made,
    ("POST", "/{so}/actuations/{actuation}"): Learning.asked_to_act,
    **dict.fromkeys(
        [
            ("DELETE", "/templates/{template}"),
            ("DELETE", "/workflows/{workflow}"),
            ("DELETE", "/monitoring/aspects/{aspect}"),
            ("DELETE", "/grants/{grant}"),
            ("DELETE", "/tokens/{token}"),
            ("DELETE", "/members/{member}"),
            ("DELETE", "/claim-codes/{claim_code}"),
            ("DELETE", "/subscriptions/{id}"),
        ],
        Learning.gone,
    ),
}
"""Of each route that changes what there is, and who may see it."""
