"""Where the console is, and whose sockets count as its own."""

from __future__ import annotations

import pytest

from delivery.admission.console import NO_CONSOLE, of_session
from servioticy.bootstrap import console_place
from servioticy.domain.console import Place, secret_in
from servioticy.settings import Settings, changed

HERE = console_place(Settings())
PUBLIC = console_place(changed(Settings(), public_url="https://iot.example/api/"))
COOKIE = f"{HERE.cookie}=secret"


def test_on_loopback_all_names_of_this_machine_are_ours() -> None:
    assert set(HERE.origins) == {
        "http://127.0.0.1:8080",
        "http://localhost:8080",
        "http://[::1]:8080",
    }
    assert "ws://localhost:8081" in HERE.sockets


def test_behind_a_proxy_the_public_name_is() -> None:
    assert PUBLIC.origins == ("https://iot.example",)
    assert PUBLIC.sockets == ("wss://iot.example:8081",)
    assert PUBLIC.base == "/api"


def test_sockets_may_have_an_address_of_their_own() -> None:
    chosen = changed(
        Settings(), public_url="https://iot.example", live_public_url="https://iot.example/live/"
    )
    assert console_place(chosen).sockets == ("wss://iot.example/live",)


def test_where_nobody_knows_our_name_there_is_no_place() -> None:
    place = console_place(changed(Settings(), host="0.0.0.0"))

    assert (place.origins, place.may_sign_in) == ((), False)


def test_a_socket_of_our_page_is_the_sessions() -> None:
    assert of_session(HERE, f"a=b; {COOKIE}", ["http://localhost:8080"]) == "console secret"


@pytest.mark.parametrize(
    "origins",
    [
        [],
        ["null"],
        ["http://127.0.0.1:3000"],
        ["https://127.0.0.1:8080"],
        ["http://evil.example"],
        ["http://127.0.0.1:8080.evil.example"],
        ["http://127.0.0.1:8080", "http://evil.example"],
    ],
    ids=str,
)
def test_a_socket_of_another_page_is_nobodys(origins: list[str]) -> None:
    assert of_session(HERE, COOKIE, origins) == ""


def test_without_a_console_a_cookie_is_nothing() -> None:
    assert of_session(NO_CONSOLE, COOKIE, ["http://127.0.0.1:8080"]) == ""


@pytest.mark.parametrize(
    "cookies", ["", "other=1", f"{Place('https://a').cookie}=x", 'servioticy-session="', "=;=;"]
)
def test_what_is_no_cookie_of_ours_holds_nothing(cookies: str) -> None:
    assert secret_in(cookies, HERE.cookie) == ""
