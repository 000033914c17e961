"""The state of the platform, for the tenant that operates it."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from flask import Flask, g, render_template, request

from api.console.asking import Api, ApiRefused
from servioticy.domain.console import ROOT

ORDERS = {"total": "By all they take", "each": "By what a computation takes"}


def add(app: Flask) -> None:
    """`/console/platform` and `/console/platform/monitoring`."""

    @app.get(f"{ROOT}/platform")
    def platform_page() -> str:
        api: Api = g.signed.api
        by = request.args.get("by", "")
        by = by if by in ORDERS else "total"
        return render_template(
            "platform.html",
            told=api.get("platform"),
            slowest=_slowest(api, by),
            orders=ORDERS,
            by=by,
        )

    @app.get(f"{ROOT}/platform/monitoring")
    def weaving_page() -> str:
        return render_template("weaving.html", told=g.signed.api.get("platform", "monitoring"))


def _slowest(api: Api, by: str) -> dict[str, Any] | None:
    """Return the streams whose code takes most; None where that took too long to look up."""
    try:
        found: dict[str, Any] = api.get("platform", "slowest", by=by)
    except ApiRefused as refused:
        if refused.status != HTTPStatus.SERVICE_UNAVAILABLE:
            raise
        return None
    return found
