"""Why did nothing come out? How the computations of a composite stream ended."""

from __future__ import annotations

from typing import Any

import orjson
from flask import Blueprint, Response

from api import authentication
from api.answers import answer
from api.services import Services
from servioticy.domain.verdicts import STALE, SUSPENDED


def blueprint(services: Services) -> Blueprint:
    """`/{service_object}/streams/{stream}/status`."""
    routes = Blueprint("status", __name__)

    @routes.get("/<service_object>/streams/<stream>/status")
    def status(**_names: str) -> Response:
        address, stream_id = authentication.stream()
        headers = services.reads.wait(address)
        verdicts = [
            {"verdict": verdict, "count": count, "last": orjson.loads(last)}
            for verdict, count, last in services.history.verdicts(stream_id)
        ]
        content = {
            "state": _state(verdicts, address.version),
            "cpu-seconds": services.history.processor_us(stream_id) / 1e6,
            "verdicts": verdicts,
        }
        return answer(content, 200, headers)

    return routes


def _state(verdicts: list[dict[str, Any]], version: int) -> str:
    """ "suspended" if the newest trigger met a suspension; a stale one met nothing, and
    what an earlier version met says nothing about this one."""
    met = [
        each
        for each in verdicts
        if each["verdict"] != STALE and each["last"]["version"] == version
    ]
    newest = max(met, key=lambda each: each["last"]["timestamp"], default=None)
    return "suspended" if newest and newest["verdict"] == SUSPENDED else "active"
