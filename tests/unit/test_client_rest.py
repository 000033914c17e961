"""The client of the REST API against a server whose answers are written down beforehand.

Everything is asked of both clients: with asyncio, and without.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from servioticy.client import (
    Answered,
    AsyncRest,
    Claimed,
    Conflict,
    NotAcceptable,
    NotAuthorized,
    NotFound,
    Outdated,
    Refusal,
    Rest,
    Retries,
    TooLarge,
    TooMany,
    UnknownToken,
    batches,
    calls,
)
from servioticy.embedded import tcp_ports
from servioticy.errors import ServioticyError, Unavailable

CUT = (0, None)
"""Instead of an answer, the connection ends."""


@dataclass
class Server:
    """What it will answer, and what it was asked."""

    url: str = ""
    answers: list[tuple[int, Any]] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    """more of them, with every answer"""
    links: list[str] = field(default_factory=list)
    asked: list[tuple[str, str, bytes]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    tokens: set[str | None] = field(default_factory=set)
    clients: set[tuple[str, int]] = field(default_factory=set)


@pytest.fixture
def server() -> Iterator[Server]:
    told = Server()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            told.asked.append((self.command, self.path, body))
            told.tokens.add(self.headers.get("Authorization"))
            told.clients.add(self.client_address)
            told.keys.append(self.headers.get("Idempotency-Key"))
            status, document = told.answers.pop(0)
            if (status, document) == CUT:
                self.close_connection = True
                return
            text = b"" if document is None else json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.send_header("ETag", '"7"')
            for name, value in told.headers.items():
                self.send_header(name, value)
            if told.links:
                self.send_header("Link", told.links.pop(0))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_PUT = do_POST = do_DELETE = answer  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as serving:
        serving.daemon_threads = True
        told.url = f"http://127.0.0.1:{serving.server_address[1]}"
        thread = threading.Thread(target=serving.serve_forever, args=(0.01,))
        thread.start()
        yield told
        serving.shutdown()
        thread.join()


QUICK = Retries(first_pause_seconds=0.0)


class Driven:
    """`AsyncRest` as if it were `Rest`: a loop of its own runs each call to its end."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        self._runner = asyncio.Runner()
        self._api = AsyncRest(*arguments, **more)

    def __enter__(self) -> Driven:
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.run(self._api.close())
        self._runner.close()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **more: Any) -> Any:
            found = getattr(self._api, name)(*arguments, **more)
            if inspect.isasyncgen(found):
                return self._runner.run(_listed(found))
            return self._runner.run(found)

        return call


async def _listed(found: Any) -> list[Any]:
    return [each async for each in found]


@pytest.fixture(params=[Rest, Driven], ids=["threads", "asyncio"])
def client(request: pytest.FixtureRequest, server: Server) -> Callable[..., Any]:
    """Makes a client of the server, or of another address."""

    def made(url: str = "", retries: Retries = QUICK) -> Any:
        return request.param(url or server.url, "secret", retries=retries)

    return made


Client = Callable[..., Any]


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


@pytest.mark.parametrize(
    "trouble",
    [(503, {"message": "wait"}), (502, None), (504, None), (429, {"message": "later"}), CUT],
)
def test_what_heals_is_asked_again(
    server: Server, client: Client, trouble: tuple[int, Any]
) -> None:
    server.answers = [trouble, trouble, (200, [])]
    with client() as api:
        assert api.ids() == []
    assert len(server.asked) == 3


def test_it_is_not_asked_for_ever(server: Server, client: Client) -> None:
    server.answers = [(503, {"message": "the log does not answer"})] * (QUICK.tries + 1)
    with (
        client() as api,
        pytest.raises(Unavailable, match="PUT /so1/streams/s: the log does not answer"),
    ):
        api.put("so1", "s", {})
    assert len(server.asked) == QUICK.tries


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 412, 413, 415, 500])
def test_what_stays_wrong_is_asked_once(server: Server, client: Client, status: int) -> None:
    server.answers = [(status, {"status": status, "message": "no"})]
    with client() as api, pytest.raises(Answered, match=f"{status}: no") as told:
        api.create({})
    assert (told.value.status, told.value.reason) == (status, "no")
    assert (told.value.pointer, told.value.code) == (None, None)
    assert len(server.asked) == 1


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


def test_one_request_is_answered_whatever_the_answer_is(server: Server, client: Client) -> None:
    server.answers = [(503, {"message": "later"})]
    with client() as api:
        answer = api.request("GET", "/so1", headers={"If-Match": "x"})
    assert (answer.status, answer.headers["etag"]) == (503, '"7"')
    assert answer.json() == {"message": "later"}
    assert len(server.asked) == 1


def test_nobody_there(server: Server, client: Client) -> None:
    with client(f"http://127.0.0.1:{tcp_ports.free()}") as api:
        with pytest.raises(Unavailable):
            api.request("GET", "/")
        with pytest.raises(Unavailable, match="does not take GET /"):
            api.ids()


def test_a_request_that_cannot_be_sent_is_not_tried_again(client: Client) -> None:
    with (
        client("ftp://127.0.0.1") as api,
        pytest.raises(ServioticyError, match="cannot be sent") as told,
    ):
        api.ids()
    assert not isinstance(told.value, Unavailable)


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


def test_an_answer_says_when_to_come_again(server: Server, client: Client) -> None:
    """The pause is at least as long as it asks for."""
    server.headers = {"Retry-After": "1"}
    server.answers = [(429, {"message": "later"}), (200, [])]
    begun = time.monotonic()
    with client() as api:
        assert api.ids() == []

    assert time.monotonic() - begun >= 1.0
    assert len(server.asked) == 2


def test_who_is_to_come_much_later_gives_up(server: Server, client: Client) -> None:
    server.headers = {"Retry-After": "3600"}
    server.answers = [(429, {"message": "tomorrow"}), (503, {"message": "tomorrow"})]
    with client() as api:
        with pytest.raises(TooMany, match="tomorrow"):
            api.ids()
        with pytest.raises(Unavailable, match="tomorrow"):
            api.ids()

    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("told", "least", "most"),
    [("7", 7.0, 7.0), ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0, 0.0), ("soon", None, None),
     ("", None, None), ("Wed, 21 Oct 2065 07:28:00 GMT", 1e8, 1e10)],
)  # fmt: skip
def test_retry_after_is_seconds_or_a_date(told: str, least: Any, most: Any) -> None:
    asked = calls.Answer(503, {"retry-after": told}, b"").retry_after()

    assert (asked is None) if least is None else (least <= asked <= most)


def test_pauses_double_up_to_the_longest_and_differ() -> None:
    """Who was refused together does not come back together."""
    retries = Retries(tries=9, first_pause_seconds=1.0, longest_pause_seconds=16.0)
    pauses = [[retries.pause(attempt) or 0.0 for attempt in range(8)] for _ in range(50)]
    for each in pauses:
        for attempt, pause in enumerate(each):
            longest = min(16.0, 2.0**attempt)
            assert longest / 2 <= pause <= longest
    assert len({each[0] for each in pauses}) > 1
    assert retries.pause(8) is None


def test_what_is_created_again_has_the_same_key(server: Server, client: Client) -> None:
    """By it the API knows that it is the same; another object has another key."""
    server.answers = [CUT, (503, None), (201, {"id": "so1"}), (201, {"id": "so2"})]
    with client() as api:
        assert [api.create({}), api.create({})] == ["so1", "so2"]

    assert server.keys[0] == server.keys[1] == server.keys[2]
    assert None not in server.keys
    assert server.keys[3] != server.keys[2]


def test_what_the_first_attempt_is_still_being_worked_on_for_is_waited_for(
    server: Server, client: Client
) -> None:
    """A conflict at once is somebody else's."""
    server.answers = [CUT, (409, {"message": "still"}), (201, {"id": "so1"}), (409, None)]
    with client() as api:
        assert api.create({}) == "so1"
        with pytest.raises(Conflict):
            api.create({})

    assert len(server.asked) == 4


def test_a_subscription_is_not_made_twice(server: Server, client: Client) -> None:
    server.answers = [CUT]
    with client() as api, pytest.raises(Unavailable):
        api.subscribe("so1", "s", {"callback": "websocket"})

    assert len(server.asked) == 1


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


def test_the_last_updates_of_many_streams(server: Server, client: Client) -> None:
    entries = [{"update": {"lastUpdate": 1}}, {"update": None}, {"status": 404}]
    server.answers = [(200, {"data": entries})]
    with client() as api:
        found = api.last_updates([("so1", "a"), ("so1", "b"), ("so2", "c")])

    assert found == [{"lastUpdate": 1}, None, None]


def test_what_may_do_harm_again_is_not_sent_again(server: Server, client: Client) -> None:
    """Unless the answer says that nothing was done."""
    call = calls.Call("POST", "/x", lambda answer: answer.status, harmless_again=False)
    server.answers = [CUT, (503, {"message": "who knows"}), (429, None), (201, {})]
    with client() as api:
        for problem in ("", "who knows"):
            with pytest.raises(Unavailable, match=f"POST /x: .*{problem}"):
                api.run(call)
        assert api.run(call) == 201

    assert len(server.asked) == 4


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


def an_update(at: int, text: str = "") -> dict[str, Any]:
    return {"channels": {"t": {"current-value": text}}, "lastUpdate": at}


def test_many_updates_go_in_as_few_batches_as_may_be(server: Server, client: Client) -> None:
    """What is refused is told by its place among all."""
    refusal = {"index": 1, "status": 400, "message": "no", "pointer": "/x", "code": "wrong-type"}
    server.answers = [
        (202, {"accepted": 10_000, "refused": 0}),
        (207, {"accepted": 1, "refused": 1, "items": [refusal]}),
    ]
    with client() as api:
        result = api.put_many("so1", "s", [an_update(at) for at in range(10_002)])

    assert result.accepted == 10_001
    assert result.refused == (Refusal(10_001, 400, "no", "/x", "wrong-type"),)
    [first, second] = [body.splitlines() for _, _, body in server.asked]
    assert (len(first), len(second)) == (10_000, 2)
    assert json.loads(second[0])["lastUpdate"] == 10_000


def test_a_batch_has_no_more_bytes_than_are_taken(server: Server, client: Client) -> None:
    updates = [("so1", "s", an_update(at, "x" * 300_000)) for at in range(7)]
    server.answers = [(202, {"accepted": 3, "refused": 0})] * 2 + [(202, {"accepted": 1})]
    with client() as api:
        assert api.put_everywhere(updates).accepted == 7

    assert max(len(body) for _, _, body in server.asked) < batches.MAX_BYTES + 10
    assert [path for _, path, _ in server.asked] == ["/updates"] * 3


def test_a_batch_names_no_more_streams_than_it_may(server: Server, client: Client) -> None:
    updates = [("so1", f"s{at // 2}", an_update(at)) for at in range(2_002)]
    server.answers = [(202, {"accepted": 2_000}), (202, {"accepted": 2})]
    with client() as api:
        assert api.put_everywhere(updates).accepted == 2_002

    assert [len(body.splitlines()) for _, _, body in server.asked] == [2_000, 2]


def test_no_updates_are_no_request(server: Server, client: Client) -> None:
    with client() as api:
        assert api.put_many("so1", "s", []) == api.put_everywhere([])

    assert server.asked == []
