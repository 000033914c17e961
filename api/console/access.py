"""Who may what: grants, members, tokens, and the log of what was done."""

from __future__ import annotations

from typing import Any

from flask import Flask, g, redirect, render_template, request

from api.console.asking import Api
from api.console.devices import following_page
from api.console.names import Names, offered
from servioticy.domain.console import ROOT

DAY = 86_400
ROLES = ("viewer", "operator", "developer", "admin")
RIGHTS = {
    "create": "make devices",
    "list": "see which devices there are",
    "read": "see documents, and what streams had",
    "subscribe": "have updates sent to itself",
    "send": "send updates, and tell how actuations go",
    "actuate": "ask devices for actions",
    "change": "replace, delete and erase",
    "inspect": "see earlier versions, and how computations ended",
    "admin": "tokens and members: who has this has all",
}
KINDS = (
    *("service object", "stream", "grant", "token", "member", "claim code", "template", "job"),
    *("subscription", "actuation secret", "operator", "workflow", "aspect"),
)
AUDITED = 50
"""Entries on a page."""


def add(app: Flask, base: str) -> None:
    """`/console/grants`, `/console/members`, `/console/tokens` and `/console/audit`."""
    _grants(app, base)
    _members(app, base)
    _tokens(app, base)

    @app.get(f"{ROOT}/audit")
    def audit_log() -> str:
        api: Api = g.signed.api
        kind = request.args.get("kind") or None
        query = {"limit": AUDITED, "kind": kind, "cursor": request.args.get("cursor")}
        answer = api.ask("GET", "audit", query=query)
        following = following_page(answer.headers.get("link", ""))
        return render_template(
            "audit.html", entries=answer.value["data"], kinds=KINDS, kind=kind, next=following
        )


def _grants(app: Flask, base: str) -> None:
    @app.get(f"{ROOT}/grants")
    def grant_list() -> str:
        api: Api = g.signed.api
        page = api.get("grants", after=request.args.get("after") or None)
        names = Names(api)
        return render_template(
            "grants.html",
            tenant=page["tenant"],
            grants=page["grants"],
            names={each["id"]: names.of(each["serviceObject"])[0] for each in page["grants"]},
            offered=offered(api),
            next=page.get("next"),
        )

    @app.post(f"{ROOT}/grants")
    def make_grant() -> Any:
        api: Api = g.signed.api
        form = request.form
        to = form.get("to", "").strip()
        body: dict[str, Any] = {"tenant": to} if to else {"everyone": True}
        body |= {"use": form.get("use", "read")} | _ending(form.get("days", ""))
        stream = form.get("stream", "").strip()
        place = (form.get("object", "").strip(), *(("streams", stream) if stream else ()))
        api.post(*place, "grants", body=body)
        return redirect(f"{base}{ROOT}/grants", 303)

    @app.post(f"{ROOT}/grants/<grant>/revoke")
    def revoke_grant(grant: str) -> Any:
        g.signed.api.ask("DELETE", "grants", grant)
        return redirect(f"{base}{ROOT}/grants", 303)


def _members(app: Flask, base: str) -> None:
    @app.get(f"{ROOT}/members")
    def member_list() -> str:
        page = g.signed.api.get("members", after=request.args.get("after") or None)
        return render_template(
            "members.html", members=page["members"], roles=ROLES, next=page.get("next")
        )

    @app.post(f"{ROOT}/members")
    def add_member() -> Any:
        wanted = {
            name: text
            for name in ("subject", "issuer", "name", "email", "role")
            if (text := request.form.get(name, "").strip())
        }
        g.signed.api.post("members", body=wanted)
        return redirect(f"{base}{ROOT}/members", 303)

    @app.post(f"{ROOT}/members/<member>/role")
    def change_member(member: str) -> Any:
        body = {"role": request.form.get("role", "")}
        g.signed.api.ask("PATCH", "members", member, body=body)
        return redirect(f"{base}{ROOT}/members", 303)

    @app.post(f"{ROOT}/members/<member>/remove")
    def remove_member(member: str) -> Any:
        g.signed.api.ask("DELETE", "members", member)
        return redirect(f"{base}{ROOT}/members", 303)


def _tokens(app: Flask, base: str) -> None:
    def page(made: dict[str, Any] | None = None) -> str:
        api: Api = g.signed.api
        found = api.get("tokens", after=request.args.get("after") or None)
        return render_template(
            "tokens.html",
            tokens=found["tokens"],
            rights=RIGHTS,
            next=found.get("next"),
            made=made,
            offered=offered(api),
        )

    @app.get(f"{ROOT}/tokens")
    def token_list() -> str:
        return page()

    @app.post(f"{ROOT}/tokens")
    def make_token() -> str:
        form = request.form
        body: dict[str, Any] = {"name": form.get("name", "").strip()}
        body |= {"rights": rights} if (rights := form.getlist("right")) else {}
        body |= {"serviceObject": id_} if (id_ := form.get("object", "").strip()) else {}
        return page(g.signed.api.post("tokens", body=body | _ending(form.get("days", ""))))

    @app.post(f"{ROOT}/tokens/<token>/rotate")
    def rotate_token(token: str) -> str:
        return page(g.signed.api.post("tokens", token, "rotation", body={"overlapSeconds": DAY}))

    @app.post(f"{ROOT}/tokens/<token>/revoke")
    def revoke_token(token: str) -> Any:
        g.signed.api.ask("DELETE", "tokens", token)
        return redirect(f"{base}{ROOT}/tokens", 303)


def _ending(days: str) -> dict[str, Any]:
    """Return how long something is good for; what is no number is for the API to refuse."""
    text = days.strip()
    if not text:
        return {}
    try:
        return {"expiresIn": int(float(text) * DAY)}
    except (ValueError, OverflowError):
        return {"expiresIn": text}
