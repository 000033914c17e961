"""Who may ask what."""

from __future__ import annotations

from collections import defaultdict

import pytest
from api_builders import SIMPLE, Caller, Served
from flask import Flask
from rest_page import called, rights_on_the_page
from werkzeug.routing import Rule

from api.http.authentication import guard, right_to
from servioticy.domain.access import Right

OPEN = {
    "/private/health",
    "/claims",
    *("/openapi.json", "/openapi-delivery.json", "/openapi-console.json", "/asyncapi.json"),
    *("/docs", "/docs/<asset>"),
}
OWN_ALONE = {"/{so}/groups/{group}/subscriptions"}
"""Though the Service Object is public: who belongs to a group is its owner's to know."""


def filled(rule: Rule) -> str:
    return called(rule).replace("{n}", "1").replace("{", "").replace("}", "")


def test_every_route_asks_for_a_token(served: Served) -> None:
    """Whoever adds a route without it has to add it to OPEN, too."""
    client = served.app.test_client()
    without = {
        str(rule)
        for rule in served.app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"OPTIONS"}
        if client.open(filled(rule), method=method).status_code != 403
    }

    assert without == OPEN


def test_every_route_refuses_an_unknown_token(served: Served) -> None:
    client = served.app.test_client()
    for rule in served.app.url_map.iter_rules():
        for method in (rule.methods or set()) - {"OPTIONS", "HEAD"}:
            if str(rule) not in OPEN:
                headers = {"Authorization": "nonsense"}
                answer = client.open(filled(rule), method=method, headers=headers)
                assert (answer.status_code, answer.get_json()["message"]) == (
                    403,
                    "Access was denied!",
                )


def test_every_route_names_its_right(served: Served) -> None:
    """The page says it, too: a right that changes by mistake is found."""
    found = {
        (method, called(rule)): right.value if (right := right_to(view)) else "none"
        for rule in served.app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"OPTIONS", "HEAD"}
        if (view := served.app.view_functions[rule.endpoint])
    }

    assert found == rights_on_the_page()


def test_an_application_with_a_route_without_a_right_does_not_start(served: Served) -> None:
    app = Flask("another")
    app.get("/forgotten")(lambda: "all of it")

    with pytest.raises(LookupError, match="names no right"):
        guard(app, served.platform.ports.addresses)


@pytest.mark.parametrize("right", [None, *Right])
def test_others_may_use_the_routes_that_are_open_to_all(
    right: Right | None, alice: Caller, bob: Caller
) -> None:
    """Of a public Service Object, and none of them of a private one."""
    name = right.value if right else "none"
    routes = [
        each for each, its in rights_on_the_page().items() if its == name and "{so}" in each[1]
    ]
    for public in (True, False):
        so = alice.create({**SIMPLE, "public": public})
        for method, rule in routes:
            path = rule.format_map(defaultdict(lambda: "1", so=so, s="a"))
            answer = bob.ask(method, path, json={})
            open_ = public and right in (Right.READ, Right.SUBSCRIBE) and rule not in OWN_ALONE

            assert (answer.status_code != 401) is open_, (method, rule)


def test_no_header_has_a_message_of_its_own(served: Served) -> None:
    answer = served.app.test_client().get("/")

    assert answer.text.startswith(
        '{"status":403,"message":"Missing Authorization Header","info":"docs.servIoTicy.com",'
    )


def test_head_without_a_token_is_403(served: Served) -> None:
    """Health checks of 2014 wait for exactly that."""
    assert served.app.test_client().head("/").status_code == 403


@pytest.mark.parametrize("form", ["{}", "Bearer {}", "bearer {}", " {} "])
def test_tokens_come_raw_or_as_bearer(served: Served, alice: Caller, form: str) -> None:
    headers = {"Authorization": form.format(alice.token)}

    assert served.app.test_client().get("/", headers=headers).status_code == 200


@pytest.mark.parametrize("value", ["", " ", "Bearer", "Bearer ", "é\xff", "Basic YTpi"])
def test_strange_tokens_are_refused(served: Served, value: str) -> None:
    answer = served.app.test_client().get("/", headers={"Authorization": value})

    assert answer.status_code == 403


@pytest.mark.parametrize("public", [None, "false", "True", False, 1])
def test_a_foreign_private_object_is_not_authorized(
    alice: Caller, bob: Caller, public: object
) -> None:
    so = alice.create({**SIMPLE, "public": public})
    paths = [f"/{so}", f"/{so}/streams", f"/{so}/streams/a", f"/{so}/streams/a/lastUpdate"]

    answers = [bob.ask("GET", path) for path in [*paths, f"/{so}/streams/a/status"]]
    answers += [bob.put(so), bob.ask("POST", f"/{so}/streams/a/subscriptions", json={})]

    assert {answer.status_code for answer in answers} == {401}
    assert {answer.get_json()["message"] for answer in answers} == {"Not authorized"}


@pytest.mark.parametrize("public", [True, "true"])
def test_a_public_object_is_read_but_not_written_by_others(
    alice: Caller, bob: Caller, public: object
) -> None:
    so = alice.create({**SIMPLE, "public": public})
    subscription = {"callback": "pubsub", "destination": "x"}

    assert bob.ask("GET", f"/{so}").status_code == 200
    assert bob.ask("GET", f"/{so}/streams/a").status_code == 204
    subscribed = bob.ask("POST", f"/{so}/streams/a/subscriptions", json=subscription)
    assert subscribed.status_code == 201
    assert bob.put(so).status_code == 401


def test_why_nothing_came_out_is_for_the_owner(alice: Caller, bob: Caller) -> None:
    """Verdicts tell values of inputs, which may be private."""
    so = alice.create({**SIMPLE, "public": True})

    assert alice.ask("GET", f"/{so}/streams/a/status").status_code == 200
    assert bob.ask("GET", f"/{so}/streams/a/status").status_code == 401


def test_options_needs_no_token(served: Served) -> None:
    answer = served.app.test_client().options("/x/streams/y")

    assert answer.status_code == 200
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert "Authorization" in answer.headers["Access-Control-Allow-Headers"]
    assert "PUT" in answer.headers["Access-Control-Allow-Methods"]


def test_health_asks_both_and_needs_no_token(served: Served) -> None:
    client = served.app.test_client()
    assert client.get("/private/health").get_json() == {"status": "ok"}

    served.platform.state.broker_answers = False
    assert client.get("/private/health").status_code == 503
    served.platform.state.broker_answers = True
    served.platform.state.postgres_answers = False
    assert client.get("/private/health").status_code == 503
