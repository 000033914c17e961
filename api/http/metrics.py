"""What the API counts: answers by route and status, and how long they took."""

from __future__ import annotations

from functools import cache

from flask import request

from servioticy.metrics import Registry
from servioticy.metrics.names import HTTP_REQUESTS, HTTP_SECONDS

ROUTE = "servioticy.route"
"""In a request's environment: the template of its route, which names nobody's objects."""

UNKNOWN_ROUTE = "unknown"
"""No route has this address."""
NO_ROUTE = "none"
"""Nobody has looked for one: the request was refused before."""

METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "DELETE", "PATCH"})
OTHER_METHOD = "other"


def note_route() -> None:
    """Write down the route of the present request. For Flask, before each request."""
    if request.url_rule is not None:
        request.environ[ROUTE] = request.url_rule.rule


class HttpMetrics:
    """The metrics of the answers of one process."""

    def __init__(self, registry: Registry) -> None:
        self._requests = cache(registry.counter(HTTP_REQUESTS).labels)
        self._seconds = cache(registry.histogram(HTTP_SECONDS).labels)

    def answered(self, method: str, route: str, status: str, seconds: float | None) -> None:
        """Count an answer; `seconds`: from the whole request on, None where it never was."""
        if method not in METHODS:
            method = OTHER_METHOD
        self._requests(method, route, status).inc()
        if seconds is not None:
            self._seconds(method, route).observe(seconds)
