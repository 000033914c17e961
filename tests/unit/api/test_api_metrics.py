"""Requests are counted by the templates of their routes."""

from __future__ import annotations

from typing import Any

import pytest

from api.app import create_app
from api.metrics import ROUTE, note_route
from sandbox import argument_names
from servioticy.memory import MemoryPlatform
from servioticy.settings import Settings


@pytest.mark.parametrize(
    ("method", "path", "route"),
    [
        ("GET", "/", "/"),
        ("PUT", "/so/streams/s", "/<service_object>/streams/<stream>"),
        ("PUT", "/so/streams/s/", "/<service_object>/streams/<stream>"),
        ("GET", "/private/health", "/private/health"),
        ("GET", "/so/nothing/here", None),
        ("BREW", "/so/streams/s", None),
    ],
)
def test_a_request_has_the_template_of_its_route(method: str, path: str, route: Any) -> None:
    """Whoever asks, and whatever comes of it."""
    app = create_app(MemoryPlatform(1), Settings(), argument_names=argument_names)
    app.before_request(note_route)
    seen: list[Any] = []
    inner = app.wsgi_app

    def outer(environ: Any, start_response: Any) -> Any:
        answer = inner(environ, start_response)
        seen.append(environ.get(ROUTE))
        return answer

    app.wsgi_app = outer  # type: ignore[method-assign]
    app.test_client().open(path, method=method)

    assert seen == [route]
