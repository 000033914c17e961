"""When an issuer is asked for its keys, and which of them count."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator, Sequence
from typing import Any
from unittest import mock

import pytest
from file_server import FileServer
from support.token_issuer import NOW, TokenIssuer

from servioticy.errors import SettingsError, Unavailable
from servioticy.identity import fetching
from servioticy.identity import keys as module
from servioticy.identity.errors import NoKeys, NotAccepted
from servioticy.identity.fetching import fetch, is_safe
from servioticy.identity.issuers import with_persons
from servioticy.identity.keys import GOOD_SECONDS, LATE_SECONDS, IssuerKeys
from servioticy.identity.signatures import MAX_KEYS, PublicKey
from servioticy.settings.outward import Identity

SECONDS = 20.0


def test_before_the_keys_are_known_it_is_worth_another_try() -> None:
    issuer = TokenIssuer()
    with pytest.raises(NoKeys):
        issuer.keys.of(issuer.key.kid, NOW)

    issuer.keys.refresh()
    assert [each.id for each in issuer.keys.of(issuer.key.kid, NOW)] == [issuer.key.kid]


def test_an_unknown_key_may_be_new_only_to_a_token_that_is() -> None:
    """One that was issued before we asked last, by a key that was not there then, is forged."""
    issuer = TokenIssuer()
    issuer.keys.refresh()

    with pytest.raises(NotAccepted, match="no such key"):
        issuer.keys.of("other", NOW - 1)
    with pytest.raises(NoKeys):
        issuer.keys.of("other", NOW)


@pytest.mark.parametrize(("age", "is_wanted"), [(LATE_SECONDS, True), (LATE_SECONDS + 1, False)])
def test_a_key_that_a_cache_tells_late_is_asked_for_again(age: float, is_wanted: bool) -> None:
    """The token was issued before we asked; what we got then may have been older than it."""
    issuer = TokenIssuer()
    issuer.keys.refresh()

    with pytest.raises(NotAccepted):
        issuer.keys.of("other", NOW - age)

    assert issuer.keys._is_wanted.is_set() is is_wanted


def test_no_keys_take_the_place_of_no_good_ones() -> None:
    """Else nobody would be let in while an issuer is being set up anew."""
    issuer = TokenIssuer()
    published, issuer.published = issuer.published, []
    assert not issuer.keys.refresh()
    issuer.published = published
    assert issuer.keys.refresh()
    issuer.published = []

    assert not issuer.keys.refresh()

    assert issuer.keys.of(issuer.key.kid, NOW)
    assert issuer.keys.changes == 1


def test_keys_stay_while_the_issuer_is_away_but_not_for_ever() -> None:
    issuer = TokenIssuer()
    issuer.keys.refresh()

    def away() -> Sequence[PublicKey]:
        raise Unavailable("nobody there")

    with mock.patch.object(issuer.keys, "_fetch", away):
        assert not issuer.keys.refresh()
        issuer.clock.now += GOOD_SECONDS
        assert issuer.keys.of(issuer.key.kid, NOW)
        issuer.clock.now += 1
        with pytest.raises(NoKeys):
            issuer.keys.of(issuer.key.kid, NOW)
    assert issuer.keys.refresh()
    assert issuer.keys.of(issuer.key.kid, NOW)


def test_what_nobody_has_thought_of_ends_no_thread() -> None:
    issuer = TokenIssuer()
    issuer.keys.refresh()
    with mock.patch.object(issuer.keys, "_fetch", side_effect=ZeroDivisionError):
        assert not issuer.keys.refresh()
    assert issuer.keys.of(issuer.key.kid, NOW)


def test_keys_that_are_the_same_are_no_change() -> None:
    issuer = TokenIssuer()
    for _ in range(3):
        issuer.keys.refresh()
    assert issuer.keys.changes == 1

    issuer.rotate()
    issuer.keys.refresh()
    assert issuer.keys.changes == 2


def test_whatever_keys_are_asked_for_the_issuer_is_asked_now_and_then() -> None:
    """Between two questions lies a pause that no request shortens; one question answers all."""
    asked, may_go = threading.Semaphore(0), threading.Event()

    def answer() -> Sequence[PublicKey]:
        asked.release()
        return TokenIssuer().fetch()

    keys = IssuerKeys("https://login.example.org", answer, lambda: NOW)
    waits: list[float | None] = []

    def pause(seconds: float | None = None) -> bool:
        waits.append(seconds)
        return may_go.wait(SECONDS)

    with mock.patch.object(keys._is_stopped, "wait", pause):
        keys.start()
        assert asked.acquire(timeout=SECONDS)
        for number in range(1_000):
            with pytest.raises(NoKeys):
                keys.of(f"key {number}", NOW)
        assert not asked.acquire(blocking=False)
        may_go.set()
        assert asked.acquire(timeout=SECONDS)
        assert waits[0] == module.PAUSE_SECONDS
        keys.stop()


# What is fetched


def served(repository: FileServer, **others: Any) -> str:
    """An issuer on the loopback; returns its name."""
    key = TokenIssuer().published[0]
    said = {"issuer": repository.address, "jwks_uri": f"{repository.address}/keys", **others}
    repository.put(".well-known/openid-configuration", json.dumps(said).encode())
    repository.put("keys", json.dumps({"keys": [key]}).encode())
    return repository.address


def test_keys_are_where_the_issuer_says(repository: FileServer) -> None:
    issuer = served(repository)

    assert [each.id for each in fetch(issuer)] == ["key-0"]
    assert repository.asked == ["/.well-known/openid-configuration", "/keys"]


@pytest.mark.parametrize(
    "others",
    [
        {"issuer": "https://other.example.org"},
        {"issuer": None},
        {"jwks_uri": None},
        {"jwks_uri": "http://192.0.2.1/keys"},
        {"jwks_uri": "file:///etc/passwd"},
        {"jwks_uri": "http://[/"},
        {"jwks_uri": 5},
    ],
)
def test_an_issuer_that_says_something_else_is_not_believed(
    repository: FileServer, others: dict[str, Any]
) -> None:
    issuer = served(repository, **others)

    with pytest.raises(Unavailable):
        fetch(issuer)
    assert repository.asked == ["/.well-known/openid-configuration"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no json",
        b"[]",
        b'{"keys":5}',
        b"[" * 10_000,
        json.dumps({"keys": [{"kty": "EC"}] * (MAX_KEYS + 1)}).encode(),
        b" " * (fetching.MAX_BYTES + 1),
    ],
    ids=["nothing", "no json", "a list", "no list", "nested", "too many", "too long"],
)
def test_what_is_no_set_of_keys_is_refused(repository: FileServer, content: bytes) -> None:
    issuer = served(repository)
    repository.put("keys", content)

    with pytest.raises(Unavailable):
        fetch(issuer)


def test_as_many_keys_and_bytes_as_may_be_are_read(repository: FileServer) -> None:
    issuer = served(repository)
    key = json.dumps(TokenIssuer().published[0])
    text = '{"keys":[' + ",".join([key] * MAX_KEYS) + "]}"
    repository.put("keys", text.ljust(fetching.MAX_BYTES).encode())

    assert len(fetch(issuer)) == MAX_KEYS


def test_an_issuer_that_is_not_there_is_unavailable(repository: FileServer) -> None:
    with pytest.raises(Unavailable, match="404"):
        fetch(repository.address)
    with pytest.raises(Unavailable):
        fetch("http://127.0.0.1:1")


@pytest.fixture
def trickling() -> Iterator[str]:
    """The address of a server whose head of an answer has no end for a while."""
    ended = threading.Event()

    def trickle() -> None:
        with contextlib.suppress(OSError):
            connection, _ = listening.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
                for _ in range(int(SECONDS / 0.02)):
                    if ended.wait(0.02):
                        break
                    connection.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=trickle, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        ended.set()
    thread.join(SECONDS)


def test_an_issuer_has_so_much_time_for_all_of_it(
    trickling: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though each byte comes in time."""
    monkeypatch.setattr(fetching, "SECONDS", 0.2)

    with pytest.raises(Unavailable, match=r"takes longer than 0\.2 seconds"):
        fetch(trickling)


@pytest.mark.parametrize(
    ("url", "safe"),
    [
        ("https://login.example.org", True),
        ("http://127.0.0.1:8080/realms/a", True),
        ("http://localhost", True),
        ("http://[::1]:1", True),
        ("http://login.example.org", False),
        ("http://localhost.example.org", False),
        ("http://127.0.0.1@example.org/", False),
        ("ftp://127.0.0.1", False),
        ("https://", False),
        ("", False),
        (None, False),
    ],
)
def test_nobody_on_the_way_may_put_keys_in(url: object, safe: bool) -> None:
    """And an issuer elsewhere makes us ask nobody here."""
    assert is_safe(url) is safe
    assert is_safe(url, elsewhere=True) is (safe and str(url).startswith("https:"))


@pytest.mark.parametrize(
    ("issuers", "audience"),
    [
        ("https://login.example.org", ""),
        ("http://login.example.org", "us"),
        ("https://login.example.org nothing", "us"),
    ],
)
def test_settings_that_would_let_in_anybody_are_refused(issuers: str, audience: str) -> None:
    with pytest.raises(SettingsError, match="oidc_"):
        with_persons(mock.Mock(), Identity(issuers=issuers, audience=audience))


def test_without_an_issuer_nothing_is_put_before_the_store() -> None:
    """So a platform that knows none does for its tokens what it always did."""
    stored = mock.Mock()

    assert with_persons(stored, Identity()) is stored
