"""Why did nothing come out? How the computations of a composite stream ended."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

import orjson
from flask import Blueprint, Response

from api.documents import absent, from_outside
from api.documents.kept_by_programs import kept_by_program
from api.http import authentication
from api.http.answers import answer
from api.http.authentication import needs
from api.services import Services
from sandbox.suspension import reading
from servioticy.domain.access import Right
from servioticy.domain.evaluators import silence
from servioticy.domain.evaluators.windows.head import HEAD
from servioticy.domain.evaluators.windows.told import told
from servioticy.domain.model import StreamKey, Timestamp
from servioticy.domain.scripts import stream_of
from servioticy.domain.time_units import unlike
from servioticy.domain.verdicts import (
    ERROR,
    FILTERED,
    MISSING,
    REVOKED,
    SCRIPT_ERROR,
    STALE,
    SUSPENDED,
)
from servioticy.domain.windows.model import Silence
from servioticy.large_components import LargeComponents
from servioticy.ports.addresses import Address

FOR_NOTHING = frozenset({ERROR, FILTERED, MISSING, SCRIPT_ERROR})
"""How a computation ends that had to do without an input."""


def blueprint(services: Services) -> Blueprint:
    """`/{service_object}/streams/{stream}/status`."""
    routes = Blueprint("status", __name__)
    large = LargeComponents(services.ports.loads, services.now)

    @routes.get("/<service_object>/streams/<stream>/status")
    @needs(Right.INSPECT)
    def status(stream: str, **_names: str) -> Response:
        address, key = authentication.stream()
        headers = services.reads.wait(address)
        history = services.ports.history
        verdicts = [
            {"verdict": verdict, "count": count, "last": orjson.loads(last)}
            for verdict, count, last in history.verdicts(key)
        ]
        _explain_nothing(verdicts, address, stream, services)
        _explain_stale(verdicts, partial(history.newest, key), services.clock())
        suspended = _suspended(verdicts, address.version)
        content = {
            "state": "active" if suspended is None else "suspended",
            **({"suspended": suspended} if suspended else {}),
            "cpu-seconds": services.ports.history.processor_us(key) / 1e6,
            "verdicts": verdicts,
            **_windows(key, address, stream, services),
            **_program(key, address, stream, services),
            **from_outside.told(stream, address, services),
            **(large.told(address.key) if address.key else {}),
        }
        return answer(content, 200, headers)

    return routes


def _windows(key: StreamKey, address: Address, stream: str, services: Services) -> dict[str, Any]:
    """Return which windows of a stream are open, or who is silent, if its code reads that."""
    declared = services.definitions.stream(address, stream)
    composite = None if declared is None else declared.composite
    if composite is None or composite.window is None:
        return {}
    kept = services.ports.history.kept
    if isinstance(composite.window, Silence):
        value = kept(key, silence.HEAD)
        return {"silence": {"silent": 0, "streams": []} if value is None else silence.told(value)}
    value = kept(key, HEAD)
    if value is None:
        return {"windows": {"open": [], "updates": 0}}
    return {"windows": told(value, composite.window)}


def _program(key: StreamKey, address: Address, stream: str, services: Services) -> dict[str, Any]:
    """Return what waits for the program that computes a stream, and what it keeps, if one does."""
    told = kept_by_program(key, address, stream, services)
    return {} if told is None else {"operator": told}


def _explain_nothing(
    verdicts: list[dict[str, Any]], address: Address, stream: str, services: Services
) -> None:
    """Say of what came to nothing, by the version in force, which inputs had nothing, and why."""
    for each in verdicts:
        last = each["last"]
        inputs = last.get("inputs") or {}
        if each["verdict"] not in FOR_NOTHING or None not in inputs.values():
            continue
        declared = services.definitions.stream(address, stream)
        if declared is not None and last["version"] == address.version:
            hint = absent.told(inputs, declared, address.tenant, services)
            if hint:
                last["hint"] = hint


def _explain_stale(
    verdicts: list[dict[str, Any]], newest: Callable[[], Timestamp | None], now: float
) -> None:
    """Say of the last trigger that was stale if it is in another unit than the last output."""
    for last in (each["last"] for each in verdicts if each["verdict"] == STALE):
        output = newest()
        if output is not None and (hint := unlike(last["timestamp"], output, now)):
            last["hint"] = hint


def _suspended(verdicts: list[dict[str, Any]], version: int) -> dict[str, str] | None:
    """Return which stream's code is not run now, why and until when; None where it is.

    It is suspended if its newest computation ended so, and the time that was told then is not
    over. Three kinds of verdicts say nothing about that: `stale` and `revoked` ones, for which no
    code was to run, and those of other versions.
    """
    met = [
        each
        for each in verdicts
        if each["verdict"] not in (STALE, REVOKED) and each["last"]["version"] == version
    ]
    newest = max(met, key=lambda each: each["last"]["timestamp"], default=None)
    if newest is None or newest["verdict"] != SUSPENDED:
        return None
    told = reading(newest["last"].get("message", ""))
    if told is None:  # it was stored by an earlier release
        return {}
    if told.until <= datetime.now(UTC):
        return None
    stream = stream_of(told.program)
    return {
        "stream": f"{stream.service_object}/{stream.stream}",
        "why": told.why,
        "until": told.until.isoformat(),
    }
