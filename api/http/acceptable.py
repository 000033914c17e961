"""Reads are answered in a form that the client takes, or not at all (406)."""

from __future__ import annotations

from flask import Flask, Response, request

from api.http.content_types import NotAcceptable
from api.http.errors import told


def check_accept(app: Flask) -> None:
    """Refuse to answer reads in another form than `Accept` names.

    Only reads: a change that has been made is not to be told as one that has not.
    """

    @app.after_request
    def acceptable(response: Response) -> Response:
        accepted = request.accept_mimetypes
        # Who names a format has chosen, whatever a library puts into `Accept`.
        is_open = request.method in ("GET", "HEAD") and "format" not in request.args
        is_read = is_open and response.status_code == 200
        if not is_read or not accepted or accepted.quality(response.mimetype or ""):
            return response
        response.close()
        return told(NotAcceptable(f"The answer is {response.mimetype}, which Accept excludes"))
