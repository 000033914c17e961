"""Filling a composite stream, and what is derived from it, with what history makes of it."""

from __future__ import annotations

from flask import Blueprint, Response

from api.backfills.planning import Planning, Wanted
from api.http import authentication
from api.http.answers import answer
from api.http.authentication import needs
from api.http.bodies import json_object
from api.resources.jobs import forget_finished
from api.resources.service_objects import new_id
from api.services import Services
from servioticy.dates import NoDate, moment_in_address
from servioticy.domain.access import Right
from servioticy.domain.documents import BadDocument
from servioticy.domain.documents.codes import REQUIRED, WRONG_TYPE
from servioticy.domain.documents.updates import MAX_TIMESTAMP
from servioticy.domain.model import Timestamp
from servioticy.domain.quotas import PROCESSOR_SECONDS, STORED_BYTES
from servioticy.refusals import TooMany, within

MOST = 3
"""Backfills of a tenant that are not finished; they are computed one after the other."""
NAMES = ("from", "to")


def blueprint(services: Services) -> Blueprint:
    """`POST /{service_object}/streams/{stream}/backfill`."""
    routes = Blueprint("backfills", __name__)
    stored = services.ports.statements("backfills")
    jobs = services.ports.statements("jobs")
    planning = Planning(services)

    @routes.post("/<service_object>/streams/<stream>/backfill")
    @needs(Right.CHANGE)
    def backfill(stream: str, **_names: str) -> Response:
        """Order a job, which a process beside computes."""
        since, until = _span(json_object())
        key = authentication.service_object()
        wanted = Wanted(key.tenant, key.id, stream, since, until)
        authentication.stream()
        concerned, _in_force = planning.concerned(wanted)
        planning.outside(key.tenant, concerned)
        for name in (STORED_BYTES, PROCESSOR_SECONDS):
            within(services.quotas.metered(key.tenant, name))
        forget_finished(jobs, key.tenant)
        now = services.now()
        row = stored.row("order", job=new_id(now), now=now, most=MOST, **wanted._asdict())
        if row is None:
            raise TooMany(f"{MOST} backfills are not finished: wait for one of them, or cancel it")
        return answer({"job": row[0]}, 202, {"Location": f"{services.base}/jobs/{row[0]}"})

    return routes


def _span(body: dict[str, object]) -> tuple[Timestamp, Timestamp]:
    """Return `from` and the first timestamp behind it, `to`. Raises BadDocument."""
    for name in body:
        if name not in NAMES:
            raise BadDocument(f"{name}: a backfill has no such field", f"/{name}", WRONG_TYPE)
    since, until = (_moment(body, name) for name in NAMES)
    if since >= until:
        raise BadDocument("to has to be later than from", "/to", WRONG_TYPE)
    return since, until


def _moment(body: dict[str, object], name: str) -> Timestamp:
    if name not in body:
        raise BadDocument(f"{name} is missing", "", REQUIRED)
    given = body[name]
    if isinstance(given, int) and not isinstance(given, bool) and 0 <= given <= MAX_TIMESTAMP:
        return given
    try:
        if isinstance(given, str):
            return moment_in_address(given, 0, MAX_TIMESTAMP)
    except NoDate as error:
        raise BadDocument(f"{name} {error}", f"/{name}", WRONG_TYPE) from None
    reason = f"{name} has to be a timestamp, a whole number, or a date"
    raise BadDocument(reason, f"/{name}", WRONG_TYPE)
