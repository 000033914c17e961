"""What the client of the REST API asks again, and what it does not, in both its forms."""

from __future__ import annotations

import time
from typing import Any

import pytest
from rest_server import CUT, QUICK, Client, Server, client, server

from servioticy.client import (
    Answered,
    Conflict,
    Retries,
    TooMany,
    calls,
)
from servioticy.embedded import tcp_ports
from servioticy.errors import ServioticyError, Unavailable

__all__ = ["client", "server"]


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
        with pytest.raises(Unavailable, match=r"no answer to GET /.*nothing answers at"):
            api.ids()


def test_a_request_that_cannot_be_sent_is_not_tried_again(server: Server, client: Client) -> None:
    with (
        client() as api,
        pytest.raises(ServioticyError, match="cannot be sent") as told,
    ):
        api.request("GET", "/", headers={"name": "two\r\nlines"})
    assert not isinstance(told.value, Unavailable)


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
