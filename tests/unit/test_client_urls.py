"""Addresses and tokens as people write them: usable, or refused with what was expected."""

from __future__ import annotations

import pytest

from servioticy.client import AsyncRest, Follower, Rest, urls
from servioticy.domain.model import StreamRef
from servioticy.errors import ServioticyError

BAD = [
    *("", " ", "localhost", "localhost:8080", "127.0.0.1:8080", "//localhost", "http://"),
    *("http://:8080", "http://host:port", "http://host:99999", "http://host:0", "http://[::1"),
    *("ftp://host", "file:///etc/passwd", "http://ho st", "http://host/?a=b", "http://host/#a"),
    *("http://me:secret@host", "http://h\u00f6st", "http://host\n", "http://ho\nst", "\0"),
]


@pytest.mark.parametrize("text", BAD)
@pytest.mark.parametrize("kind", [urls.api, urls.live])
def test_what_is_no_address_is_refused_in_a_line(kind, text: str) -> None:
    with pytest.raises(ServioticyError, match="://HOST:PORT") as told:
        kind(text)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("http://127.0.0.1:8081/", "ws://127.0.0.1:8081"),
        ("https://iot.example.org", "wss://iot.example.org"),
        ("ws://[::1]:8081", "ws://[::1]:8081"),
        ("WSS://iot.example.org/live/", "wss://iot.example.org/live"),
    ],
)
def test_sockets_are_found_by_either_scheme(given: str, used: str) -> None:
    assert Follower(given, StreamRef("so", "s"), "t").url == used


@pytest.mark.parametrize("text", ["ws://127.0.0.1:8081", "nowhere"])
@pytest.mark.parametrize("client", [Rest, AsyncRest])
def test_a_client_of_the_api_takes_only_its_addresses(client, text: str) -> None:
    with pytest.raises(ServioticyError, match="http://HOST:PORT"):
        client(text, "token")


@pytest.mark.parametrize("token", ["t\u00f6ken", "to\nken", " t0ken", "t0ken ", "to\0ken"])
def test_a_token_that_cannot_be_sent_is_not_shown(token: str) -> None:
    for make in (
        lambda: Rest("http://127.0.0.1:1", token),
        lambda: Follower("ws://127.0.0.1:1", StreamRef("so", "s"), token),
    ):
        with pytest.raises(ServioticyError, match="token") as told:
            make()
        assert token not in str(told.value)
