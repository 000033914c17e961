"""Templates: documents with parameters, and the fleets that are made from them."""

from __future__ import annotations

from typing import Any

import orjson
from flask import Blueprint, Response, request

from api.documents.membership import with_who_belongs
from api.documents.service_objects import parse_and_check
from api.http.answers import answer, nothing
from api.http.authentication import authenticated, needs
from api.http.bodies import json_object
from api.http.cursors import next_page, position
from api.http.errors import Conflict, NotFound, Outdated, TooMany, within
from api.http.queries import integer
from api.resources.jobs import MAX_WAITING, forget_finished
from api.resources.parameter_sets import parameter_sets
from api.resources.service_objects import new_id
from api.services import Services
from servioticy.domain.access import Right
from servioticy.domain.documents import BadDocument
from servioticy.domain.documents.parameters import complete, examples
from servioticy.domain.documents.templates import Template, parse_template
from servioticy.domain.model import ServiceObjectKey
from servioticy.ports.statements import Row

MAX_TEMPLATES = 1_000
MAX_VERSIONS = 1_000
LIMIT, MAX_LIMIT = 100, 1_000
ATTEMPTS = 3
LARGEST = 2**31 - 1
HOUR_MS = 3_600_000


def blueprint(services: Services) -> Blueprint:
    """`/templates` and what is below it."""
    routes = Blueprint("templates", __name__)
    stored = services.ports.statements("templates")
    jobs = services.ports.statements("jobs")

    @routes.post("/templates")
    @needs(Right.CREATE)
    @services.idempotency.once
    def create() -> Response:
        content, tenant, now = _content(services), authenticated().caller, services.now()
        id_ = new_id(now)
        stored.rows("forget", tenant=tenant, before=now - HOUR_MS)
        row = stored.row(
            "create", id=id_, tenant=tenant, now=now, content=content, most=MAX_TEMPLATES
        )
        if row is None:
            raise Conflict(f"There are {MAX_TEMPLATES} templates: delete some first")
        place = {"Location": f"{services.base}/templates/{id_}", "ETag": _etag(1)}
        return answer({"id": id_, "version": 1, "createdAt": now}, 201, place)

    @routes.get("/templates")
    @needs(Right.LIST)
    def listed() -> Response:
        tenant, limit = authenticated().caller, integer("limit", LIMIT, 1, MAX_LIMIT)
        about = f"templates {tenant}"
        rows = stored.rows("list", tenant=tenant, after=position(about) or "", limit=limit)
        names = ("id", "version", "createdAt", "updatedAt", "objects")
        headers = next_page(services.base, about, rows[-1][0]) if len(rows) == limit else {}
        return answer({"data": [dict(zip(names, r, strict=True)) for r in rows]}, 200, headers)

    @routes.get("/templates/<template>")
    @needs(Right.LIST)
    def read(template: str) -> Response:
        return _answered(template, None)

    @routes.get("/templates/<template>/versions/<int:version>")
    @needs(Right.LIST)
    def read_version(template: str, version: int) -> Response:
        return _answered(template, version)

    @routes.put("/templates/<template>")
    @needs(Right.CHANGE)
    def replace(template: str) -> Response:
        return _rolled_out(template, None, _content(services))

    @routes.delete("/templates/<template>")
    @needs(Right.CHANGE)
    def delete(template: str) -> Response:
        tenant = authenticated().caller
        _found(template, None)
        if stored.row("delete", id=template, tenant=tenant, now=services.now()) is None:
            raise Conflict("Service Objects follow the template, or are being made from it")
        return nothing()

    @routes.get("/templates/<template>/versions")
    @needs(Right.LIST)
    def versions(template: str) -> Response:
        _version, _content, current, _at = _found(template, None)
        rows = stored.rows("versions", id=template, tenant=authenticated().caller)
        every = [{"version": n, "createdAt": at, "active": n == current} for n, at in rows]
        return answer({"versions": every}, 200, {"ETag": _etag(current)})

    @routes.post("/templates/<template>/versions/<int:version>/activate")
    @needs(Right.CHANGE)
    def activate(template: str, version: int) -> Response:
        _found(template, version)
        return _rolled_out(template, version, None)

    @routes.get("/templates/<template>/objects")
    @needs(Right.LIST)
    def objects(template: str) -> Response:
        tenant, limit = authenticated().caller, integer("limit", LIMIT, 1, MAX_LIMIT)
        _found(template, None)
        about = f"objects {tenant} {template}"
        after = position(about) or ""
        rows = stored.rows("objects", id=template, tenant=tenant, after=after, limit=limit)
        found = [
            {"id": id_, "version": number, "parameters": orjson.loads(parameters)}
            for id_, number, parameters in rows
        ]
        headers = next_page(services.base, about, rows[-1][0]) if len(rows) == limit else {}
        return answer({"data": found}, 200, headers)

    @routes.post("/templates/<template>/objects")
    @needs(Right.CREATE)
    @services.idempotency.once
    def make(template: str) -> Response:
        tenant, sets = authenticated().caller, parameter_sets()
        forget_finished(jobs, tenant)
        for _ in range(ATTEMPTS):
            version, content, _current, _at = _found(template, None)
            parsed = parse_template(orjson.loads(content))
            for part, each in sets:
                complete(parsed.parameters, each, part)
            streams = len(sets) * _streams(parsed.document)
            now = services.now()
            job, ids = new_id(now), [new_id(now) for _ in sets]
            values = {
                "job": job,
                "template": template,
                "tenant": tenant,
                "version": version,
                "ids": ids,
                "parameters": [orjson.dumps(each).decode() for _, each in sets],
                "now": now,
                "most": MAX_WAITING,
            }
            more = {"documents": len(sets), "streams": streams}
            with services.quotas.held(tenant):  # however far the border: these are many
                within(services.quotas.too_many(tenant, **more))
                row = jobs.row("make_objects", **values)
            if row is not None:
                place = {"Location": f"{services.base}/jobs/{job}"}
                return answer({"job": job, "total": len(ids), "ids": ids}, 202, place)
        raise TooMany(f"{MAX_WAITING} jobs are not finished: wait for some of them")

    def _found(template: str, version: int | None) -> Row:
        row = None
        if version is None or version <= LARGEST:
            values = {"id": template, "tenant": authenticated().caller, "version": version}
            row = stored.row("content", **values)
        if row is None:
            raise NotFound("The template was not found.")
        return row

    def _answered(template: str, version: int | None) -> Response:
        number, content, current, updated_at = _found(template, version)
        counts = stored.rows("counts", id=template, tenant=authenticated().caller)
        body = {
            "id": template,
            "version": number,
            "active": number == current,
            "updatedAt": updated_at,
            **orjson.loads(content),
            "objects": [{"version": each, "count": count} for each, count in counts],
        }
        return answer(body, 200, {"ETag": _etag(current)})

    def _rolled_out(template: str, version: int | None, content: str | None) -> Response:
        """Put a version in force, a new one if there is content, and let the objects follow."""
        tenant, now = authenticated().caller, services.now()
        current = _found(template, None)[2]
        wanted = request.headers.get("If-Match")
        if wanted and wanted.strip() != "*" and _etag(current) not in wanted.split(","):
            raise Outdated(f"The template has changed: version {current} is there", _etag(current))
        wanted_content = content or _found(template, version)[1]
        each = _streams(orjson.loads(wanted_content)["document"])
        forget_finished(jobs, tenant)
        job = new_id(now)
        values = {
            "id": template,
            "tenant": tenant,
            "version": version,
            "expected": current if wanted else None,
            "content": content,
            "job": job,
            "now": now,
            "most": MAX_VERSIONS,
        }
        with services.quotas.held(tenant):
            had = stored.rows("streams_of_objects", id=template, tenant=tenant)
            more = sum(objects * max(0, each - streams) for objects, streams in had)
            within(services.quotas.too_many(tenant, streams=more))
            row = stored.row("replace", **values)
        if row is None:
            raise Conflict(f"It has just changed, or has had {MAX_VERSIONS} versions")
        number = version if version is not None else _found(template, None)[2]
        place = {"Location": f"{services.base}/jobs/{job}", "ETag": _etag(number)}
        return answer({"id": template, "version": number, "job": job}, 202, place)

    return routes


def _streams(document: dict[str, Any]) -> int:
    """Return how many streams a Service Object has that is made from it."""
    streams = document.get("streams")
    return len(streams) if isinstance(streams, dict) else 0


def _etag(version: int) -> str:
    return f'"{version}"'


def _content(services: Services) -> str:
    """Return what is stored of a template that was sent, which is tried with examples."""
    body = json_object()
    template = parse_template(body)
    _try(template, services)
    kept: dict[str, Any] = {
        "parameters": body.get("parameters") or {},
        "document": template.document,
    }
    return orjson.dumps(kept).decode()


def _try(template: Template, services: Services) -> None:
    """Make a document of examples and defaults, if all parameters have one. Raises BadDocument."""
    values = examples(template.parameters)
    if values is None:
        return
    try:
        document = template.filled(values)
        nobody = ServiceObjectKey(authenticated().caller, "")
        parse_and_check(with_who_belongs(document, nobody, services), nobody.id, services)
    except BadDocument as error:
        raise BadDocument(error.reason, f"/document{error.pointer}", error.code) from error
