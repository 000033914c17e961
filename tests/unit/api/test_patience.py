"""How long a request waits for what nobody else wants: as it holds what others wait for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from flask import Flask

from api.edge.calls import Application, Request
from api.http.patience import OF_LARGE_SECONDS, SECONDS, patience
from ingest.updates import LARGE_BYTES
from servioticy.http_heads import Head


def patience_of(method: str, path: str, size: int) -> float:
    """What it is while the application works on such a request."""
    found: list[float] = []
    flask = Flask("api")

    def app(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        with flask.request_context(environ):
            found.append(patience())
        start("204 No Content", [])
        return []

    head = Head(method, path, "", {}, 0, chunked=False, keeps_alive=True, http_1_0=False)
    Application(app, "localhost", 80).call(Request(head, b"x" * size, "::1"))
    return found[0]


@pytest.mark.parametrize(
    ("method", "path", "size", "seconds"),
    [
        ("POST", "/", LARGE_BYTES, OF_LARGE_SECONDS),
        ("PUT", "/so", LARGE_BYTES, OF_LARGE_SECONDS),
        ("POST", "/", LARGE_BYTES - 1, SECONDS),
        ("POST", "/claims", LARGE_BYTES, SECONDS),
        ("POST", "/so/try", LARGE_BYTES, SECONDS),
    ],
)
def test_only_those_that_have_threads_for_it_wait_for_long(
    method: str, path: str, size: int, seconds: float
) -> None:
    """Two tenants would hold those of all small changes, and two claims those of all claims."""
    assert patience_of(method, path, size) == seconds


def test_a_job_waits_as_little() -> None:
    """It has the turn in which everybody's jobs are worked off."""
    assert patience() == SECONDS
