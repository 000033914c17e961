"""Claims: a device that has no token yet gets a Service Object and a token for a claim code."""

from __future__ import annotations

import hmac
import secrets
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import orjson
from flask import Blueprint, Response

from api.documents.claim_codes import MAX_USES_OF_ONE
from api.fleets.making import Maker, VersionOfTemplate
from api.http.answers import answer
from api.http.attempts import Attempts
from api.http.authentication import open_to_everybody
from api.http.bodies import json_object
from api.resources.service_objects import new_id
from api.services import Services
from servioticy.domain.actor import Actor, set_actor
from servioticy.domain.claim_codes import Claim, fits, read_claim
from servioticy.domain.documents.codes import BAD_PARAMETER, WRONG_TYPE
from servioticy.domain.documents.errors import WHOLE
from servioticy.domain.documents.parameters import complete
from servioticy.domain.documents.templates import parse_template
from servioticy.domain.model import ServiceObjectKey
from servioticy.domain.tokens import digest
from servioticy.refusals import Conflict, NotFound, TooMany, within

ATTEMPTS = 3
"""How often something may have changed between looking and taking."""
SALT_BYTES = 16
MAX_TOKENS = 1 + MAX_USES_OF_ONE
"""Of a Service Object, with its own: they go with it in one transaction, for which all wait."""
NO_CODE = "There is no such claim code, or it has ended."


class Code(NamedTuple):
    """A claim code, as the statement of this name tells it."""

    id: str
    tenant: int
    makes: bool
    """whether a claim makes a Service Object, from a template"""
    bound_to: str
    """the template; else the Service Object"""
    parameters: str
    allowed: list[str]
    device_as: str | None
    pattern: str | None
    listed: bool
    is_left: bool
    has_ended: bool


class _NotTakenError(Exception):
    """Something has changed since it was looked at."""


def blueprint(services: Services) -> Blueprint:
    """`/claims`."""
    routes, claiming = Blueprint("claims", __name__), Claiming(services)

    @routes.post("/claims")
    @open_to_everybody
    def claim() -> Response:
        return claiming.claim(read_claim(json_object()))

    return routes


class Claiming:
    """Gives devices what their codes are for."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._stored = services.ports.statements("claims")
        self._templates = services.ports.statements("templates")
        self._attempts = Attempts()

    def claim(self, wanted: Claim) -> Response:
        """Give a device what its code is for; the same once more where it asks again."""
        for _ in range(ATTEMPTS):
            code = self._code(wanted)
            set_actor(Actor(code.tenant, f"claim-code:{code.id}"))
            known = self._known(code, wanted)
            if known is not None and known[0] is not None:
                return self._again(code, wanted, *known)
            _check(code, wanted, is_listed=known is not None)
            try:
                return self._first(code, wanted)
            except _NotTakenError:
                continue
        raise TooMany("Others are using or changing the same: try again")

    def _code(self, wanted: Claim) -> Code:
        row = self._stored.row("code", digest=digest(wanted.code))
        if row is None:
            raise NotFound(NO_CODE)
        return Code(*row)

    def _known(self, code: Code, wanted: Claim) -> Any:
        return self._stored.row("claim", code=code.id, device=wanted.device, tenant=code.tenant)

    def _again(
        self,
        code: Code,
        wanted: Claim,
        key: bytes,
        salt: bytes,
        service_object: str,
        claimed_at: int,
    ) -> Response:
        """Answer as before, to the same device only and while that token is good."""
        # The code and the device are known by then: what others try is no concern of its.
        with self._attempts.counted((code.id, wanted.device)):
            if not hmac.compare_digest(bytes(key), digest(wanted.key)):
                raise Conflict("This device has claimed already, with another key.")
        token = wanted.token(bytes(salt))
        if self._stored.row("is_good", token=digest(token), tenant=code.tenant) is None:
            raise Conflict("The token that this device got is good no longer.")
        return self._told(service_object, token, claimed_at, 200)

    def _first(self, code: Code, wanted: Claim) -> Response:
        """Give it a Service Object and a token, and take a use of the code for that."""
        values = _values(code, wanted)
        if not code.makes:
            return self._another(code, wanted)
        row = self._templates.row("content", id=code.bound_to, tenant=code.tenant, version=None)
        if row is None:
            raise NotFound(NO_CODE)
        number, content, _current, _at = row
        version = VersionOfTemplate(code.bound_to, number, parse_template(orjson.loads(content)))
        complete(version.template.parameters, values, WHOLE.at("parameters"))
        key = ServiceObjectKey(code.tenant, new_id(self._services.now()))
        new = Maker(self._services).created(key, version, values)
        answers: list[Response] = []
        taking = self._taking(code, wanted, new.id, number, answers)
        more = {"documents": 1, "streams": len(new.streams)}
        with self._services.quotas.adding(code.tenant, **more) as exceeded:
            within(exceeded)
            self._services.ports.changes.create(new, taking)
        return answers[0]

    @contextmanager
    def _taking(
        self, code: Code, wanted: Claim, service_object: str, version: int, answers: list[Response]
    ) -> Iterator[None]:
        """Take a use around what makes the Service Object. Raises _NotTakenError."""
        own = {"tenant": code.tenant}
        named = {"template": code.bound_to, "version": version}
        if self._stored.row("hold_template", **own, **named) is None:
            raise _NotTakenError
        self._stored.rows("hold_code", code=code.id, **own)
        yield
        answers.append(self._taken(code, wanted, service_object))

    def _another(self, code: Code, wanted: Claim) -> Response:
        """Give it one more token of the Service Object. Raises _NotTakenError."""
        own = {"tenant": code.tenant, "service_object": code.bound_to}
        with self._stored.together():
            self._stored.rows("hold_code", code=code.id, tenant=code.tenant)
            self._stored.rows("hold_object", **own)
            # Another statement: it sees what those have stored that held it before.
            row = self._stored.row("tokens_of", **own)
            if row is not None and row[0] >= MAX_TOKENS:
                raise Conflict(
                    f"The Service Object has {MAX_TOKENS} tokens already: its owner renews its "
                    f"token, which ends all of them, or revokes some"
                )
            return self._taken(code, wanted, code.bound_to)

    def _taken(self, code: Code, wanted: Claim, service_object: str) -> Response:
        """Take a use and store what was given. Raises _NotTakenError."""
        salt, now = secrets.token_bytes(SALT_BYTES), self._services.now()
        token = wanted.token(salt)
        row = self._stored.row(
            "take",
            code=code.id,
            tenant=code.tenant,
            device=wanted.device,
            key=digest(wanted.key),
            salt=salt,
            token=digest(token),
            token_id=uuid.uuid4().hex,
            service_object=service_object,
            now=now,
        )
        if row is None:
            raise _NotTakenError
        return self._told(service_object, token, now, 201)

    def _told(self, service_object: str, token: str, at: int, status: int) -> Response:
        place = {"Location": f"{self._services.base}/{service_object}"}
        body = {"id": service_object, "api_token": token, "createdAt": at}
        return answer(body, status, place)


def _check(code: Code, wanted: Claim, *, is_listed: bool) -> None:
    """Raises NotFound or Conflict where the code is good for nothing, or not for this device."""
    if code.has_ended:
        raise NotFound(NO_CODE)
    if not code.is_left:
        raise Conflict("The claim code has been used up.")
    is_for = not code.listed or is_listed
    if not is_for or not fits(wanted.device, code.pattern or "*"):
        raise Conflict("The claim code is not for this device.")


def _values(code: Code, wanted: Claim) -> dict[str, Any]:
    """Return the values of the template's parameters: the tenant's and the device's.

    Raises BadDocument where the device may not say that.
    """
    place = WHOLE.at("parameters")
    if not isinstance(wanted.parameters, dict):
        raise place.bad("parameters have to be a JSON object", WRONG_TYPE)
    for name in wanted.parameters:
        if name not in code.allowed:
            reason = f"A device may not give the parameter {name[:40]!r} with this code"
            raise place.at(name).bad(reason, BAD_PARAMETER)
    values: dict[str, Any] = orjson.loads(code.parameters) | wanted.parameters
    return values if code.device_as is None else values | {code.device_as: wanted.device}
