"""What a request asks of a template: that Service Objects are made, or follow another version.

Both are jobs, which are ordered here and done later (`api/fleets/jobs.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson
from flask import request

from api.http.authentication import authenticated
from api.resources.jobs import MAX_WAITING, forget_finished
from api.resources.parameter_sets import Sets
from api.resources.service_objects import new_id
from api.services import Services
from servioticy.domain.documents.parameters import complete
from servioticy.domain.documents.templates import parse_template
from servioticy.domain.quotas import DOCUMENT_BYTES
from servioticy.refusals import Conflict, NotFound, Outdated, TooMany, within

MAX_VERSIONS = 1_000
ATTEMPTS = 3
LARGEST = 2**31 - 1


class StoredTemplate(NamedTuple):
    """A version of a template, as the statement `content` tells it."""

    version: int
    content: str
    """JSON of its parameters and its document."""
    current: int
    """The version in force."""
    updated_at: int


class Made(NamedTuple):
    """A job that makes Service Objects, and which."""

    job: str
    ids: Sequence[str]


class RollOut(NamedTuple):
    """A job that brings Service Objects to a version, and which version."""

    job: str
    version: int


class TemplateJobs:
    """Orders jobs for the tenant of the present request."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._stored = services.ports.statements("templates")
        self._jobs = services.ports.statements("jobs")

    def found(self, template: str, version: int | None = None) -> StoredTemplate:
        """Return that version, or the one in force. Raises NotFound."""
        row = None
        if version is None or version <= LARGEST:
            values = {"id": template, "tenant": authenticated().caller, "version": version}
            row = self._stored.row("content", **values)
        if row is None:
            raise NotFound("The template was not found.")
        return StoredTemplate(*row)

    def make(self, template: str, sets: Sets) -> Made:
        """Let Service Objects be made with these values. Raises BadDocument, TooMany."""
        tenant = authenticated().caller
        forget_finished(self._jobs, tenant)
        for _ in range(ATTEMPTS):
            found = self.found(template)
            parsed = parse_template(orjson.loads(found.content))
            for part, each in sets:
                complete(parsed.parameters, each, part)
            streams = len(sets) * _streams(parsed.document)
            now = self._services.now()
            made = Made(new_id(now), [new_id(now) for _ in sets])
            values = {
                "job": made.job,
                "template": template,
                "tenant": tenant,
                "version": found.version,
                "ids": made.ids,
                "parameters": [orjson.dumps(each).decode() for _, each in sets],
                "now": now,
                "most": MAX_WAITING,
            }
            more = {"documents": len(sets), "streams": streams}
            with self._services.quotas.held(tenant):  # however far the border: these are many
                within(self._services.quotas.too_many(tenant, **more))
                row = self._jobs.row("make_objects", **values)
            if row is not None:
                return made
        raise TooMany(f"{MAX_WAITING} jobs are not finished: wait for some of them")

    def roll_out(self, template: str, version: int | None, content: str | None) -> RollOut:
        """Put a version in force, a new one if there is content, and let the objects follow.

        Raises Conflict, and Outdated where `If-Match` names another version than is there.
        """
        tenant, now = authenticated().caller, self._services.now()
        current, wanted = self.found(template).current, request.headers.get("If-Match")
        if wanted and wanted.strip() != "*" and etag_of(current) not in wanted.split(","):
            reason = f"The template has changed: version {current} is there"
            raise Outdated(reason, etag_of(current))
        wanted_content = content or self.found(template, version).content
        forget_finished(self._jobs, tenant)
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
        with self._services.quotas.held(tenant):
            self._check_streams(template, wanted_content)
            if version is None:
                more = {DOCUMENT_BYTES: len(wanted_content)}
                within(self._services.quotas.too_many(authenticated().caller, **more))
            row = self._stored.row("replace", **values)
        if row is None:
            raise Conflict(f"It has just changed, or has had {MAX_VERSIONS} versions")
        return RollOut(job, self.found(template).current if version is None else version)

    def _check_streams(self, template: str, content: str) -> None:
        """Raises OverQuota where the objects would have more streams than their tenant may.

        Whoever asks has the tenant held.
        """
        tenant = authenticated().caller
        each = _streams(orjson.loads(content)["document"])
        had = self._stored.rows("streams_of_objects", id=template, tenant=tenant)
        more = sum(objects * max(0, each - streams) for objects, streams in had)
        within(self._services.quotas.too_many(tenant, streams=more))


def etag_of(version: int) -> str:
    """Return what `ETag` calls the version in force, and `If-Match`."""
    return f'"{version}"'


def _streams(document: dict[str, Any]) -> int:
    """Return how many streams a Service Object has that is made from it."""
    streams = document.get("streams")
    return len(streams) if isinstance(streams, dict) else 0
