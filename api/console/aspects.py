"""What a tenant has measured of its own streams: aspects, and what each tells by the minute."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from flask import Flask, g, redirect, render_template, request

from api.console.asking import Api, path_of
from api.console.names import Names, offered
from api.console.streams import HARMLESS
from servioticy.domain.console import ROOT

ASPECTS = f"{ROOT}/aspects"
HOUR, MINUTE = 3_600_000, 60_000
SPANS = {"hour": ("the last hour", HOUR), "day": ("the last day", 24 * HOUR)}
NAMED = 50
"""Streams on a page that are told by the names of their Service Objects."""
ROWS = 60
"""Minutes in the table, the newest first; the bars have all of them."""
DONE = {
    "made": "From now on the stream is measured: the first minute stands here in a minute or two.",
    "ended": "The stream is measured no more.",
}


class Row(NamedTuple):
    """An aspect in the list."""

    told: Mapping[str, Any]
    stream: str
    """in words"""


class Bar(NamedTuple):
    """A minute as a bar, in parts of the whole picture: 0 to 1."""

    at: float
    height: float
    is_bad: bool
    """whether computations of it went wrong"""


def add(app: Flask, base: str) -> None:
    """`/console/aspects`, `/console/aspects/{id}` and what is asked of it there."""

    @app.get(ASPECTS)
    def aspect_list() -> str:
        api: Api = g.signed.api
        page = api.get("monitoring", "aspects", after=request.args.get("after") or None)
        names = Names(api)
        return render_template(
            "aspects.html",
            rows=[_row(each, names, n < NAMED) for n, each in enumerate(page["data"])],
            next=page.get("next"),
            wanted=request.args,
            offered=offered(api),
            done=_done(),
        )

    @app.post(ASPECTS)
    def make_aspect() -> Any:
        form = request.form
        body = {
            "serviceObject": form.get("object", "").strip(),
            "stream": form.get("stream", "").strip(),
        }
        purpose = form.get("purpose", "").strip()
        made = g.signed.api.post(
            "monitoring", "aspects", body=body | ({"purpose": purpose} if purpose else {})
        )
        return redirect(f"{base}{ASPECTS}{path_of(made['id'])}?done=made", 303)

    @app.get(f"{ASPECTS}/<aspect>")
    def aspect_page(aspect: str) -> str:
        api: Api = g.signed.api
        told = api.get("monitoring", "aspects", aspect)
        span = request.args.get("span", "")
        span = span if span in SPANS else "hour"
        newest = api.get("monitoring", "aspects", aspect, "summary")["to"]
        asked = {"from_": newest - SPANS[span][1], "to": newest}
        series = api.get("monitoring", "aspects", aspect, "series", **asked)
        return render_template(
            "aspect.html",
            told=told,
            stream=_row(told, Names(api), is_named=True).stream,
            summary=api.get("monitoring", "aspects", aspect, "summary", **asked),
            minutes=series["data"][::-1][:ROWS],
            is_cut=len(series["data"]) > ROWS,
            bars=_bars(series),
            width=MINUTE / (series["to"] - series["from"]),
            span=span,
            spans=SPANS,
            done=_done(),
        )

    @app.post(f"{ASPECTS}/<aspect>/end")
    def end_aspect(aspect: str) -> Any:
        g.signed.api.ask("DELETE", "monitoring", "aspects", aspect)
        return redirect(f"{base}{ASPECTS}?done=ended", 303)


def _row(told: Mapping[str, Any], names: Names, is_named: bool) -> Row:
    id_ = told["serviceObject"]
    return Row(told, f"{names.of(id_)[0] if is_named else id_} \u203a {told['stream']}")


def _bars(series: Mapping[str, Any]) -> list[Bar]:
    """Return a bar for each minute: how much its computations took, against the most."""
    most = max((each["processorSeconds"] for each in series["data"]), default=0) or 1
    span = series["to"] - series["from"]
    return [
        Bar(
            (each["minute"] - series["from"]) / span,
            each["processorSeconds"] / most,
            any(verdict not in HARMLESS for verdict in each["computations"]),
        )
        for each in series["data"]
    ]


def _done() -> str:
    return DONE.get(request.args.get("done", ""), "")
