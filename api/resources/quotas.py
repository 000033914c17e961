"""What a tenant may have, and how much of it is used."""

from __future__ import annotations

from flask import Blueprint, Response

from api.http.answers import answer
from api.http.authentication import authenticated, needs
from api.services import Services
from servioticy.domain.access import Right


def blueprint(services: Services) -> Blueprint:
    """`/quotas`."""
    routes = Blueprint("quotas", __name__)

    @routes.get("/quotas")
    @needs(Right.LIST)
    def quotas() -> Response:
        """Tell each quota with what is used of it, as far as this program knows that."""
        rows = []
        for quota, used, exceeded in services.quotas.of(authenticated().caller):
            row = {"name": quota.name, "limit": quota.most, "unit": quota.unit, "used": used}
            row["window"] = quota.window
            row["retryAfter"] = exceeded and exceeded.retry_after
            rows.append({name: value for name, value in row.items() if value is not None})
        return answer({"quotas": rows})

    return routes
