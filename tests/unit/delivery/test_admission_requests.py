"""Who may watch which stream, and what the others are told."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from delivery.admission.refusals import Refusal
from delivery.admission.requests import Admission, WatchRequest, admit, read_request
from servioticy.domain.access import Scope
from servioticy.domain.model import StreamKey, StreamRef
from servioticy.ports.addresses import Address

OURS, THEIRS = 1, 2


class Addresses:
    """One tenant's token, three Service Objects with a stream `data`."""

    def address(self, token: str, service_object: str, stream: str | None) -> Address | None:
        if token not in ("good", "device"):
            return None
        owner, public = {
            "mine": (OURS, False),
            "private": (THEIRS, False),
            "open": (THEIRS, True),
        }.get(service_object, (None, False))
        known = None if owner is None else service_object
        stream_id = 42 if known and stream == "data" else None
        scope = Scope("mine") if token == "device" else Scope()
        return Address(OURS, known, owner, public, 1, 0, stream_id, scope)


def ask(target: str, authorization: str = "good") -> Admission | Refusal:
    request = read_request(target, authorization)
    return admit(request, Addresses()) if isinstance(request, WatchRequest) else request


def status(answer: Admission | Refusal) -> int:
    return answer.status if isinstance(answer, Refusal) else 101


@pytest.mark.parametrize("header", ["good", "Bearer good", "bearer  good", " good "])
def test_a_token_comes_raw_or_as_bearer(header: str) -> None:
    stream = StreamRef("mine", "data")
    assert ask("/mine/streams/data/live", header) == Admission(
        stream, StreamKey(OURS, 42), None, 1, False, OURS, 0, "good", b""
    )


def test_a_device_watches_its_own_object_only() -> None:
    assert status(ask("/mine/streams/data/live", "device")) == 101
    for other in ("open", "private", "none"):
        assert status(ask(f"/{other}/streams/data/live", "device")) == 403


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
        ("/mine/streams/data/live?afer=1", "good", 400, "did you mean 'after'?"),
        ("/mine/streams/data/live?acess_token=good", "", 400, "did you mean 'access_token'?"),
        ("/mine/streams/data/live?after=soon", "good", 400, "after has to be"),
        ("/mine/streams/data/live?after=99999999999999999999", "good", 400, "after has to be"),
        (
            "/mine/streams/data/live?after=2026-11-24T09:30:00",
            "good",
            400,
            "after is a date without",
        ),
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


PIECES = [*"/[]?#%:@&;=", "//", "/[x", "%00", "%ff", "%ed%a0%80", "http://", "1" * 30]
PIECES += ["mine", "/streams/", "data", "/live", "after=", "access_token=", "good"]
PIECES += ["\ud800", "\0", "\u202e", "\n"]


@given(
    st.one_of(st.text(), st.lists(st.sampled_from(PIECES)).map("".join)),
    st.one_of(st.text(), st.sampled_from(["good", "Bearer good", "Bearer", "\xff", "\ud800"])),
)
@example("//[/x", "good")
@example("http://[::1/mine/streams/data/live", "good")
@example("/mine/streams/data/live?after=" + "9" * 5000, "good")
@example("/mine/streams/data/live?after=\u0661", "good")
@example("/mine/streams/%ed%a0%80/live", "good")
@example("/mine/streams/data/live?access_token=%ff", "")
def test_no_request_is_more_than_refused(target: str, authorization: str) -> None:
    """Whatever stands in it, the answer is the client's mistake, and text a store can take."""
    request = read_request(target, authorization)
    if isinstance(request, WatchRequest):
        for text in (request.token, *request.stream):
            assert "\0" not in text
            text.encode()

    assert status(ask(target, authorization)) in (101, 400, 401, 403, 404)


def test_what_is_no_address_is_told_so() -> None:
    assert status(ask("//[/x")) == 400


def test_one_may_begin_after_a_date() -> None:
    answer = ask("/mine/streams/data/live?after=2026-11-24T10:30:00.250+01:00", "good")

    assert isinstance(answer, Admission)
    assert answer.after == 1_795_512_600_250
