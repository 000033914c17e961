"""The state of the whole platform, for the tenant that operates it."""

from __future__ import annotations

from flask import Blueprint, Response

from api.http.answers import answer
from api.http.authentication import authenticated, needs
from api.platform.telling import Programs
from api.services import Services
from servioticy.domain.access import Right
from servioticy.refusals import Denied


def blueprint(services: Services) -> Blueprint:
    """`GET /platform`."""
    routes = Blueprint("platform", __name__)
    stored = services.ports.statements("platform")
    programs = Programs(services.settings)
    operator = services.settings.requests.operator_tenant

    @routes.get("/platform")
    @needs(Right.ADMIN)
    def platform() -> Response:
        """Tell of programs and partitions; to nobody but admins of the tenant that is named."""
        row = stored.row("name", tenant=authenticated().caller)
        if not operator or row is None or row[0] != operator:
            raise Denied("This is for whoever operates the platform: the setting operator_tenant")
        return answer(programs.told())

    return routes
