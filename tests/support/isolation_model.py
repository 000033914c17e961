"""The model of the random isolation run: who has what, and who may do and see what of it.

It is written from docs/rest.md and asks nothing of the programs, so that an error in their rules
is none of its own.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field

from api_builders import Caller
from rest_page import Route

TENANTS = 3
OF_OTHERS = {"read", "subscribe"}
OF_DEVICES = frozenset({"read", "subscribe", "send", "actuate"})
_LOOKING = frozenset({"list", "read", "subscribe", "inspect"})
_OPERATING = _LOOKING | {"send", "actuate"}
_DEVELOPING = _OPERATING | {"create", "change"}
OF_ROLES = {
    "viewer": _LOOKING,
    "operator": _OPERATING,
    "developer": _DEVELOPING,
    "admin": _DEVELOPING | {"admin"},
}
MANY = ("template", "workflow", "job", "token", "member", "claim_code", "grant", "aspect")
"""What is another's is here as if it were not there."""
NOTHING = {"so": "0" * 45, **dict.fromkeys((*MANY, "id", "actuation"), "0" * 32)}
OF_ITS_OWNER_ALONE = ("PUT", "secret", "resume", "test", "dead-deliveries", "redrive")
"""Of a subscription: what is not even for the owner of the stream."""


@dataclass
class Thing:
    """Whatever has an id, as the model knows it."""

    kind: str
    """the name of the parameter of paths that it stands for"""
    id: str
    tenant: int
    about: Thing | None = None
    """the Service Object or template that it belongs to, or follows"""
    there: bool = True
    ending: bool = False
    """It may be there or not: nobody has promised when it goes."""
    known_to: set[int] = field(default_factory=set)
    """the other tenants that may have seen its id"""

    public: bool = False
    versions: dict[int, bool] = field(default_factory=dict)
    """of a Service Object or template: whether each of them is public"""
    shown: set[str] = field(default_factory=set)
    """the words of the document in force"""
    grouped: bool = False
    """whether that reads others, or may"""
    names: set[str] = field(default_factory=set)
    """and the ids in it: who may read it is told whom its groups read, and what it follows"""
    sent: dict[str, set[str]] = field(default_factory=dict)
    """of each stream the words in its updates"""
    stream: str | None = None
    grantee: int | None = None
    derive: bool = False
    secret: str = ""
    callback: str = ""
    role: str = ""

    def is_there(self) -> bool:
        """Tell whether it can be found at all: what belongs to something goes with it."""
        return self.there and (
            self.about is None or self.kind in ("so", "job") or self.about.there
        )


@dataclass
class Actor:
    """Somebody who asks, and what he may do of all that his tenant may."""

    kind: str
    tenant: int | None
    caller: Caller
    service_object: Thing | None = None
    stream: str | None = None
    rights: Collection[str] | None = None
    """None: all, or of one Service Object what a device needs"""
    good: bool = True
    ending: bool = False
    """A device that has been given another token: it is good until that happens again."""
    ended: str = "revoked"
    """why he is good for nothing any more"""
    thing: Thing | None = None
    """the token or member that he comes with"""

    @property
    def identity(self) -> str:
        """As what he is counted."""
        return self.kind if self.good else self.ended

    def reaches(self, service_object: Thing | None, stream: str | None, right: str) -> bool:
        """Tell whether he is let in for this at all, whatever his tenant may do."""
        if self.service_object is not None and self.service_object is not service_object:
            return False
        if self.stream is not None and self.stream != stream:
            return False
        if self.rights is not None:
            return right in self.rights
        return self.service_object is None or right in OF_DEVICES


@dataclass(frozen=True)
class Mark:
    """What a word was written for: it tells who may read it."""

    tenant: int | None
    about: Thing | None = None
    stream: str | None = None
    right: str | None = None
    """what its own tenant's tokens and members need to see it, where that is one right alone"""


class Model:
    """All that there is of three tenants."""

    def __init__(self) -> None:
        self.actors: list[Actor] = []
        self.tenants: list[Thing] = []
        """by their ids, which whoever knows them may grant something to"""
        self.things: dict[str, list[Thing]] = {kind: [] for kind in NOTHING}
        self.by_id: dict[str, Thing] = {}
        self.marks: dict[str, Mark] = {}
        self.secrets: set[str] = set()
        """told once, in one answer"""

    def add(self, thing: Thing) -> Thing:
        self.things.setdefault(thing.kind, []).append(thing)
        self.by_id[thing.id] = thing
        return thing

    def word(self, mark: Mark) -> str:
        word = f"word{len(self.marks)}x"
        self.marks[word] = mark
        return word

    # Who may read what

    def opens(self, tenant: int | None, so: Thing, stream: str | None, *, derive: bool) -> bool:
        """Tell whether the stream (None: all of it, and the document) is open to the tenant."""
        if tenant is None or not so.there:
            return False
        if tenant == so.tenant or so.public:
            return True
        return any(
            each.there
            and each.about is so
            and each.grantee in (None, tenant)
            and each.stream in (None, stream)
            and (derive or not each.derive)
            for each in self.things["grant"]
        )

    def reads(self, tenant: int | None, so: Thing, stream: str | None = None) -> bool:
        return self.opens(tenant, so, stream, derive=False)

    def derives(self, tenant: int | None, so: Thing, stream: str | None = None) -> bool:
        return self.opens(tenant, so, stream, derive=True)

    def note_who_knows(self) -> None:
        """Whoever could name a Service Object once may have its id in what is his own."""
        for so in self.things["so"]:
            for tenant in range(TENANTS):
                if any(self.derives(tenant, so, each) for each in ("a", "b", "c")):
                    so.known_to.add(tenant)
                    if so.about is not None:
                        so.about.known_to.add(tenant)

    def sees_word(self, who: Actor, word: str) -> bool:
        """Tell whether he may find it in an answer that he did not write it into."""
        mark, bound = self.marks[word], who.service_object
        if not who.good:
            return False
        if bound is not None and mark.about is not bound and word not in bound.shown:
            return False
        if who.stream is not None and mark.stream not in (None, who.stream):
            return False
        if who.tenant == mark.tenant:
            return mark.right is None or who.rights is None or mark.right in who.rights
        return any(
            (word in so.shown and self.reads(who.tenant, so))
            or (
                word in so.sent.get(mark.stream or "", ())
                and self.reads(who.tenant, so, mark.stream)
            )
            for so in self.things["so"]
        )

    def knows_id(self, who: Actor, thing: Thing) -> bool:
        """Tell whether he may find an id in an answer that he did not write it into."""
        if not who.good or who.tenant is None:
            return False
        if who.tenant in (thing.tenant, thing.grantee) or who.tenant in thing.known_to:
            return True
        objects = self.things["so"]
        if any(thing.id in so.names and self.reads(who.tenant, so) for so in objects):
            return True
        # The owner of a stream is told of every subscription to it.
        return thing.kind == "id" and thing.about is not None and thing.about.tenant == who.tenant

    # What is answered

    def refusal(
        self, who: Actor, right: str, route: Route, named: dict[str, Thing], stream: str | None
    ) -> set[int]:
        """Return the statuses of which one has to be; empty: he may do it."""
        so = named.get("so")
        if not who.good or not who.reaches(so, stream, right):
            return {403}
        if route[1].startswith("/platform"):  # nobody here operates the platform
            return {403}
        if so is not None:
            refused = self._of_object(who, right, route, so, stream)
            if refused:
                return refused
        for kind, thing in named.items():
            if kind == "id" and (refused := self._of_subscription(who, route, thing)):
                return refused
            if kind in MANY and not (self.is_told(who, route, thing) and thing.is_there()):
                may_be_told = thing.ending and (thing.there or kind == "grant")
                return set() if may_be_told and self.is_told(who, route, thing) else {404}
            if kind == "actuation" and thing.about is not so:
                return {404}
        return set()

    def is_told(self, who: Actor, route: Route, thing: Thing) -> bool:
        """Tell whether it is one's own, or a grant that is read by who has got it."""
        received = thing.grantee is not None and thing.grantee == who.tenant
        return thing.tenant == who.tenant or (received and route[0] == "GET")

    def _of_object(
        self, who: Actor, right: str, route: Route, so: Thing, stream: str | None
    ) -> set[int]:
        own = who.tenant == so.tenant
        if not so.there:
            return {404}
        if not own and not (right in OF_OTHERS and self.reads(who.tenant, so, stream)):
            return {401}
        if "{group}/" not in route[1]:
            return set()
        if not own:
            return {401}
        return {403} if who.service_object is not None else set()

    def _of_subscription(self, who: Actor, route: Route, thing: Thing) -> set[int]:
        if not thing.is_there() or thing.about is None:
            return {404}
        if who.tenant == thing.tenant:
            return set()
        alone = route[0] == "PUT" or route[1].rsplit("/", 1)[-1] in OF_ITS_OWNER_ALONE
        return {401} if alone or who.tenant != thing.about.tenant else set()


WORD = re.compile(r"word\d+x")
ID = re.compile(r"(?<![0-9a-f])(?:[0-9]{13})?[0-9a-f]{32}(?![0-9a-f])")
