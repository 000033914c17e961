"""The state of the platform, for the tenant that operates it."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from flask import Flask, g, redirect, render_template, request

from api.console.asking import Api, ApiRefused, path_of
from servioticy.domain.balance import MOST_MOVES
from servioticy.domain.console import ROOT
from servioticy.numbers import whole

ORDERS = {"total": "By all they take", "each": "By what a computation takes"}
HOLDER = "pipeline"
"""The program that has partitions."""


def add(app: Flask, base: str) -> None:
    """`/console/platform`, and what is below it."""

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

    @app.get(f"{ROOT}/platform/partitions")
    def partitions_page() -> str:
        told = g.signed.api.get("platform")
        holder = next((each for each in told["programs"] if each["name"] == HOLDER), None) or {}
        return render_template(
            "partitions.html",
            holder=holder,
            is_well=holder.get("ready", bool(holder) and "lack" not in holder),
            partitions=[_partition(each, told["pressing"]) for each in told["partitions"]],
            most=max((each["behind"] for each in told["partitions"]), default=0) or 1,
        )

    @app.get(f"{ROOT}/platform/rebalance")
    def balance_page() -> str:
        told = g.signed.api.get("platform", "rebalance")
        done = {
            each: number
            for each in ("moved", "waiting")
            if (number := whole(request.args.get(each, ""), 1, MOST_MOVES)) is not None
        }
        most = max((max(e["busy"], e["busyAfter"]) for e in told["partitions"]), default=0) or 1
        return render_template("rebalance.html", told=told, done=done, most=most)

    @app.post(f"{ROOT}/platform/rebalance")
    def rebalance() -> Any:
        told = g.signed.api.post("platform", "rebalance")
        moved, waiting = len(told["moved"]), len(told["waiting"])
        return redirect(
            f"{base}{ROOT}/platform/rebalance?moved={moved}&waiting={waiting}",
            HTTPStatus.SEE_OTHER,
        )

    @app.get(f"{ROOT}/platform/applications")
    def applications_page() -> str:
        found = g.signed.api.get("platform", "applications")["data"]
        return render_template("applications.html", applications=found)

    @app.get(f"{ROOT}/platform/applications/<application>")
    def application_page(application: str) -> str:
        told = g.signed.api.get("platform", "applications", application)
        return render_template("application.html", told=told)

    @app.get(f"{ROOT}/platform/traces")
    def traces_page() -> Any:
        wanted = request.args.get("trace", "").strip().lower()
        if wanted:
            return redirect(f"{base}{ROOT}/platform/traces{path_of(wanted)}", 303)
        found = g.signed.api.get("platform", "traces")["data"]
        return render_template("measured_traces.html", traces=found)

    @app.get(f"{ROOT}/platform/traces/<trace>")
    def measured_trace_page(trace: str) -> str:
        told = g.signed.api.get("platform", "traces", trace)
        return render_template("measured_trace.html", told=told)

    @app.get(f"{ROOT}/platform/monitoring")
    def weaving_page() -> str:
        return render_template("weaving.html", told=g.signed.api.get("platform", "monitoring"))


def _partition(told: dict[str, Any], pressing: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a partition with the names of those who press there."""
    there = [each["tenant"] for each in pressing if each["partition"] == told["partition"]]
    return {**told, "pressing": there}


def _slowest(api: Api, by: str) -> dict[str, Any] | None:
    """Return the streams whose code takes most; None where that took too long to look up."""
    try:
        found: dict[str, Any] = api.get("platform", "slowest", by=by)
    except ApiRefused as refused:
        if refused.status != HTTPStatus.SERVICE_UNAVAILABLE:
            raise
        return None
    return found
