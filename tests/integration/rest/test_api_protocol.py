"""What HTTP asks of every route: forms of bodies and answers, HEAD, OPTIONS, one error body."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from api_builders import SIMPLE, UPDATE, Caller, Served

SCHEMA = json.loads((Path(__file__).parents[3] / "schemas" / "error.json").read_text())
DOCUMENT = json.dumps(SIMPLE).encode()
XML = b'<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><x>&e;</x>'


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        (None, 201),
        ("application/json", 201),
        ("application/json;charset=UTF-8", 201),
        ("APPLICATION/JSON; charset=utf-8; odd=1", 201),
        ("application/json; charset=utf-16", 415),
        ("application/json; charset=latin-1", 415),
        ("application/x-www-form-urlencoded", 201),
        ("application/x-www-form-urlencoded; charset=utf-16", 415),
        ("multipart/form-data; boundary=x", 415),
        ("application/xml", 415),
        ("text/plain", 415),
        ("nonsense", 415),
        ("/", 415),
    ],
)
def test_a_document_comes_as_json(alice: Caller, content_type: str | None, status: int) -> None:
    answer = alice.ask("POST", "/", data=DOCUMENT, content_type=content_type)

    assert answer.status_code == status


def test_a_form_is_no_document(alice: Caller) -> None:
    """curl calls every body a form; what is one is refused for what it is."""
    answer = alice.ask("POST", "/", data=b"a=b", content_type="application/x-www-form-urlencoded")

    assert answer.status_code == 400
    assert answer.get_json()["code"] == "not-json"


def test_a_form_of_another_site_has_no_token(served: Served) -> None:
    """A browser posts it by itself, and adds nothing that says who its user is."""
    client = served.app.test_client()
    headers = {"Origin": "https://elsewhere.example", "Cookie": "Authorization=anything"}
    answer = client.post(
        "/", data=DOCUMENT, headers=headers, content_type="application/x-www-form-urlencoded"
    )

    assert answer.status_code == 403
    assert "Set-Cookie" not in answer.headers
    assert "Access-Control-Allow-Credentials" not in answer.headers


def test_an_unsupported_type_is_told_how_to_say_the_right_one(alice: Caller) -> None:
    answer = alice.ask("POST", "/", data=DOCUMENT, content_type="text/plain")

    assert answer.status_code == 415
    message = answer.get_json()["message"]
    assert "is text/plain" in message
    assert "curl -H 'Content-Type: application/json', or curl --json" in message


@pytest.mark.parametrize("method", ["PUT", "POST"])
def test_every_route_with_a_document_wants_json(alice: Caller, method: str) -> None:
    so = alice.create()
    paths = {
        "PUT": [f"/{so}", f"/{so}/streams/a"],
        "POST": ["/", f"/{so}/streams/a/subscriptions"],
    }
    for path in paths[method]:
        answer = alice.ask(method, path, data=XML, content_type="application/xml")

        assert answer.status_code == 415, path
        jsonschema.validate(answer.get_json(), SCHEMA)


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "identity, gzip"])
def test_a_compressed_body_is_not_unpacked(alice: Caller, encoding: str) -> None:
    """A thousand bytes of it may be a million."""
    headers = {"Content-Encoding": encoding}

    assert alice.ask("POST", "/", data=DOCUMENT, headers=headers).status_code == 415


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_body_that_is_not_wanted_may_have_any_type(alice: Caller, method: str) -> None:
    """Clients of the original name JSON on every request, also without a body."""
    so = alice.create()

    answer = alice.ask(method, f"/{so}", content_type="application/json;charset=UTF-8")

    assert answer.status_code in (200, 204)


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        (None, 200),
        ("", 200),
        ("*/*", 200),
        ("application/json", 200),
        ("application/*;q=0.1", 200),
        ("text/html,application/xhtml+xml,*/*;q=0.8", 200),
        ("text/html", 406),
        ("application/json;q=0", 406),
        ("nonsense", 406),
        (",,;q=x,\xe9/\xff", 406),
    ],
)
def test_a_read_is_answered_in_a_form_that_is_taken(
    alice: Caller, accept: str | None, status: int
) -> None:
    headers = {} if accept is None else {"Accept": accept}

    answer = alice.ask("GET", "/", headers=headers)

    assert answer.status_code == status
    if status == 406:
        jsonschema.validate(answer.get_json(), SCHEMA)


def test_a_change_is_made_whatever_the_client_takes(alice: Caller) -> None:
    """It is made before it could be refused."""
    answer = alice.ask("POST", "/", data=DOCUMENT, headers={"Accept": "text/html"})

    assert answer.status_code == 201


def test_an_error_is_a_problem_for_who_asks_for_one(alice: Caller) -> None:
    accept = {"Accept": "application/json, application/problem+json"}

    old = alice.ask("GET", "/unknown")
    new = alice.ask("GET", "/unknown", headers=accept)

    assert old.content_type == "application/json"
    assert new.content_type == "application/problem+json"
    assert old.data == new.data
    assert old.text.startswith(
        '{"status":404,"message":"The Service Object was not found.",'
        '"info":"docs.servIoTicy.com","type":"https://servioticy.org/problems/not-found",'
    )


def test_what_is_wrong_has_its_place_in_the_error(alice: Caller) -> None:
    body = b'{"streams":{"a":{"channels":{"t":{"type":"nmber"}}}}}'

    answer = alice.ask("POST", "/", data=body)

    problem = answer.get_json()
    jsonschema.validate(problem, SCHEMA)
    assert problem["type"] == "https://servioticy.org/problems/invalid-content"
    assert problem["errors"] == [
        {
            "pointer": "/streams/a/channels/t/type",
            "code": "channel-type",
            "detail": "Channel t with incorrect type: nmber",
        }
    ]


def test_other_methods_are_told_which_there_are(alice: Caller) -> None:
    """Also without a token: what there is does not depend on who asks."""
    answer = alice.ask("DELETE", "/")

    assert answer.status_code == 405
    assert {"GET", "POST"} <= set(answer.headers["Allow"].split(", "))


@pytest.mark.parametrize("path", ["/", "/{so}", "/{so}/streams", "/{so}/streams/a/lastUpdate"])
def test_head_is_get_without_the_body(served: Served, alice: Caller, path: str) -> None:
    so = alice.create()
    alice.put(so)
    served.store()
    path = path.format(so=so)

    head, got = alice.ask("HEAD", path), alice.ask("GET", path)

    assert (head.status_code, head.data) == (got.status_code, b"")
    assert head.headers["Content-Length"] == str(len(got.data))
    assert head.headers.get("ETag") == got.headers.get("ETag")


@pytest.mark.parametrize("path", ["/", "/x", "/x/streams/y/subscriptions/", "/subscriptions/x"])
def test_browsers_ask_first_without_a_token(served: Served, path: str) -> None:
    headers = {"Origin": "http://else.where", "Access-Control-Request-Method": "PUT"}

    answer = served.app.test_client().options(path, headers=headers)

    assert answer.status_code == 200
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    for method in ("GET", "POST", "OPTIONS", "DELETE", "PUT", "HEAD"):
        assert method in answer.headers["Access-Control-Allow-Methods"]
    for name in ("X-Requested-With", "Content-Type", "Accept", "Origin", "Authorization"):
        assert name in answer.headers["Access-Control-Allow-Headers"]
    for name in ("ETag", "Location", "Link", "Retry-After"):
        assert name in answer.headers["Access-Control-Expose-Headers"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/{so}/"),
        ("GET", "/{so}/?size=1&from=0&&=&x"),
        ("GET", "/{so}/streams/"),
        ("GET", "/{so}/streams/a/subscriptions/"),
        ("PUT", "/{so}/streams/a/?a=%zz"),
    ],
)
def test_paths_may_end_in_a_slash_and_have_unknown_queries(
    alice: Caller, method: str, path: str
) -> None:
    path = path.format(so=alice.create())

    answer = alice.ask(method, path, data=UPDATE if method == "PUT" else None)

    assert answer.status_code == (202 if method == "PUT" else 200)


@pytest.mark.parametrize(
    "id_",
    [
        "..",
        "%2e%2e%2f",
        "%00",
        ";",
        "a;DROP TABLE tenants",
        "x" * 10_000,
        "__proto__",
        "constructor",
        "%F0%28%8C%28",
        "%ED%A0%80",
        "'--",
        "%25",
        "_",
    ],
)
def test_strange_ids_are_not_found(alice: Caller, id_: str) -> None:
    paths = [f"/{id_}", f"/{id_}/streams", f"/{id_}/streams/{id_}", f"/subscriptions/{id_}"]

    answers = [alice.ask(method, path) for path in paths for method in ("GET", "DELETE")]

    assert {answer.status_code for answer in answers} <= {404, 405}


def test_an_id_in_another_case_is_another_id(alice: Caller) -> None:
    so = alice.create()

    assert alice.ask("GET", f"/{so.upper()}").status_code == (404 if so != so.upper() else 200)


def test_what_a_client_says_of_itself_changes_no_answer(alice: Caller) -> None:
    """Names of hosts and addresses in headers are anybody's to write."""
    spoofed = {
        "X-Forwarded-Host": "evil.example",
        "X-Forwarded-Proto": "https",
        "X-Forwarded-For": "127.0.0.1",
        "X-HTTP-Method-Override": "DELETE",
        "Forwarded": "host=evil.example",
        "X-Tenant-Id": "1",
    }

    answer = alice.ask("POST", "/", data=DOCUMENT, headers=spoofed)

    assert answer.status_code == 201
    assert "evil" not in answer.headers["Location"]
    assert alice.ask("GET", "/").get_json() == [answer.get_json()["id"]]
