"""Devices made from templates: the API makes them by a job, which is over in a moment."""

from __future__ import annotations

import time
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, NamedTuple

from api.console.asking import Api, ApiRefused
from api.console.starters import STARTER, STARTERS, Starter

SECONDS = 10.0
PAUSE_SECONDS = 0.05
SHOWN = 50
"""Templates that a page offers."""


class Choice(NamedTuple):
    """A template to make a device of: one of the tenant's, or a starter that is none yet."""

    id: str
    title: str
    about: str
    parameters: dict[str, Any]


def choices(api: Api) -> list[Choice]:
    """Return what devices can be made of. Raises ApiRefused."""
    found, used = [], set()
    for each in api.get("templates", limit=SHOWN)["data"]:
        template = api.get("templates", each["id"])
        document = template["document"]
        used.add(_starter_of(document))
        title = document.get("description") or document.get("name") or each["id"]
        streams = ", ".join(document.get("streams") or {})
        found.append(Choice(each["id"], str(title), f"streams: {streams}", template["parameters"]))
    rest = [each for each in STARTERS if each.id not in used]
    return [
        *found,
        *(Choice(each.id, each.title, each.about, each.template["parameters"]) for each in rest),
    ]


def template_of(api: Api, starter: Starter) -> str:
    """Return the tenant's template for a starter, which is made the first time."""
    for each in api.get("templates", limit=SHOWN)["data"]:
        if _starter_of(api.get("templates", each["id"])["document"]) == starter.id:
            return str(each["id"])
    return str(api.post("templates", body=starter.template)["id"])


def make_device(api: Api, template: str, values: Mapping[str, Any]) -> str:
    """Make a device and return its id, when it is there. Raises ApiRefused."""
    made = api.post("templates", template, "objects", body=dict(values))
    (id_,) = made["ids"]
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        job = api.get("jobs", made["job"])
        if job["failed"]:
            why = job["failures"][0]
            said = str(why.get("reason") or why.get("message") or why)
            raise ApiRefused(HTTPStatus.BAD_REQUEST, said, is_known=True)
        if job["state"] == "done":
            return str(id_)
        time.sleep(PAUSE_SECONDS)
    raise ApiRefused(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "The device is still being made: it will be among your devices in a moment.",
        is_known=True,
    )


def values_of(parameters: Mapping[str, Any], form: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of a template's parameters that a form carries; the API checks them."""
    found: dict[str, Any] = {}
    for name, parameter in parameters.items():
        text = form.get(f"parameter.{name}", "").strip()
        if text:
            found[name] = value_of(parameter.get("type", "string"), text)
    return found


def value_of(kind: Any, text: str) -> Any:
    """Return a text as a value of this type; where it is none, as the text, for the API to say."""
    if kind == "boolean":
        return {"true": True, "false": False}.get(text.lower(), text)
    if kind in ("number", "integer"):
        for read in (int, float):
            try:
                return read(text)
            except ValueError:
                continue
    if kind == "array":
        return [part.strip() for part in text.split(",")]
    return text


def _starter_of(document: Mapping[str, Any]) -> str:
    fields = document.get("customFields")
    return str(fields.get(STARTER, "")) if isinstance(fields, dict) else ""
