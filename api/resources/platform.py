"""The state of the whole platform, for the tenant that operates it."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Response

from api.http.answers import answer
from api.http.authentication import authenticated, needs
from api.http.queries import choice, integer
from api.platform import applications, weaving
from api.platform.balancing import Balancing
from api.platform.slowest import BY, Slowest
from api.platform.telling import Programs
from api.platform.traces import ID, Traces
from api.services import Services
from servioticy.domain.access import Right
from servioticy.domain.balance import MOST_MOVES, MOVES
from servioticy.rebalancing import Rebalancing
from servioticy.refusals import Denied, NotFound


def blueprint(services: Services) -> Blueprint:
    """`/platform`."""
    routes = Blueprint("platform", __name__)
    stored = services.ports.statements("platform")
    programs = Programs(services.settings)
    slowest = Slowest(stored, services.now)
    ports = services.ports
    rebalancing = Rebalancing(ports.loads, ports.changes, ports.log, services.now)
    balancing = Balancing(rebalancing)
    traces = Traces(services.settings)
    operator = services.settings.requests.operator_tenant

    @routes.get("/platform")
    @needs(Right.ADMIN)
    def platform() -> Response:
        """Tell of programs, partitions and who presses."""
        only_for_the_operator()
        told = programs.told()
        return answer({**told, "pressing": named(told["pressing"])})

    @routes.get("/platform/slowest")
    @needs(Right.ADMIN)
    def slow() -> Response:
        """Tell whose code takes most of the processor."""
        only_for_the_operator()
        return answer(slowest.told(choice("by", BY)))

    @routes.get("/platform/rebalance")
    @needs(Right.ADMIN)
    def balance() -> Response:
        """Tell how busy partitions are, and what would move."""
        only_for_the_operator()
        return answer(balancing.planned(moves()))

    @routes.post("/platform/rebalance")
    @needs(Right.ADMIN)
    def rebalance() -> Response:
        """Move it."""
        only_for_the_operator()
        return answer(balancing.moved(moves()))

    @routes.get("/platform/monitoring")
    @needs(Right.ADMIN)
    def woven() -> Response:
        """Tell what is woven into the programs of this machine."""
        only_for_the_operator()
        return answer(weaving.told(services.settings))

    @routes.get("/platform/applications")
    @needs(Right.ADMIN)
    def applications_listed() -> Response:
        """Tell of the applications that are not ours and run on this machine."""
        only_for_the_operator()
        return answer(applications.listed(services.settings))

    @routes.get("/platform/applications/<application>")
    @needs(Right.ADMIN)
    def read_application(application: str) -> Response:
        """Tell how one is, and how long its steps take."""
        only_for_the_operator()
        return answer(applications.told(services.settings, application))

    def moves() -> int:
        """Return how many there may be at once."""
        return integer("moves", MOVES, 1, MOST_MOVES)

    @routes.get("/platform/traces")
    @needs(Right.ADMIN)
    def traces_listed() -> Response:
        """Tell of which traces anything was measured last on this machine."""
        only_for_the_operator()
        return answer(traces.listed(authenticated().caller))

    @routes.get("/platform/traces/<trace>")
    @needs(Right.ADMIN)
    def read_measured_trace(trace: str) -> Response:
        """Tell all steps of one that were measured here."""
        only_for_the_operator()
        if not ID.fullmatch(trace):
            raise NotFound("A trace has 32 hexadecimal digits.")
        return answer(traces.told(authenticated().caller, trace))

    def only_for_the_operator() -> None:
        """Refuse all but admins of the tenant that is named."""
        row = stored.row("name", tenant=authenticated().caller)
        if not operator or row is None or row[0] != operator:
            raise Denied("This is for whoever operates the platform: the setting operator_tenant")

    def named(pressing: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return them with names in the place of numbers; who has gone meanwhile is left out."""
        ids = [each["tenant"] for each in pressing]
        names: dict[int, str] = dict(stored.rows("names", ids=ids)) if ids else {}
        return [
            {**each, "tenant": names[each["tenant"]]}
            for each in pressing
            if each["tenant"] in names
        ]

    return routes
