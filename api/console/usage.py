"""What was used, what it costs, and how much may be."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from flask import Flask, g, render_template, request

from api.console.asking import Api
from api.console.names import Names
from servioticy.domain.console import ROOT

HOUR = 3_600_000
SPANS = {"day": ("the last day", 24), "week": ("the last week", 168), "month": ("30 days", 720)}
BY = {
    "hour": "hour",
    "day": "day",
    "serviceObject": "Service Object",
    "stream": "stream",
    "provider": "whose streams",
}
SHOWN = 200
"""Rows of a table."""
NAMED = 50
"""Service Objects that are told by their names."""
NEARLY = 0.8
"""Part of a quota from which on it is marked."""


class Row(NamedTuple):
    """A line of the table."""

    what: str
    at: int | None
    """the beginning of an hour or day"""
    used: dict[str, Any]
    computed: int
    part: float
    """of what the largest line has stored and computed, from 0 to 1"""


class Quota(NamedTuple):
    """How much there may be of something."""

    name: str
    unit: str
    used: float | None
    """None: another process counts it"""
    limit: float
    retry_after: int | None

    @property
    def part(self) -> float:
        """How much of it is used, from 0 to 1."""
        return min(1.0, (self.used or 0) / self.limit) if self.limit else 1.0

    @property
    def looks(self) -> str:
        """The class of its badge."""
        return "bad" if self.part >= 1 else "wait" if self.part >= NEARLY else "good"


def add(app: Flask) -> None:
    """`/console/usage`."""

    @app.get(f"{ROOT}/usage")
    def usage_page() -> str:
        api: Api = g.signed.api
        by = request.args.get("by", "")
        by = by if by in BY else "hour"
        span = request.args.get("span", "")
        span = span if span in SPANS else "day"
        now = int(time.time() * 1000)
        asked = {"from_": now - SPANS[span][1] * HOUR, "to": now}
        (whole,) = api.get("usage", by="all", **asked)["data"] or [None]
        found = api.get("usage", by=by, **asked)["data"]
        return render_template(
            "usage.html",
            whole=whole,
            rows=_rows(found, Names(api)),
            is_cut=len(found) > SHOWN,
            quotas=[_quota(each) for each in api.get("quotas")["quotas"]],
            by=by,
            choices=BY,
            span=span,
            spans=SPANS,
            operates=api.found("platform") is not None,
        )


def _rows(found: list[dict[str, Any]], names: Names) -> list[Row]:
    """Return the lines: the newest first, or those with most."""
    sizes = [each["storedUpdates"] + sum(each["computations"].values()) for each in found]
    most = max(sizes, default=0) or 1
    rows = []
    named: set[str] = set()
    for each, size in zip(found, sizes, strict=True):
        at = each.get("hour", each.get("day"))
        rows.append(
            Row(
                _what(each, names, named),
                at,
                each,
                sum(each["computations"].values()),
                size / most,
            )
        )
    rows.sort(key=lambda row: (-(row.at or 0), -row.part))
    return rows[:SHOWN]


def _what(used: dict[str, Any], names: Names, named: set[str]) -> str:
    id_ = used.get("serviceObject")
    if id_ is None:
        provider = {"own": "your own", "others": "of others"}.get(used.get("provider", ""), "")
        return provider or str(used.get("grant") or "")
    if id_ == "":
        return "reading"
    if id_ not in named and len(named) < NAMED:
        named.add(id_)
    name = names.of(id_)[0] if id_ in named else id_
    return f"{name} \u203a {used['stream']}" if used.get("stream") else name


def _quota(told: dict[str, Any]) -> Quota:
    return Quota(
        told["name"], told["unit"], told.get("used"), told["limit"], told.get("retryAfter")
    )
