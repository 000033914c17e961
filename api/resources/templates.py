"""Templates: documents with parameters, and the fleets that are made from them."""

from __future__ import annotations

from typing import Any

import orjson
from flask import Blueprint, Response

from api.documents.membership import with_who_belongs
from api.documents.service_objects import parse_and_check
from api.http.answers import answer, nothing
from api.http.authentication import authenticated, needs
from api.http.bodies import json_object
from api.http.cursors import next_page, position
from api.http.queries import integer
from api.resources.parameter_sets import parameter_sets
from api.resources.service_objects import new_id
from api.resources.template_jobs import RollOut, TemplateJobs, etag_of
from api.services import Services
from servioticy.domain.access import Right
from servioticy.domain.documents import BadDocument
from servioticy.domain.documents.parameters import examples
from servioticy.domain.documents.templates import Template, parse_template
from servioticy.domain.model import ServiceObjectKey
from servioticy.domain.quotas import DOCUMENT_BYTES
from servioticy.refusals import Conflict, within

MAX_TEMPLATES = 1_000
LIMIT, MAX_LIMIT = 100, 1_000
HOUR_MS = 3_600_000


def blueprint(services: Services) -> Blueprint:
    """`/templates` and what is below it."""
    routes = Blueprint("templates", __name__)
    stored = services.ports.statements("templates")
    orders = TemplateJobs(services)

    @routes.post("/templates")
    @needs(Right.CREATE)
    @services.idempotency.once
    def create() -> Response:
        content, tenant, now = _content(services), authenticated().caller, services.now()
        id_ = new_id(now)
        stored.rows("forget", tenant=tenant, before=now - HOUR_MS)
        with services.quotas.adding(tenant, **{DOCUMENT_BYTES: len(content)}) as exceeded:
            within(exceeded)
            row = stored.row(
                "create", id=id_, tenant=tenant, now=now, content=content, most=MAX_TEMPLATES
            )
        if row is None:
            raise Conflict(f"There are {MAX_TEMPLATES} templates: delete some first")
        place = {"Location": f"{services.base}/templates/{id_}", "ETag": etag_of(1)}
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
        return _told(template, orders.roll_out(template, None, _content(services)))

    @routes.delete("/templates/<template>")
    @needs(Right.CHANGE)
    def delete(template: str) -> Response:
        tenant = authenticated().caller
        orders.found(template)
        if stored.row("delete", id=template, tenant=tenant, now=services.now()) is None:
            raise Conflict("Service Objects follow the template, or are being made from it")
        return nothing()

    @routes.get("/templates/<template>/versions")
    @needs(Right.LIST)
    def versions(template: str) -> Response:
        current = orders.found(template).current
        rows = stored.rows("versions", id=template, tenant=authenticated().caller)
        every = [{"version": n, "createdAt": at, "active": n == current} for n, at in rows]
        return answer({"versions": every}, 200, {"ETag": etag_of(current)})

    @routes.post("/templates/<template>/versions/<int:version>/activate")
    @needs(Right.CHANGE)
    def activate(template: str, version: int) -> Response:
        orders.found(template, version)
        return _told(template, orders.roll_out(template, version, None))

    @routes.get("/templates/<template>/objects")
    @needs(Right.LIST)
    def objects(template: str) -> Response:
        tenant, limit = authenticated().caller, integer("limit", LIMIT, 1, MAX_LIMIT)
        orders.found(template)
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
        made = orders.make(template, parameter_sets())
        place = {"Location": f"{services.base}/jobs/{made.job}"}
        body = {"job": made.job, "total": len(made.ids), "ids": made.ids}
        return answer(body, 202, place)

    def _answered(template: str, version: int | None) -> Response:
        found = orders.found(template, version)
        counts = stored.rows("counts", id=template, tenant=authenticated().caller)
        body = {
            "id": template,
            "version": found.version,
            "active": found.version == found.current,
            "updatedAt": found.updated_at,
            **orjson.loads(found.content),
            "objects": [{"version": each, "count": count} for each, count in counts],
        }
        return answer(body, 200, {"ETag": etag_of(found.current)})

    def _told(template: str, ordered: RollOut) -> Response:
        etag = {"ETag": etag_of(ordered.version)}
        place = {"Location": f"{services.base}/jobs/{ordered.job}"}
        body = {"id": template, "version": ordered.version, "job": ordered.job}
        return answer(body, 202, place | etag)

    return routes


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
        parse_and_check(with_who_belongs(document, nobody, services), nobody, services)
    except BadDocument as error:
        raise BadDocument(error.reason, f"/document{error.pointer}", error.code) from error
