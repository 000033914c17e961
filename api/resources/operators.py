"""Operators: programs of the tenant's own that compute composite streams, in versions."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import orjson
from flask import Blueprint, Response, request

from api.http.answers import answer, nothing
from api.http.authentication import authenticated, needs
from api.http.bodies import body
from api.http.queries import integer
from api.services import Services
from operators import archives, manifest
from operators.archives import MAX_ARCHIVE_BYTES
from operators.errors import NotAnOperator
from operators.instance import NO_NETWORK
from operators.layers import lacking, layers
from servioticy.domain.access import Right
from servioticy.domain.quotas import OPERATORS
from servioticy.errors import Unavailable
from servioticy.refusals import Conflict, Denied, NotFound, Refused, within

MAX_NAMES = 100
"""Programs of a tenant, those of which no version is left among them."""
MAX_GRANTS = 1_000
"""Of one program."""
MAX_NODES = 100
"""Of which it is told how a program runs."""
PAGE_ROWS = 100
MAX_VERSION = 2**31 - 1


def blueprint(services: Services) -> Blueprint:
    """`/operators` and what is below it."""
    routes = Blueprint("operators", __name__)
    stored = services.ports.statements("operators")
    tenants = services.ports.statements("grants")

    @routes.put("/operators/<operator>")
    @needs(Right.CHANGE)
    def push(operator: str) -> Response:
        """Store a program; in force for nobody before a document names this version."""
        tenant = authenticated().caller
        if services.quotas.most(tenant, OPERATORS).most == 0:
            raise Denied("This platform's operator has not allowed you to push operators")
        own = services.settings.operators
        is_enclosed = own.protection == "any" or own.docker
        if not is_enclosed and (reason := _why_not()):
            raise Conflict(f"This machine cannot enclose programs: {reason}")
        content, files, described = _sent(operator)
        if own.protection == "required" and described.network:
            raise Denied(NO_NETWORK)
        digest = archives.digest(files)
        newest = stored.row("newest", tenant=tenant, name=operator)
        if newest is not None and newest[1] == digest:
            return _told(operator, newest[0], 200)
        with services.quotas.adding(tenant, operators=1) as exceeded:
            within(exceeded)
            row = stored.row(
                "push",
                tenant=tenant,
                name=described.name,
                most=MAX_NAMES,
                manifest=files[manifest.FILE].content.decode(),
                digest=digest,
                archive=content,
                now=services.now(),
            )
        if row is None:
            raise Conflict(f"There are {MAX_NAMES} operators already")
        return _told(operator, row[0], 201)

    @routes.get("/operators")
    @needs(Right.LIST)
    def listed() -> Response:
        """List all versions, a page at a time, with how many processes each has."""
        tenant = authenticated().caller
        name, version = _after(request.args.get("after", ""))
        rows = stored.rows("listed", tenant=tenant, name=name, after=-version, rows=PAGE_ROWS)
        states: dict[tuple[str, int], dict[str, int]] = {}
        for of, number, state, count in stored.rows("states", tenant=tenant):
            states.setdefault((of, number), {})[state] = count
        told = [{**_row(*row), "processes": states.pop((row[0], row[1]), {})} for row in rows]
        result: dict[str, Any] = {"operators": told}
        if name == "":
            result["grants"] = [
                {"name": of, "tenant": id_, "tenantName": called}
                for of, id_, called in stored.rows("grants", tenant=tenant)
            ]
        if len(rows) == PAGE_ROWS:
            result["next"] = f"{rows[-1][0]}/{rows[-1][1]}"
        return answer(result)

    @routes.get("/operators/<operator>/<int:version>")
    @needs(Right.INSPECT)
    def one(operator: str, version: int) -> Response:
        """Tell what a version is, how it runs, and what it has printed last."""
        return _told(operator, version, 200)

    @routes.delete("/operators/<operator>")
    @needs(Right.CHANGE)
    def remove(operator: str) -> Response:
        """Remove a version, or all: what is computed by it ends with errors from then on."""
        version = integer("version", 1, 1, MAX_VERSION) if "version" in request.args else None
        tenant = authenticated().caller
        if not stored.rows("remove", tenant=tenant, name=operator, version=version):
            raise NotFound("The Operator was not found.")
        return nothing()

    @routes.put("/operators/<operator>/grants/<tenant>")
    @needs(Right.CHANGE)
    def grant(operator: str, tenant: str) -> Response:
        """Let another tenant compute by any version of a program."""
        values = {"tenant": authenticated().caller, "name": operator, "grantee": _id(tenant)}
        if values["grantee"] == values["tenant"]:
            raise Refused("A tenant needs no grant of what is its own")
        if not stored.rows("grant", **values, now=services.now(), most=MAX_GRANTS):
            raise NotFound(f"There is no such operator, or it has {MAX_GRANTS} grants.")
        return nothing()

    @routes.delete("/operators/<operator>/grants/<tenant>")
    @needs(Right.CHANGE)
    def revoke(operator: str, tenant: str) -> Response:
        """Let it no more."""
        values = {"tenant": authenticated().caller, "name": operator, "grantee": _id(tenant)}
        if not stored.rows("revoke", **values):
            raise NotFound("The Grant was not found.")
        return nothing()

    def _id(public_id: str) -> int:
        row = tenants.row("grantee", public_id=public_id)
        if row is None:
            raise NotFound("There is no tenant of this id: it finds its own at GET /grants")
        found: int = row[0]
        return found

    def _told(name: str, version: int, status: int) -> Response:
        values = {"tenant": authenticated().caller, "name": name, "version": version}
        row = stored.row("version", **values) if 0 < version <= MAX_VERSION else None
        if row is None:
            raise NotFound("The Operator was not found.")
        runs = [_run(*each) for each in stored.rows("runs", **values, most=MAX_NODES)]
        place = {"Location": f"{services.base}/operators/{name}/{version}"}
        return answer({**_row(*row), "runs": runs}, status, place)

    return routes


def _sent(name: str) -> tuple[bytes, archives.Files, manifest.Described]:
    """Return the archive that was sent, its files, and what it says of itself. Raises Refused."""
    request.max_content_length = MAX_ARCHIVE_BYTES + 1
    content = body()
    try:
        files = archives.unpack(content)
        described = archives.described(files)
    except NotAnOperator as error:
        raise Refused(str(error)) from error
    if described.name != name:
        raise Refused(f"{manifest.FILE}: name: the program says that it is {described.name}")
    return content, files, described


def _after(text: str) -> tuple[str, int]:
    """Return the version behind which a page begins, as `next` told it."""
    name, _, version = text.partition("/")
    is_number = version.isascii() and version.isdigit() and len(version) <= 10
    return (name, min(int(version), MAX_VERSION)) if is_number else ("", 0)


class _Walls:
    """Whether programs can be enclosed here: looked at once, by one thread while others wait."""

    def __init__(self) -> None:
        self._lacking: str | None = None
        self._lock = threading.Lock()

    def why_not(self) -> str:
        """Why they cannot; "" where they can. Raises Unavailable where it could not be seen."""
        with self._lock:
            if self._lacking is None:
                try:
                    self._lacking = lacking(layers())
                except OSError as error:  # of this moment: the next one looks again
                    raise Unavailable(
                        f"it was not to be seen how programs run: {error}"
                    ) from error
            return self._lacking


_why_not = _Walls().why_not


def _row(name: str, version: int, content: str, size: int, created_at: int) -> dict[str, Any]:
    said: Mapping[str, Any] = orjson.loads(content)
    return {
        "name": name,
        "version": version,
        "language": said.get("language", "other"),
        "manifest": said,
        "bytes": size,
        "createdAt": created_at,
    }


def _run(
    node: str, state: str, restarts: int, problem: str, printed: str, told_at: int
) -> dict[str, Any]:
    return {
        "node": node,
        "state": state,
        "restarts": restarts,
        "problem": problem,
        "printed": printed,
        "toldAt": told_at,
    }
