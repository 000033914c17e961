"""The state of the platform, for the tenant that operates it."""

from __future__ import annotations

from flask import Flask, g, render_template

from servioticy.domain.console import ROOT


def add(app: Flask) -> None:
    """`/console/platform`."""

    @app.get(f"{ROOT}/platform")
    def platform_page() -> str:
        return render_template("platform.html", told=g.signed.api.get("platform"))
