"""How long the present request may wait for what nobody else wants of the processor."""

from __future__ import annotations

from flask import has_request_context, request

IS_LARGE = "servioticy.is_large"
"""Whether the request has one of the threads that are there for what takes long."""

SECONDS = 1.0
"""Of all that holds what others wait for as well: a thread of small changes, or of claims, or the
turn of a job."""
OF_LARGE_SECONDS = 10.0


def patience() -> float:
    """Return the seconds."""
    is_large = has_request_context() and request.environ.get(IS_LARGE, False)
    return OF_LARGE_SECONDS if is_large else SECONDS
