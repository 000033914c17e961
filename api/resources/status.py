"""Why did nothing come out? How the computations of a composite stream ended."""

from __future__ import annotations

from typing import Any

import orjson
from flask import Blueprint, Response

from api.http import authentication
from api.http.answers import answer
from api.http.authentication import needs
from api.services import Services
from servioticy.domain.access import Right
from servioticy.domain.verdicts import REVOKED, STALE, SUSPENDED


def blueprint(services: Services) -> Blueprint:
    """`/{service_object}/streams/{stream}/status`."""
    routes = Blueprint("status", __name__)

    @routes.get("/<service_object>/streams/<stream>/status")
    @needs(Right.INSPECT)
    def status(**_names: str) -> Response:
        address, stream = authentication.stream()
        headers = services.reads.wait(address)
        verdicts = [
            {"verdict": verdict, "count": count, "last": orjson.loads(last)}
            for verdict, count, last in services.ports.history.verdicts(stream)
        ]
        content = {
            "state": _state(verdicts, address.version),
            "cpu-seconds": services.ports.history.processor_us(stream) / 1e6,
            "verdicts": verdicts,
        }
        return answer(content, 200, headers)

    return routes


def _state(verdicts: list[dict[str, Any]], version: int) -> str:
    """Return "active", or "suspended" where the stream's code is not run now.

    It is suspended if its newest computation ended so. Three kinds of verdicts say nothing about
    that: `stale` and `revoked` ones, for which no code was to run, and those of other versions.
    """
    met = [
        each
        for each in verdicts
        if each["verdict"] not in (STALE, REVOKED) and each["last"]["version"] == version
    ]
    newest = max(met, key=lambda each: each["last"]["timestamp"], default=None)
    return "suspended" if newest and newest["verdict"] == SUSPENDED else "active"
