"""Deliveries: who gets what, how far each is behind, what failed, and what to do about it."""

from __future__ import annotations

from typing import Any, NamedTuple

from flask import Flask, g, redirect, render_template, request

from api.console.asking import Api, path_of
from api.console.names import Names
from servioticy.domain.console import ROOT

DELIVERIES = f"{ROOT}/deliveries"
ON_A_PAGE = 20
"""Of each it is asked how far it is behind."""
DONE = {
    "test": "A test is on its way: its answer stands below in a moment.",
    "redrive": "What had failed is delivered once more.",
    "resume": "The receiver is called again.",
    "end": "The subscription has ended.",
}


class Row(NamedTuple):
    """A subscription in the list."""

    subscription: dict[str, Any]
    source: str
    """what it is to, in words"""


def add(app: Flask, base: str) -> None:
    """`/console/deliveries`, `/console/deliveries/{id}` and what is asked of it there."""

    @app.get(DELIVERIES)
    def delivery_list() -> str:
        api: Api = g.signed.api
        after = request.args.get("after") or None
        page = api.get("subscriptions", limit=ON_A_PAGE, after=after)
        names = Names(api)
        found = [api.found("subscriptions", each["id"]) or each for each in page["subscriptions"]]
        rows = [Row(each, source_of(each, names)) for each in found]
        return render_template("deliveries.html", rows=rows, next=page.get("next"), done=_done())

    @app.get(f"{DELIVERIES}/<subscription>")
    def delivery_page(subscription: str) -> str:
        return _page(subscription)

    @app.post(f"{ROOT}/streams/<service_object>/<stream>/subscriptions")
    def subscribe(service_object: str, stream: str) -> str:
        """Have a receiver called; what it knows our requests by is shown once."""
        body = {"callback": "http", "destination": request.form.get("destination", "").strip()}
        place = (service_object, "streams", stream, "subscriptions")
        made = g.signed.api.post(*place, body=body)
        return _page(made["id"], made.get("secret", ""))

    def _page(subscription: str, secret: str = "") -> str:
        api: Api = g.signed.api
        found = api.get("subscriptions", subscription)
        is_called = found["callback"] == "http" and "destination" in found
        dead = api.get("subscriptions", subscription, "dead-deliveries") if is_called else {}
        return render_template(
            "delivery.html",
            id=subscription,
            subscription=found,
            source=source_of(found, Names(api)),
            is_called=is_called,
            dead=dead.get("deadDeliveries", []),
            has_more=bool(dead.get("next")),
            test=api.found("subscriptions", subscription, "test") if is_called else None,
            secret=secret,
            done=_done(),
        )

    @app.post(f"{DELIVERIES}/<subscription>/test")
    def test_delivery(subscription: str) -> Any:
        g.signed.api.post("subscriptions", subscription, "test")
        return _back(base, subscription, "test")

    @app.post(f"{DELIVERIES}/<subscription>/redrive")
    def redrive(subscription: str) -> Any:
        g.signed.api.post("subscriptions", subscription, "dead-deliveries", "redrive")
        return _back(base, subscription, "redrive")

    @app.post(f"{DELIVERIES}/<subscription>/resume")
    def resume(subscription: str) -> Any:
        g.signed.api.post("subscriptions", subscription, "resume")
        return _back(base, subscription, "resume")

    @app.post(f"{DELIVERIES}/<subscription>/end")
    def end_subscription(subscription: str) -> Any:
        g.signed.api.ask("DELETE", "subscriptions", subscription)
        return redirect(f"{base}{DELIVERIES}?done=end", 303)


def source_of(subscription: dict[str, Any], names: Names) -> str:
    """Return what a subscription is to, in words."""
    name = names.of(subscription["source"])[0] if subscription.get("source") else "?"
    if subscription.get("stream"):
        return f"{name} \u203a {subscription['stream']}"
    group = subscription.get("group")
    return f"group {group} of {name}" if group else f"all of {name}"


def _done() -> str:
    return DONE.get(request.args.get("done", ""), "")


def _back(base: str, subscription: str, done: str) -> Any:
    return redirect(f"{base}{DELIVERIES}{path_of(subscription)}?done={done}", 303)
