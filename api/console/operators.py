"""Operators: programs of the tenant's own, their versions, how each runs, and who uses it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from flask import Flask, abort, g, redirect, render_template, request

from api.console.asking import Api, path_of
from api.console.devices import following_page
from api.console.editor import NOT_EDITED
from servioticy.domain.console import ROOT

OPERATORS = f"{ROOT}/operators"
LAST = 2**31 - 1
"""Behind which, from the newest on, all versions of a program stand."""
PAGES = 10
"""Of versions, to list all programs: the API tells a hundred of them at once."""
LOOKED_AT = 50
"""Service Objects at once, to find those that compute by a program."""
SECONDS = 2.0
"""So long they are looked at for one page."""
DONE = {
    "pushed": "The version is pushed. It computes nothing until a document names it.",
    "same": "These are the files of the newest version: there is no other one.",
    "removed": "The version is removed.",
    "granted": "The other tenant may compute by it, in any version.",
    "revoked": "The other tenant may compute by it no more.",
    "used": "The stream is computed by this version from now on.",
}


class Program(NamedTuple):
    """A program in the list, by its newest version."""

    newest: Mapping[str, Any]
    versions: int
    processes: Mapping[str, int]
    """of all versions, by their state"""


class Use(NamedTuple):
    """A stream that is computed by a program."""

    service_object: str
    name: str
    stream: str
    version: int


def add(app: Flask, base: str) -> None:
    """`/console/operators`, `/console/operators/{name}` and `/{version}` below."""
    _add_changes(app, base)

    @app.get(OPERATORS)
    def operator_list() -> str:
        api: Api = g.signed.api
        versions, grants, is_cut = _all(api)
        programs = [_program(each) for each in versions.values()]
        return render_template(
            "operators.html", programs=programs, grants=grants, is_cut=is_cut, done=_done()
        )

    @app.get(f"{OPERATORS}/<operator>")
    def operator_page(operator: str) -> str:
        api: Api = g.signed.api
        versions = _versions(api, operator)
        if not versions:
            abort(HTTPStatus.NOT_FOUND)
        cursor = request.args.get("cursor")
        uses, following = _uses(api, operator, cursor)
        return render_template(
            "operator.html",
            name=operator,
            versions=versions,
            grants=[each for each in api.get("operators")["grants"] if each["name"] == operator],
            uses=uses,
            next=following,
            done=_done(),
        )

    @app.get(f"{OPERATORS}/<operator>/<int:version>")
    def operator_version(operator: str, version: int) -> str:
        told = g.signed.api.get("operators", operator, str(version))
        return render_template("operator_version.html", told=told, done=_done())


def _add_changes(app: Flask, base: str) -> None:
    @app.post(f"{OPERATORS}/<operator>/<int:version>/remove")
    def remove_version(operator: str, version: int) -> Any:
        api: Api = g.signed.api
        api.ask("DELETE", "operators", operator, query={"version": version})
        left = _versions(api, operator)
        return redirect(f"{base}{OPERATORS}{path_of(operator) if left else ''}?done=removed", 303)

    @app.post(f"{OPERATORS}/<operator>/use")
    def use_version(operator: str) -> Any:
        """Have a stream computed by another version: forth, or back."""
        api: Api = g.signed.api
        form = request.form
        object_, stream = form.get("object", "").strip(), form.get("stream", "")
        found = api.ask("GET", object_)
        document = {each: of for each, of in found.value.items() if each not in NOT_EDITED}
        said = (document.get("streams") or {}).get(stream, {}).get("operator")
        if said is None or said.get("name") != operator:
            abort(HTTPStatus.BAD_REQUEST, f"{stream} is not computed by {operator} any more.")
        said["version"] = _number(form.get("version", ""))
        api.ask("PUT", object_, body=document, if_match=found.headers.get("etag"))
        return _back(base, operator, "used")

    @app.post(f"{OPERATORS}/<operator>/grants")
    def grant_operator(operator: str) -> Any:
        tenant = request.form.get("tenant", "").strip()
        g.signed.api.ask("PUT", "operators", operator, "grants", tenant)
        return _back(base, operator, "granted")

    @app.post(f"{OPERATORS}/<operator>/grants/<tenant>/revoke")
    def revoke_operator(operator: str, tenant: str) -> Any:
        g.signed.api.ask("DELETE", "operators", operator, "grants", tenant)
        return _back(base, operator, "revoked")


def _all(api: Api) -> tuple[dict[str, list[dict[str, Any]]], list[dict[str, Any]], bool]:
    """Return the versions of each program, whom it is granted to, and whether there are more."""
    found: dict[str, list[dict[str, Any]]] = {}
    grants: list[dict[str, Any]] = []
    after = None
    for _ in range(PAGES):
        page = api.get("operators", after=after)
        grants += page.get("grants", [])
        for each in page["operators"]:
            found.setdefault(each["name"], []).append(each)
        after = page.get("next")
        if after is None:
            return found, grants, False
    return found, grants, True


def _program(versions: list[dict[str, Any]]) -> Program:
    processes: dict[str, int] = {}
    for each in versions:
        for state, count in each["processes"].items():
            processes[state] = processes.get(state, 0) + count
    return Program(versions[0], len(versions), processes)


def _versions(api: Api, operator: str) -> list[dict[str, Any]]:
    """Return the newest hundred versions of a program, the newest first."""
    page = api.get("operators", after=f"{operator}/{LAST}")["operators"]
    return [each for each in page if each["name"] == operator]


def _uses(api: Api, operator: str, cursor: str | None) -> tuple[list[Use], str]:
    """Return who computes by it, and behind which question mark it goes on."""
    found: list[Use] = []
    until = time.monotonic() + SECONDS
    while True:
        query = {"limit": LOOKED_AT, "cursor": cursor}
        answer = api.ask("GET", "service-objects", query=query)
        for each in answer.value["data"]:
            found += _uses_in(api.found(each["id"]) or {}, operator)
        following = following_page(answer.headers.get("link", ""))
        if not following or time.monotonic() > until:
            return found, following
        cursor = _cursor(following)


def _uses_in(document: Mapping[str, Any], operator: str) -> Iterator[Use]:
    for stream, said in (document.get("streams") or {}).items():
        by = said.get("operator")
        if isinstance(by, dict) and by.get("name") == operator:
            name = document.get("name") or document["id"]
            yield Use(document["id"], name, stream, by.get("version", 0))


def _cursor(query: str) -> str | None:
    return parse_qs(query).get("cursor", [None])[0]


def _number(text: str) -> int | str:
    """Return a version; what is no number is for the API to refuse."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 11 else text


def _done() -> str:
    return DONE.get(request.args.get("done", ""), "")


def _back(base: str, operator: str, done: str) -> Any:
    return redirect(f"{base}{OPERATORS}{path_of(operator)}?done={done}", 303)
