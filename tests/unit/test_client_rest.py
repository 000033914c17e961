"""The client of the REST API against a server whose answers are written down beforehand.

Everything is asked of both clients: with asyncio, and without.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from rest_server import CUT, Client, Server, client, server

from servioticy.client import (
    Answered,
    Claimed,
    Conflict,
    NotAcceptable,
    NotAuthorized,
    NotFound,
    Outdated,
    TooLarge,
    TooMany,
    UnknownToken,
    calls,
)

__all__ = ["client", "server"]


def test_what_the_platform_warns_of_is_logged(
    server: Server, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    """That of the head, and of a document's answer; each once."""
    server.headers["Warning"] = '299 - "in F, not \\"C\\"", 299 - "and 2 more"'
    server.answers = [
        (202, {}),
        (201, {"id": "so1", "warnings": ["and 2 more", "nothing triggers b"]}),
        (200, {"data": ["warnings"]}),
        (200, ["so1"]),
    ]
    with client() as api:
        api.put("so1", "a", {})
        assert api.create({"streams": {}}) == "so1"
        api.updates("so1", "a")
        api.ids()

    head = ['warning: in F, not "C"', "warning: and 2 more"]
    assert caplog.messages == [*head, *head, "warning: nothing triggers b"]


def test_requests_share_a_connection_and_carry_the_token(server: Server, client: Client) -> None:
    server.answers = [(201, {"id": "so1"}), (202, {}), (200, ["so1"])]
    update = {"channels": {"v": {"current-value": 1}}, "lastUpdate": 3}
    with client() as api:
        assert api.create({"streams": {}}) == "so1"
        api.put("so1", "a stream/é", update)
        assert api.ids() == ["so1"]

    assert server.tokens == {"secret"}
    assert len(server.clients) == 1
    method, path, body = server.asked[1]
    assert (method, path) == ("PUT", "/so1/streams/a%20stream%2F%C3%A9")
    assert json.loads(body) == update


def test_a_device_claims_until_it_is_answered(server: Server, client: Client) -> None:
    """The same again, by which the API knows it; and a refusal is told at once."""
    given = {"id": "so1", "api_token": "t", "createdAt": 1}
    server.answers = [CUT, (503, None), (201, given), (409, {"message": "used up"})]
    with client() as api:
        assert api.claim("CODE", "SN-1", "k" * 16) == Claimed("so1", "t")
        with pytest.raises(Conflict):
            api.claim("CODE", "SN-2", "k" * 16, {"room": "attic"})

    asked = [json.loads(body) for _, _, body in server.asked]
    assert {path for _, path, _ in server.asked} == {"/claims"}
    assert asked[0] == asked[1] == asked[2]
    assert asked[3] == {
        "code": "CODE",
        "device": "SN-2",
        "key": "k" * 16,
        "parameters": {"room": "attic"},
    }


def test_reads_of_an_empty_stream(server: Server, client: Client) -> None:
    server.answers = [(204, None), (204, None), (200, {"data": [{"lastUpdate": 5}]})]
    with client() as api:
        assert api.updates("so1", "s") == []
        assert api.last_timestamp("so1", "s") is None
        assert api.last_timestamp("so1", "s") == 5


def test_the_place_in_a_document_is_told(server: Server, client: Client) -> None:
    said = {"message": "has to be text", "pointer": "/streams/a", "code": "wrong-type"}
    server.answers = [(400, said)]
    with client() as api, pytest.raises(Answered, match="/streams/a") as told:
        api.create({})
    assert (told.value.pointer, told.value.code) == ("/streams/a", "wrong-type")


@pytest.mark.parametrize("body", ["a page of a proxy", ["a", "list"], {"message": None}])
def test_an_error_of_somebody_else_is_told_as_it_is(
    server: Server, client: Client, body: Any
) -> None:
    server.answers = [(404, body)]
    with client() as api, pytest.raises(Answered) as told:
        api.ids()
    assert told.value.reason == json.dumps(body)


def test_each_status_has_its_error() -> None:
    errors = (NotAcceptable, NotAuthorized, UnknownToken, NotFound, Conflict, Outdated)
    statuses = {
        each: error
        for error in (*errors, TooLarge, TooMany)
        for each in range(400, 600)
        if type(Answered.of(calls_answer(each))) is error
    }

    assert statuses == {
        400: NotAcceptable, 401: NotAuthorized, 403: UnknownToken, 404: NotFound,
        409: Conflict, 412: Outdated, 413: TooLarge, 429: TooMany,
    }  # fmt: skip
    assert type(Answered.of(calls_answer(500))) is Answered


def calls_answer(status: int) -> Any:
    return calls.Answer(status, {}, b"")


def test_service_objects_are_found_page_by_page(server: Server, client: Client) -> None:
    server.links = ['</service-objects?cursor=x>; rel="next"', ""]
    server.answers = [(200, {"data": [{"id": "so1"}]}), (200, {"data": [{"id": "so2"}]})]
    with client() as api:
        found = list(api.find({"name": "a b", "customFields.room": "k&ü"}, page_size=1))

    assert found == [{"id": "so1"}, {"id": "so2"}]
    assert [path for _, path, _ in server.asked] == [
        "/service-objects?name=a+b&customFields.room=k%26%C3%BC&limit=1",
        "/service-objects?cursor=x",
    ]


def test_usage_is_read_page_by_page(server: Server, client: Client) -> None:
    server.answers = [(200, {"data": [{"hour": 1}], "next": "1&b"}), (200, {"data": []})]
    with client() as api:
        assert list(api.usage("hour", after=0)) == [{"hour": 1}]

    assert [path for _, path, _ in server.asked] == [
        "/usage?by=hour&from=0",
        "/usage?by=hour&from=0&after=1%26b",
    ]


def test_quotas_are_told_with_what_is_used(server: Server, client: Client) -> None:
    quota = {"name": "documents", "limit": 2, "unit": "documents", "used": 1}
    server.answers = [(200, {"quotas": [quota]})]
    with client() as api:
        assert api.quotas() == [quota]


def test_an_operator_sees_the_platform(server: Server, client: Client) -> None:
    server.answers = [(200, {"programs": []}), (200, {"streams": []}), (200, {"streams": [1]})]
    server.answers.append((200, {"pointcuts": []}))
    server.answers += [(200, {"data": [{"name": "a"}]}), (200, {"name": "a"})]
    server.answers += [(200, {"data": [{"trace": "b"}]}), (200, {"trace": "b"})]
    with client() as api:
        assert api.platform() == {"programs": []}
        assert api.slowest() == {"streams": []}
        assert api.slowest("each") == {"streams": [1]}
        assert api.woven() == {"pointcuts": []}
        assert api.applications() == [{"name": "a"}]
        assert api.application("a") == {"name": "a"}
        assert api.measured_traces() == [{"trace": "b"}]
        assert api.measured_trace("b") == {"trace": "b"}

    assert [path for _, path, _ in server.asked] == [
        "/platform",
        "/platform/slowest?by=total",
        "/platform/slowest?by=each",
        "/platform/monitoring",
        "/platform/applications",
        "/platform/applications/a",
        "/platform/traces",
        "/platform/traces/b",
    ]


def test_the_last_updates_of_many_streams(server: Server, client: Client) -> None:
    entries = [{"update": {"lastUpdate": 1}}, {"update": None}, {"status": 404}]
    server.answers = [(200, {"data": entries})]
    with client() as api:
        found = api.last_updates([("so1", "a"), ("so1", "b"), ("so2", "c")])

    assert found == [{"lastUpdate": 1}, None, None]


def test_a_document_is_changed_over_what_was_read_only(server: Server, client: Client) -> None:
    server.answers = [(200, {"streams": {}}), (412, {"message": "it has changed"})]
    with client() as api:
        found = api.read("so1")
        assert (found.document, found.etag) == ({"streams": {}}, '"7"')
        with pytest.raises(Outdated):
            api.change("so1", {}, found.etag)


def test_a_history_is_read_page_by_page(server: Server, client: Client) -> None:
    """Whatever the answer calls the host: the token goes to the one we were told."""
    link = '<http://elsewhere/so1/streams/s/updates?from=1&cursor=x%2By>; rel="next"'
    server.links = [f'<http://elsewhere/>; rel="first", {link}', ""]
    server.answers = [(200, {"data": [{"lastUpdate": at}]}) for at in (1, 2)]
    with client() as api:
        found = list(api.history("so1", "s", after=1, newest_first=True))

    assert found == [{"lastUpdate": 1}, {"lastUpdate": 2}]
    assert [path for _, path, _ in server.asked] == [
        "/so1/streams/s/updates?from=1&order=desc",
        "/so1/streams/s/updates?from=1&cursor=x%2By",
    ]
