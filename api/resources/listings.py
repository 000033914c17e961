"""Listing and searching Service Objects, page by page."""

from __future__ import annotations

import math
import re
from typing import Any

from flask import Blueprint, Response, request

from api.http.answers import answer
from api.http.authentication import authenticated, needs
from api.http.cursors import next_page, position
from api.http.queries import choice, integer
from api.services import Services
from servioticy.domain.access import Right
from servioticy.refusals import Refused

MAX_LIMIT = 1_000
LIMIT = 100
MAX_CONDITIONS = 20
MAX_TEXT = 200
"""Characters of a name or of what a field is to be; fields that are longer are not searched."""
FIELD = "customFields."
HALF_EARTH_KILOMETRES = 20_040.0
_NUMBER = re.compile(r"-?[0-9]{1,9}(?:\.[0-9]{1,15})?")


def blueprint(services: Services) -> Blueprint:
    """`GET /service-objects`."""
    routes = Blueprint("listings", __name__)
    stored = services.ports.statements("listings")

    @routes.get("/service-objects")
    @needs(Right.LIST)
    def listed() -> Response:
        caller, limit = authenticated().caller, integer("limit", LIMIT, 1, MAX_LIMIT)
        others = choice("public", ("false", "true")) == "true"
        about = f"service-objects {caller}"
        conditions = {
            "name": _text("name"),
            "stream": _text("stream"),
            "stream_name": _text("streamName"),
            "fields": _fields(),
            "channel_types": [each.lower() for each in _texts("channelType")],
            **_near(),
        }
        after = position(about) or ""
        rows = stored.rows(
            "search", tenant=caller, others=others, after=after, limit=limit, **conditions
        )
        headers = next_page(services.base, about, rows[-1][0]) if len(rows) == limit else {}
        names = ("id", "name", "public", "createdAt", "updatedAt", "own")
        found = [dict(zip(names, each, strict=True)) for each in rows]
        return answer({"data": found}, 200, headers)

    return routes


def _text(name: str) -> str | None:
    return next(iter(_texts(name)), None)


def _texts(name: str) -> list[str]:
    """Return what the parameter is to be, all of it. Raises Refused."""
    found = request.args.getlist(name)
    if len(found) > MAX_CONDITIONS or any(len(each) > MAX_TEXT for each in found):
        raise Refused(
            f"{name[:MAX_TEXT]} may come {MAX_CONDITIONS} times, with {MAX_TEXT} characters each"
        )
    if any("\0" in each for each in found):
        raise Refused(f"{name[:MAX_TEXT]} has a NUL in it")
    return found


def _fields() -> list[str]:
    """Return the customFields that are asked for, as the store writes them."""
    names = [name for name in request.args if name.startswith(FIELD)]
    if len(names) > MAX_CONDITIONS or any("\0" in name for name in names):
        raise Refused(f"Ask for {MAX_CONDITIONS} customFields at most, with names without a NUL")
    return [f"{name.removeprefix(FIELD)}={each}" for name in names for each in _texts(name)]


def _near() -> dict[str, Any]:
    """Return place and distance that are asked for. Raises Refused."""
    text = request.args.get("near")
    if text is None:
        return dict.fromkeys(("latitude", "longitude", "kilometres"))
    parts = [each.strip() for each in text[:MAX_TEXT].split(",")]
    numbers = [float(each) if _NUMBER.fullmatch(each) else math.nan for each in parts]
    if len(numbers) != 3 or not (
        -90 <= numbers[0] <= 90
        and -180 <= numbers[1] <= 180
        and 0 <= numbers[2] <= HALF_EARTH_KILOMETRES
    ):
        raise Refused("near has to be latitude,longitude,kilometres")
    return dict(zip(("latitude", "longitude", "kilometres"), numbers, strict=True))
