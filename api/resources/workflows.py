"""Workflows: documents of atoms, procedures and links, and their versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson
from flask import Blueprint, Response, request

from api.documents.workflows import CheckedWorkflow
from api.http.answers import answer, nothing
from api.http.authentication import authenticated, needs
from api.http.bodies import json_object
from api.http.cursors import next_page, position
from api.http.queries import choice, integer
from api.resources.service_objects import new_id
from api.resources.template_jobs import LARGEST, etag_of
from api.services import Services
from servioticy.domain.access import Right
from servioticy.domain.quotas import DOCUMENT_BYTES
from servioticy.domain.workflows.costs import Work, estimate
from servioticy.domain.workflows.model import LOOK, Files, Workflow
from servioticy.domain.workflows.picture import picture
from servioticy.domain.workflows.reading import parse_workflow
from servioticy.ports.statements import Statements
from servioticy.refusals import Conflict, NotFound, Outdated, within

MAX_WORKFLOWS = 100
MAX_VERSIONS = 10
"""Of a workflow that are kept: of those before by which no atom waits any more the oldest go."""
KEPT_VERSIONS = 5
"""Of them so many are kept as long as there is the workflow."""
LIMIT, MAX_LIMIT = 100, 1_000
SVG = "image/svg+xml"
MEASURED_MS = 7 * 86_400_000
"""By what was done in that time it is estimated what a new version would cost."""


class StoredWorkflow(NamedTuple):
    """A version of a workflow, as the statement `content` tells it."""

    version: int
    content: str
    current: int
    """The version in force."""
    created_at: int
    updated_at: int
    subscription: str | None


def found(stored: Statements, workflow: str, version: int | None = None) -> StoredWorkflow:
    """Return that version, or the one in force. Raises NotFound."""
    row = None
    if version is None or version <= LARGEST:
        tenant = authenticated().caller
        row = stored.row("content", id=workflow, tenant=tenant, version=version)
    if row is None:
        raise NotFound("The workflow was not found.")
    return StoredWorkflow(*row)


def blueprint(services: Services) -> Blueprint:
    """`/workflows` and the documents below it."""
    routes = Blueprint("workflows", __name__)
    stored = services.ports.statements("workflows")
    subscriptions = services.ports.statements("subscriptions")

    @routes.post("/workflows")
    @needs(Right.CREATE)
    @services.idempotency.once
    def create() -> Response:
        tenant, now = authenticated().caller, services.now()
        dry = _is_dry()
        checked, id_ = CheckedWorkflow(json_object(), services), new_id(now)
        if dry:
            return _estimated(checked)
        with services.quotas.adding(
            tenant, subscriptions=1, **{DOCUMENT_BYTES: len(checked.content)}
        ) as exceeded:
            within(exceeded)
            with stored.together():
                row = stored.row(
                    "create",
                    id=id_,
                    tenant=tenant,
                    now=now,
                    content=checked.content,
                    most=MAX_WORKFLOWS,
                    subscription=checked.subscribe(id_),
                )
                if row is None:
                    raise Conflict(f"There are {MAX_WORKFLOWS} workflows: delete some first")
                _look(id_, 1, None, checked.read)
        place = {"Location": f"{services.base}/workflows/{id_}", "ETag": etag_of(1)}
        return answer({"id": id_, "version": 1, "createdAt": now}, 201, place)

    @routes.get("/workflows")
    @needs(Right.LIST)
    def listed() -> Response:
        tenant, limit = authenticated().caller, integer("limit", LIMIT, 1, MAX_LIMIT)
        about = f"workflows {tenant}"
        rows = stored.rows("list", tenant=tenant, after=position(about) or "", limit=limit)
        names = ("id", "version", "createdAt", "updatedAt")
        headers = next_page(services.base, about, rows[-1][0]) if len(rows) == limit else {}
        return answer({"data": [dict(zip(names, r, strict=True)) for r in rows]}, 200, headers)

    @routes.get("/workflows/<workflow>")
    @needs(Right.LIST)
    def read(workflow: str) -> Response:
        return _told(workflow, found(stored, workflow))

    @routes.get("/workflows/<workflow>/versions")
    @needs(Right.LIST)
    def versions(workflow: str) -> Response:
        current = found(stored, workflow).current
        rows = stored.rows("versions", id=workflow, tenant=authenticated().caller)
        every = [{"version": n, "createdAt": at, "active": n == current} for n, at in rows]
        return answer({"versions": every}, 200, {"ETag": etag_of(current)})

    @routes.get("/workflows/<workflow>/versions/<int:version>")
    @needs(Right.LIST)
    def read_version(workflow: str, version: int) -> Response:
        return _told(workflow, found(stored, workflow, version))

    @routes.get("/workflows/<workflow>/picture.svg")
    @needs(Right.LIST)
    def drawn(workflow: str) -> Response:
        """Draw it as it is now, with what waits for each step."""
        own = found(stored, workflow)
        read = parse_workflow(orjson.loads(own.content))
        rows = stored.rows("queues", id=workflow, tenant=authenticated().caller)
        waiting = {
            read.name_of(step): atoms
            for version, step, atoms, *_ in rows
            if version == own.version
        }
        return Response(picture(read, waiting), 200, {"ETag": etag_of(own.version)}, SVG)

    @routes.put("/workflows/<workflow>")
    @needs(Right.CHANGE)
    def replace(workflow: str) -> Response:
        tenant, now = authenticated().caller, services.now()
        before = found(stored, workflow)
        wanted = request.headers.get("If-Match")
        if wanted not in (None, "*", etag_of(before.version)):
            raise Outdated("The workflow has been changed since", etag_of(before.version))
        dry = _is_dry()
        checked = CheckedWorkflow(json_object(), services)
        if dry:
            return _estimated(checked, workflow, {"ETag": etag_of(before.version)})
        with services.quotas.adding(tenant, **{DOCUMENT_BYTES: len(checked.content)}) as exceeded:
            within(exceeded)
            with stored.together():
                values = {"id": workflow, "tenant": tenant}
                stored.rows("forget_versions", **values, kept=KEPT_VERSIONS)
                row = stored.row(
                    "replace",
                    **values,
                    now=now,
                    content=checked.content,
                    expected=before.version,
                    most=MAX_VERSIONS,
                    subscription=_subscription(before, checked, workflow),
                )
                if row is None:
                    raise Conflict(
                        f"It was changed in this moment, or of {MAX_VERSIONS} versions atoms wait"
                    )
                _look(workflow, row[0], parse_workflow(orjson.loads(before.content)), checked.read)
        return answer({"id": workflow, "version": row[0]}, 200, {"ETag": etag_of(row[0])})

    @routes.delete("/workflows/<workflow>")
    @needs(Right.CHANGE)
    def delete(workflow: str) -> Response:
        found(stored, workflow)
        stored.rows("delete", id=workflow, tenant=authenticated().caller)
        return nothing()

    def _estimated(
        checked: CheckedWorkflow, workflow: str = "", headers: Mapping[str, str] | None = None
    ) -> Response:
        """Tell what it would cost: as far as the workflow has been at work, by what that took."""
        rows = stored.rows(
            "hours",
            id=workflow,
            tenant=authenticated().caller,
            since=services.now() - MEASURED_MS,
        )
        measured = {
            name: Work(atoms, made, processor_us, mebibyte_ms)
            for name, atoms, made, _, _, processor_us, mebibyte_ms in rows
        }
        prices = services.settings.usage
        found = estimate(checked.read, checked.memory_mib(), measured, prices)
        return answer({"estimate": found}, 200, headers or {})

    def _subscription(
        before: StoredWorkflow, checked: CheckedWorkflow, workflow: str
    ) -> str | None:
        """Return what brings the atoms from now on: the same, as long as the source is."""
        source = parse_workflow(orjson.loads(before.content)).source
        if source == checked.read.source:
            return before.subscription
        if before.subscription is not None:
            tenant = authenticated().caller
            subscriptions.rows("unsubscribe", tenant=tenant, id=before.subscription)
        return checked.subscribe(workflow)

    def _look(workflow: str, version: int, before: Workflow | None, read: Workflow) -> None:
        """Let the store of its files be looked at from now on, by this version alone."""
        values = {"id": workflow, "tenant": authenticated().caller}
        if before is not None and before.files is not None:
            stored.rows("hold_looks", id=workflow)
            stored.rows("look_no_more", **values, step=LOOK)
            if read.files is None or _place(before.files) != _place(read.files):
                stored.rows("forget_files", **values)
        if read.files is not None:
            stored.rows("look", **values, version=version, step=LOOK, now=services.now())

    def _told(workflow: str, own: StoredWorkflow) -> Response:
        body: dict[str, Any] = {
            "id": workflow,
            "version": own.version,
            "active": own.version == own.current,
            "createdAt": own.created_at,
            "updatedAt": own.updated_at,
            "document": orjson.loads(own.content),
        }
        return answer(body, 200, {"ETag": etag_of(own.current)})

    return routes


def _is_dry() -> bool:
    """Whether the document is looked at, and nothing is made of it."""
    return choice("dry-run", ("false", "true")) == "true"


def _place(files: Files) -> tuple[str, str]:
    """Return what makes files others: none of theirs has come yet."""
    return files.store, files.prefix
