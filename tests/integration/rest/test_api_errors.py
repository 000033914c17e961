"""Every error has the one body, and no body makes us fail."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from api_builders import Caller, Served
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

SCHEMA = json.loads((Path(__file__).parents[3] / "schemas" / "error.json").read_text())
CODE = '{"streams":{"s":{"channels":{"c":{"type":"number","current-value":%s}}}}%s}'


def test_unknown_routes_and_methods_have_the_body_too(alice: Caller) -> None:
    answers = [
        alice.ask("GET", "/a/b/c/d/e/f"),
        alice.ask("PATCH", "/"),
        alice.ask("DELETE", "/a/streams"),
        alice.ask("POST", "/"),
    ]

    assert [answer.status_code for answer in answers] == [404, 405, 405, 400]
    for answer in answers:
        jsonschema.validate(answer.get_json(), SCHEMA)
        assert answer.get_json()["status"] == answer.status_code
        assert answer.headers["Server"] == "api.servIoTicy.com"
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert answers[1].get_json()["message"] == "Method not allowed. Check the documentation"
    assert "GET" in answers[1].headers["Allow"]


def test_what_is_not_expected_is_logged_and_not_told(
    served: Served,
    alice: Caller,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(_: int) -> list[str]:
        raise KeyError("secret")

    monkeypatch.setattr(served.platform.ports.service_objects, "ids", fail)
    with caplog.at_level(logging.ERROR):
        answer = alice.ask("GET", "/")

    assert (answer.status_code, answer.get_json()["message"]) == (500, "Internal Server Error")
    assert "secret" not in answer.text
    assert "secret" in caplog.text


def test_postgres_being_away_is_503_without_its_address(served: Served, alice: Caller) -> None:
    served.platform.state.postgres_answers = False
    answer = alice.ask("GET", "/")

    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    assert answer.get_json()["message"] == "Postgres does not answer"


def nested(depth: int) -> bytes:
    return b'{"a":' * depth + b"1" + b"}" * depth


NASTY: list[bytes] = [
    b"",
    b" ",
    b"\0",
    b"null",
    b"true",
    b"0",
    b'""',
    b"[]",
    b"[[]]",
    b"{",
    b'{"a"',
    b'{"a":}',
    b"{}{}",
    b"{'a':1}",
    b'{"a":1,}',
    b"NaN",
    b'{"streams":NaN}',
    b'{"lastUpdate":Infinity}',
    b'{"streams":-Infinity}',
    b'{"a":1e400}',
    b'{"a":1,"a":2}',
    b'{"streams":{"a":{"channels":{}},"a":{"channels":{}}}}',
    b"\xff\xfe{\0}\0",
    b"\xef\xbb\xbf{}",
    b'{"a":"\xff"}',
    b'{"a":"\xed\xa0\x80"}',
    b'{"a":"\\ud800"}',
    b'{"streams":{"\\u0000":{"channels":{}}}}',
    b'{"streams":{},"groups":{"g":{"soIds":["\\u0000"],"stream":"a"}}}',
    b'{"streams":{},"groups":{"g":{"soIds":["x"],"stream":"\\u0000"}}}',
    b'{"streams":{},"x":' + nested(300) + b"}",
    b'{"streams":{},"x":' + nested(1100) + b"}",
    b'{"streams":{},"x":' + b"[" * 9_000 + b"]" * 9_000 + b"}",
    b'{"streams":{"s":{"channels":{"c":{"type":' + nested(1000) + b"}}}}}",
    b'{"streams":{},"x":' + b"9" * 10_000 + b"}",
    b'{"channels":{"x":{"current-value":' + b"9" * 10_000 + b'}},"lastUpdate":1}',
    b'{"channels":{"x":{"current-value":1}},"lastUpdate":1,"x":' + nested(300) + b"}",
    b'{"channels":{"x":{"current-value":1}},"lastUpdate":18446744073709551615}',
    b'{"channels":{"x":{"current-value":1}},"lastUpdate":1e3}',
    b'{"channels":{"x":{"current-value":[1]}},"lastUpdate":1}',
    b'{"channels":{"":{"current-value":1}},"lastUpdate":1}',
    b'{"channels":[{"current-value":1}],"lastUpdate":1}',
    b'{"callback":"pubsub","destination":"\\u0000"}',
    b'{"callback":["pubsub"]}',
    b'{"callback":"pubsub","destination":{}}',
    b'{"callback":"pubsub","customFields":' + nested(253) + b"}",
    (CODE % ('"' + "a" * 4000 + '"', ',"aliases":[' + '{"a":"aa"},' * 99 + '{"a":"b"}]')).encode(),
    (CODE % ('"{$' + "a" * 4000 + '"', "")).encode(),
    (CODE % ('"{$a' + "[" * 900 + '}"', "")).encode(),
    (CODE % ('"{$s' + "." * 900 + 'x}"', "")).encode(),
    (CODE % ("\"{$s.a[?(@.b=~'(x+x+)+y')]}\"", "")).encode(),
    (CODE % ('"function(' + "(" * 3000 + '"', ',"version":"0.2.0"')).encode(),
    (CODE % ('"function(a,a,b' + "/*" * 1500 + '"', ',"version":"0.2.0"')).encode(),
    (CODE % ('"x","current-value":"y"', "")).encode(),
    b'{"streams":{"s":{"channels":{"c":{"type":"number"}}}},"version":{"a":[]},"public":{}}',
    b'{"streams":{},"aliases":[1,[],{}],"actions":[[]]}',
    b'{"' + b"k" * 18_000 + b'":1}',
]


@pytest.mark.parametrize("body", NASTY, ids=range(len(NASTY)))
def test_no_body_makes_us_fail(alice: Caller, body: bytes) -> None:
    so = alice.create()
    answers = [
        alice.ask("POST", "/", data=body),
        alice.put(so, body),
        alice.ask("POST", f"/{so}/streams/a/subscriptions", data=body),
    ]

    assert max(answer.status_code for answer in answers) < 500
    for answer in answers:
        if answer.status_code >= 400:
            jsonschema.validate(answer.get_json(), SCHEMA)
    for id_ in alice.ask("GET", "/").get_json():
        assert alice.ask("GET", f"/{id_}").status_code == 200


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "streams",
                    "channels",
                    "c",
                    "type",
                    "current-value",
                    "groups",
                    "soIds",
                    "stream",
                    "aliases",
                    "actions",
                    "name",
                    "lastUpdate",
                    "x",
                    "callback",
                    "destination",
                ]
            ),
            inner | st.sampled_from(["number", "pubsub", "{$c.x}", "location"]),
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(
    max_examples=examples(150),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(value=ANY_JSON)
def test_no_json_makes_us_fail(served: Served, value: Any) -> None:
    alice = served.tenant("alice")
    so = alice.create()
    body = json.dumps(value).encode()
    answers = [
        alice.ask("POST", "/", data=body),
        alice.put(so, body),
        alice.ask("POST", f"/{so}/streams/a/subscriptions", data=body),
    ]

    assert max(answer.status_code for answer in answers) < 500


@pytest.mark.parametrize("host", ["a b", "x:y:z", "[", "é", "../..", "a/b?c#d"])
def test_strange_hosts_do_not_make_us_fail(alice: Caller, host: str) -> None:
    answer = alice.ask("POST", "/", data=b'{"streams":{}}', headers={"Host": host})

    assert answer.status_code in (201, 400)
