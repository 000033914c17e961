"""Workflows as `servioticy apply` sees them: read by their names, created, and changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from servioticy.client import Answered, Rest, ServiceObject
from servioticy.client.answers import Answer

PATH = "/workflows"
MOST = 1_000
"""Of one list: a tenant may have fewer."""


def named(api: Rest) -> dict[str, list[ServiceObject]]:
    """Return the tenant's workflows by their names, as documents with what `If-Match` takes."""
    found: dict[str, list[ServiceObject]] = {}
    for each in _asked(api, "GET", f"{PATH}?limit={MOST}").json()["data"]:
        read = _asked(api, "GET", f"{PATH}/{quote(each['id'], safe='')}")
        own = ServiceObject(each["id"], read.json()["document"], read.headers["etag"])
        found.setdefault(own.document.get("name", ""), []).append(own)
    return found


def create(api: Rest, document: Mapping[str, Any]) -> str:
    """Make it and return its id."""
    return str(_asked(api, "POST", PATH, document).json()["id"])


def change(api: Rest, found: ServiceObject, document: Mapping[str, Any]) -> None:
    """Make it a new version, unless it was changed since it was read."""
    path = f"{PATH}/{quote(found.id, safe='')}"
    _asked(api, "PUT", path, document, {"If-Match": found.etag})


def _asked(
    api: Rest,
    method: str,
    path: str,
    document: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    answer = api.request(method, path, document, headers)
    if answer.status >= 400:
        raise Answered.of(answer)
    return answer
