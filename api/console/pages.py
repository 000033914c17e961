"""The pages, as one Flask application: who asks is found out before any of them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from flask import Flask, Response, current_app, g, redirect, render_template, request
from werkzeug.exceptions import HTTPException

from api.console import (
    access,
    aspects,
    by_issuer,
    checking,
    deliveries,
    device,
    devices,
    editor,
    first_visit,
    jobs,
    operators,
    platform,
    sign_in,
    streams,
    topology,
    trace,
    usage,
    windows,
    workflow_editor,
    workflows,
)
from api.console.asking import ApiRefused
from api.console.assets import Assets, serve_assets
from api.console.connecting import About
from api.console.guarding import FIELD, SAFE, Guard, security_headers
from api.console.showing import add_filters
from servioticy.domain.console import ROOT, is_below
from servioticy.errors import Unavailable

if TYPE_CHECKING:
    from werkzeug.wrappers import Response as BaseResponse

OPEN = frozenset(
    {"asset", "begin_sign_in", "do_sign_in", "finish_sign_in", "session", "sign_in", "static"}
)
"""Pages for who has not signed in."""
MAX_FORM_BYTES = 262_144

log = logging.getLogger("api.console")


def pages(guard: Guard, signing: sign_in.Signing, assets: Assets, about: About) -> Flask:
    """Return the application of all pages."""
    app = Flask("api.console", static_folder=None, template_folder="templates")
    app.config["MAX_CONTENT_LENGTH"] = MAX_FORM_BYTES
    app.url_map.strict_slashes = False
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True
    base = guard.place.base
    add_filters(app, base)
    app.jinja_env.globals.update(
        base=base,
        root=f"{base}{ROOT}",
        url=guard.place.url,
        asset=lambda name: base + assets.address(name),
        field=FIELD,
        sockets=" ".join(guard.place.sockets),
        csrf=lambda: g.signed.csrf if g.get("signed") else "",
        is_signed=lambda: g.get("signed") is not None,
    )
    _guarded(app, guard)
    _told(app)
    serve_assets(app, assets)
    by_issuer.add(app, sign_in.add(app, signing, guard))
    first_visit.add(app, about)
    devices.add(app, about)
    device.add(app, about)
    editor.add(app)
    checking.add(app)
    streams.add(app)
    topology.add(app)
    windows.add(app)
    trace.add(app)
    deliveries.add(app, base)
    usage.add(app)
    jobs.add(app, base)
    operators.add(app, base)
    workflow_editor.add(app, base)
    workflows.add(app, base)
    aspects.add(app, base)
    platform.add(app, base)
    access.add(app, base)
    return app


def _guarded(app: Flask, guard: Guard) -> None:
    headers = security_headers(guard.place)

    @app.before_request
    def who() -> BaseResponse | tuple[str, int] | None:
        if request.method not in SAFE and not guard.is_ours(request.environ):
            return _told_as("This did not come from a page of the console.", 403)
        g.signed = guard.signed(request.environ)
        if request.endpoint in OPEN or request.endpoint is None:
            return None
        if g.signed is None:
            return redirect(sign_in.address(guard.place.base, request.path), 303)
        if request.method not in SAFE and not g.signed.has_asked(request.form.get(FIELD, "")):
            return _told_as("This page is too old: load it again, and repeat what you did.", 403)
        return None

    @app.after_request
    def protect(response: Response) -> Response:
        for name, value in headers.items():
            if name != "Cache-Control" or name not in response.headers:
                response.headers[name] = value
        return response


def _told(app: Flask) -> None:
    @app.errorhandler(ApiRefused)
    def refused(error: ApiRefused) -> Any:
        if not error.is_known and error.status == 403:
            return sign_in.signed_out("Your token is not good any more: sign in with another one.")
        return _told_as(error.message, error.status)

    @app.errorhandler(HTTPException)
    def http(error: HTTPException) -> tuple[str, int]:
        code = error.code or 500
        return _told_as("There is no such page." if code == 404 else str(error.description), code)

    @app.errorhandler(Unavailable)
    def away(error: Unavailable) -> tuple[str, int]:
        log.warning("unavailable", extra={"reason": str(error)})
        return _told_as("The platform does not answer just now. Try again in a moment.", 503)

    @app.errorhandler(Exception)
    def failed(error: Exception) -> tuple[str, int]:
        log.error("page_failed", exc_info=error)
        return _told_as("Something of ours has failed. Try again in a moment.", 500)


def _told_as(message: str, status: int) -> tuple[str, int]:
    page = render_template("refused.html", message=message, status=status, back=_back())
    return page, status


def _back() -> str:
    """Return the page of ours from which something was asked; or empty."""
    came = urlsplit(request.referrer or "")
    path = came.path.removeprefix(str(current_app.jinja_env.globals["base"]))
    is_same = request.method in SAFE and path == request.path
    if is_same or not is_below(path):
        return ""
    return f"{came.path}?{came.query}" if came.query else came.path
