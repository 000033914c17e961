"""Requests are counted by the templates of their routes."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Flask

from api.http.metrics import ROUTE, note_route

STREAM = "/<service_object>/streams/<stream>"


@pytest.mark.parametrize(
    ("method", "path", "route"),
    [
        ("PUT", "/so/streams/s", STREAM),
        ("PUT", "/so/streams/s?token=x", STREAM),
        ("PUT", "/refused/streams/s", STREAM),
        ("GET", "/so/nothing/here", None),
        ("BREW", "/so/streams/s", None),
    ],
)
def test_a_request_has_the_template_of_its_route(method: str, path: str, route: Any) -> None:
    """Whoever asks, and whatever comes of it."""
    app = Flask("tests")
    app.before_request(note_route)

    @app.put(STREAM)
    def put(service_object: str, stream: str) -> tuple[str, int]:
        return "", 403 if service_object == "refused" else 202

    seen: list[Any] = []
    inner = app.wsgi_app

    def outer(environ: Any, start_response: Any) -> Any:
        answer = inner(environ, start_response)
        seen.append(environ.get(ROUTE))
        return answer

    app.wsgi_app = outer  # type: ignore[method-assign]
    app.test_client().open(path, method=method)

    assert seen == [route]
