"""Workflows: what waits before each step, what died and why, and what it costs."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson
from flask import Flask, g, redirect, render_template, request

from api.console.asking import Api, ApiRefused, path_of
from api.console.devices import following_page
from api.console.drawing import drawing
from servioticy.domain.console import ROOT

WORKFLOWS = f"{ROOT}/workflows"
ON_A_PAGE = 20
"""Of each it is asked how it stands."""
SHOWN = 20
"""Results, and dead letters."""
HOUR = 3_600_000
SPANS = {"hour": ("this hour", 0), "day": ("the last day", 24), "week": ("the last week", 168)}
DONE = {
    "made": "The workflow is made: atoms may come.",
    "changed": "The new version is in force for atoms that come from now on.",
    "same": "The version is in force again, as a new one.",
    "sent": "The atoms were accepted.",
    "redrive": "What was dead waits once more.",
    "deleted": "The workflow is deleted, with all that waited in it.",
}


class Row(NamedTuple):
    """A workflow in the list."""

    id: str
    name: str
    version: int
    updated_at: int
    status: Mapping[str, Any] | None
    """None: it has gone in this moment"""


def add(app: Flask, base: str) -> None:
    """`/console/workflows`, `/console/workflows/{id}` and what is asked of it there."""
    _add_changes(app, base)

    @app.get(WORKFLOWS)
    def workflow_list() -> str:
        api: Api = g.signed.api
        query = {"limit": ON_A_PAGE, "cursor": request.args.get("cursor")}
        answer = api.ask("GET", "workflows", query=query)
        rows = [_row(api, each) for each in answer.value["data"]]
        following = following_page(answer.headers.get("link", ""))
        return render_template("workflows.html", rows=rows, next=following, done=_done())

    @app.get(f"{WORKFLOWS}/<workflow>")
    def workflow_page(workflow: str) -> str:
        return _shown(workflow)

    @app.post(f"{WORKFLOWS}/<workflow>/atoms")
    def send_atoms(workflow: str) -> Any:
        text = request.form.get("atoms", "")
        try:
            g.signed.api.post("workflows", workflow, "atoms", body={"atoms": _atoms(text)})
        except ApiRefused as refused:
            if not refused.is_known:
                raise
            return _shown(workflow, text, refused.message), refused.status
        return _back(base, workflow, "sent")


def _add_changes(app: Flask, base: str) -> None:
    @app.post(f"{WORKFLOWS}/<workflow>/redrive")
    def redrive_atoms(workflow: str) -> Any:
        g.signed.api.post("workflows", workflow, "dead-letters", "redrive", body={})
        return _back(base, workflow, "redrive")

    @app.post(f"{WORKFLOWS}/<workflow>/versions/<int:version>")
    def put_in_force(workflow: str, version: int) -> Any:
        api: Api = g.signed.api
        earlier = api.get("workflows", workflow, "versions", str(version))["document"]
        api.ask("PUT", "workflows", workflow, body=earlier)
        return _back(base, workflow, "same")

    @app.post(f"{WORKFLOWS}/<workflow>/delete")
    def delete_workflow(workflow: str) -> Any:
        g.signed.api.ask("DELETE", "workflows", workflow)
        return redirect(f"{base}{WORKFLOWS}?done=deleted", 303)


def name_of(document: Mapping[str, Any], workflow: str) -> str:
    """Return what people call a workflow; its id where nobody has named it."""
    return str(document.get("name") or workflow)


def _shown(workflow: str, atoms: str | None = None, wrong: str = "") -> str:
    """Return its page; with what was sent and refused, and why."""
    api: Api = g.signed.api
    span = request.args.get("span", "")
    span = span if span in SPANS else "hour"
    since = int(time.time() * 1000) - SPANS[span][1] * HOUR
    told = api.get("workflows", workflow)
    status = api.get("workflows", workflow, "status", from_=since)
    document = told["document"]
    listed = api.get("workflows", workflow, "versions")["versions"]
    return render_template(
        "workflow.html",
        id=workflow,
        name=name_of(document, workflow),
        told=told,
        document=document,
        status=status,
        drawing=drawing(document, status["steps"]),
        versions=listed[::-1],
        results=_newest(api, workflow, "results") if "collect" in document["sink"] else None,
        dead=_newest(api, workflow, "dead-letters") if status["deadLetters"] else [],
        span=span,
        spans=SPANS,
        atoms=atoms,
        wrong=wrong,
        done="" if wrong else _done(),
    )


def _row(api: Api, listed: Mapping[str, Any]) -> Row:
    told = api.found("workflows", listed["id"])
    status = None if told is None else api.found("workflows", listed["id"], "status")
    name = name_of(told["document"] if told else {}, listed["id"])
    return Row(listed["id"], name, listed["version"], listed["updatedAt"], status)


def _newest(api: Api, workflow: str, what: str) -> list[dict[str, Any]] | None:
    """Return the newest; None where this token may not read them."""
    found = api.found("workflows", workflow, what, limit=SHOWN)
    return None if found is None else found["data"]


def _atoms(text: str) -> Any:
    """Return what is sent: one atom, or a list; what is no JSON is for the API to refuse."""
    try:
        sent = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return [sent] if isinstance(sent, dict) else sent


def _done() -> str:
    return DONE.get(request.args.get("done", ""), "")


def _back(base: str, workflow: str, done: str) -> Any:
    return redirect(f"{base}{WORKFLOWS}{path_of(workflow)}?done={done}", 303)
