"""The document of a workflow: a new one, or the next version, with what is wrong in its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any

from flask import Flask, g, redirect, render_template, request

from api.console.asking import Api, path_of
from api.console.attempts import attempted
from api.console.editing import unix, write
from api.console.places import Problem
from api.console.workflows import WORKFLOWS, name_of

FIRST = {
    "name": "Readings",
    "source": {"http": {}},
    "procedures": {
        "clean": {"code": "function(atom) {\n  if (atom.celsius > -100) return atom;\n}"},
        "classify": {"code": "function(atom) {\n  return {...atom, hot: atom.celsius > 30};\n}"},
    },
    "links": [["source", "clean"], ["clean", "classify"], ["classify", "sink"]],
    "sink": {"collect": {}},
}
"""What a new one begins with: it is taken as it stands."""


def add(app: Flask, base: str) -> None:
    """`/console/workflows/new` and `/console/workflows/{id}/document`."""

    @app.get(f"{WORKFLOWS}/new")
    def new_workflow() -> str:
        return _page("", write(FIRST))

    @app.post(f"{WORKFLOWS}/new")
    def make_workflow() -> Any:
        return _sent("", lambda api, document, _: api.post("workflows", body=document)["id"])

    @app.get(f"{WORKFLOWS}/<workflow>/document")
    def workflow_document(workflow: str) -> str:
        api: Api = g.signed.api
        found = api.ask("GET", "workflows", workflow)
        document, version = found.value["document"], request.args.get("version", "")
        if version:
            document = api.get("workflows", workflow, "versions", version)["document"]
        return _page(workflow, write(document), found.headers.get("etag", ""))

    @app.post(f"{WORKFLOWS}/<workflow>/document")
    def replace_workflow(workflow: str) -> Any:
        def replace(api: Api, document: Any, etag: str) -> str:
            api.ask("PUT", "workflows", workflow, body=document, if_match=etag or None)
            return workflow

        return _sent(workflow, replace)

    def _sent(workflow: str, use: Callable[[Api, Any, str], str]) -> Any:
        """Return where what was sent has led to; or the page again, with all that is wrong."""
        text, etag = unix(request.form.get("text", "")), request.form.get("etag", "")
        found = attempted(text, lambda edited: use(g.signed.api, edited.document, etag))
        if found.status != HTTPStatus.OK:
            return _page(workflow, text, etag, found.wrong, found.message), found.status
        done = "changed" if workflow else "made"
        return redirect(f"{base}{WORKFLOWS}{path_of(found.made)}?done={done}", 303)


def _page(
    workflow: str,
    text: str,
    etag: str = "",
    wrong: Sequence[Problem] = (),
    message: str = "",
) -> str:
    now = g.signed.api.get("workflows", workflow)["document"] if workflow else {}
    return render_template(
        "workflow_editor.html",
        id=workflow,
        name=name_of(now, workflow),
        text=text,
        etag=etag,
        wrong=wrong,
        message=message,
    )
