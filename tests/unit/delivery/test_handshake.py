"""Who may open a socket to which stream, and what the others are told."""

from __future__ import annotations

import json

import pytest

from delivery.handshake import Admission, Refusal, admit
from servioticy.model import StreamRef
from servioticy.ports import Address

OURS, THEIRS = 1, 2


class Catalog:
    """One tenant's token, three Service Objects with a stream `data`."""

    def address(self, token: str, service_object: str, stream: str | None) -> Address | None:
        if token != "good":
            return None
        owner, public = {
            "mine": (OURS, False),
            "private": (THEIRS, False),
            "open": (THEIRS, True),
        }.get(service_object, (None, False))
        known = None if owner is None else service_object
        stream_id = 42 if known and stream == "data" else None
        return Address(OURS, known, owner, public, 1, 0, stream_id)


def ask(target: str, authorization: str = "good") -> Admission | Refusal:
    return admit(target, authorization, Catalog())


def status(answer: Admission | Refusal) -> int:
    return answer.status if isinstance(answer, Refusal) else 101


@pytest.mark.parametrize("header", ["good", "Bearer good", "bearer  good", " good "])
def test_a_token_comes_raw_or_as_bearer(header: str) -> None:
    stream = StreamRef("mine", "data")
    assert ask("/mine/streams/data/live", header) == Admission(stream, 42, None, 1, foreign=False)


def test_who_watches_what_is_another_tenants_is_known() -> None:
    """What was public when the socket opened may become private."""
    answer = ask("/open/streams/data/live")
    assert isinstance(answer, Admission)
    assert answer.foreign


def test_browsers_give_the_token_in_the_address() -> None:
    """They cannot set headers of a WebSocket."""
    assert status(ask("/mine/streams/data/live?access_token=good", "")) == 101


@pytest.mark.parametrize(
    ("target", "header", "expected", "message"),
    [
        ("/mine/streams/data/live", "", 403, "Missing Authorization Header"),
        ("/mine/streams/data/live", "bad", 403, "Access was denied!"),
        ("/private/streams/data/live", "good", 401, "Not authorized"),
        ("/private/streams/none/live", "good", 401, "Not authorized"),
        ("/none/streams/data/live", "good", 404, "The Service Object was not found."),
        (
            "/mine/streams/none/live",
            "good",
            404,
            "This Service Object does not have this stream.",
        ),
        ("/mine/streams/data/live?after=soon", "good", 400, "after has to be"),
        ("/mine/streams/data/live?after=99999999999999999999", "good", 400, "after has to be"),
    ],
)
def test_refusals_say_why(target: str, header: str, expected: int, message: str) -> None:
    answer = ask(target, header)

    assert isinstance(answer, Refusal)
    body = json.loads(answer.body())
    assert (body["status"], answer.status) == (expected, expected)
    assert message in body["message"]
    assert body["info"]


def test_public_objects_are_for_everybody_with_a_token() -> None:
    assert status(ask("/open/streams/data/live")) == 101
    assert status(ask("/open/streams/data/live", "bad")) == 403


def test_what_is_no_stream_is_not_found() -> None:
    assert [status(ask(target)) for target in ("/", "/mine", "/mine/streams/data")] == [404] * 3


def test_a_timestamp_and_a_trailing_slash_are_understood() -> None:
    answer = ask("/mine/streams/data/live/?after=17&size=1")

    assert isinstance(answer, Admission)
    assert answer.after == 17


@pytest.mark.parametrize("target", ["/%00/streams/data/live", "/mine/streams/%00/live"])
def test_characters_no_store_knows_are_just_not_found(target: str) -> None:
    assert status(ask(target)) == 404
