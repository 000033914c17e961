"""What the API is, for programs and as a page: without a token, as it is the same for all."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any
from urllib.parse import urlsplit

import orjson
from flask import Blueprint, Response

from api.http.answers import stored
from api.http.authentication import open_to_everybody
from api.services import Services
from schemas import contracts
from servioticy.embedded import javascript
from servioticy.refusals import NotFound

TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
OURS = ("page.js",)
THEIRS = javascript.PAGE_FILES
SECURITY = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
}
"""The page loads from us alone, and runs nothing that stands in what it shows."""
CACHED = {"Cache-Control": "public, max-age=3600"}


def blueprint(services: Services) -> Blueprint:
    """`/openapi.json` and its like, `/docs` and the files of that page."""
    routes = Blueprint("descriptions", __name__)
    folder = javascript.folder(services.settings)
    base = urlsplit(services.base).path

    @routes.get("/openapi.json")
    @open_to_everybody
    def openapi() -> Response:
        return stored(_written(contracts.openapi, base), headers=CACHED)

    @routes.get("/openapi-delivery.json")
    @open_to_everybody
    def delivery() -> Response:
        return stored(_written(contracts.delivery, ""), headers=CACHED)

    @routes.get("/openapi-console.json")
    @open_to_everybody
    def console() -> Response:
        return stored(_written(contracts.console, base), headers=CACHED)

    @routes.get("/asyncapi.json")
    @open_to_everybody
    def asyncapi() -> Response:
        return stored(_written(contracts.asyncapi, ""), headers=CACHED)

    @routes.get("/docs")
    @open_to_everybody
    def docs() -> Response:
        page = Template(_our_file("page.html").decode()).substitute(base=base)
        return Response(page, headers=SECURITY, content_type="text/html; charset=utf-8")

    @routes.get("/docs/<asset>")
    @open_to_everybody
    def file(asset: str) -> Response:
        content = _file(asset, folder)
        return Response(content, headers=CACHED, content_type=TYPES[Path(asset).suffix])

    return routes


@cache
def _written(contract: Callable[[], dict[str, Any]], base: str) -> bytes:
    """Return a contract as JSON; below a path of a proxy, its addresses begin with that."""
    document = contract()
    if base:
        document = document | {"servers": [{"url": base}]}
    return orjson.dumps(document)


def _file(name: str, folder: Path) -> bytes:
    """Return a file of the page, ours or a downloaded one. Raises NotFound."""
    if name in OURS:
        return _our_file(name)
    if name not in THEIRS:
        raise NotFound("The page has no such file.")
    try:
        return (folder / name).read_bytes()
    except FileNotFoundError as error:
        raise NotFound("This file was not downloaded: `make setup` does that.") from error


@cache
def _our_file(name: str) -> bytes:
    return files("api").joinpath("docs", name).read_bytes()
