"""Whose topics of a foreign broker are, and how sure of it we are: what settings may say."""

from __future__ import annotations

import pytest

from broker.bridge.bindings import read_bindings, read_target
from servioticy.errors import SettingsError
from servioticy.settings import changed, load
from servioticy.settings.outward import Bridge
from servioticy.settings.sections import Settings


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("mqtt://broker", ("broker", 1883, False)),
        ("mqtts://broker", ("broker", 8883, True)),
        ("mqtt://[::1]:99", ("::1", 99, False)),
    ],
)
def test_the_address_says_how_it_is_spoken_to(url: str, place: tuple[str, int, bool]) -> None:
    target = read_target(Bridge(url=url))

    assert (target.host, target.port, target.tls is not None) == place


@pytest.mark.parametrize("url", ["mqtt://broker:99999", "mqtt://:1883", "mqtt://broker:x"])
def test_what_is_no_address_is_told(url: str) -> None:
    with pytest.raises(SettingsError, match="bridge_url"):
        read_target(Bridge(url=url))


@pytest.mark.parametrize(
    "url", ["http://broker", "mqtt://user:secret@broker", "mqtt://broker/path", "broker:1883"]
)
def test_an_address_has_no_secrets_and_nothing_that_means_nothing(url: str) -> None:
    with pytest.raises(SettingsError, match="mqtt://HOST:PORT"):
        load({}, {"bridge_url": url})


def test_files_that_are_not_there_are_told_by_their_settings() -> None:
    with pytest.raises(SettingsError, match="bridge_ca = '/no/such'"):
        read_target(Bridge(url="mqtts://broker", ca="/no/such"))


def test_a_password_needs_a_user() -> None:
    with pytest.raises(SettingsError, match="bridge_user"):
        read_target(Bridge(url="mqtt://broker", password="secret"))


def test_each_tenant_has_a_connection_of_its_own_name() -> None:
    """The broker would end one where another of that name comes."""
    bindings = read_bindings(Bridge(tenants={"a/b": "1", "a-b": "2", "a_b": "3"}))

    assert [each.client_id for each in bindings] == [
        "servioticy.a-b",
        "servioticy.a.b",
        "servioticy.a_b",
    ]


@pytest.mark.parametrize("prefixes", [("", "a"), ("a", "a/b"), ("a/b", "a/b/c")])
def test_no_prefix_lies_below_another_s(prefixes: tuple[str, str]) -> None:
    """One of the two tenants would get what is the other's."""
    with pytest.raises(SettingsError, match="lies below"):
        read_bindings(Bridge(tenants=dict.fromkeys(prefixes, "token")))


def test_somebody_has_to_have_topics_there() -> None:
    with pytest.raises(SettingsError, match="bridge_tenants"):
        read_bindings(Bridge(url="mqtt://broker"))


@pytest.mark.parametrize("prefix", ["a/", "/a", "a//b", "+", "#", "a b", "$SYS", "a.b", "x" * 51])
def test_a_prefix_is_plain(prefix: str) -> None:
    with pytest.raises(SettingsError, match="bridge_tenants"):
        load({}, {"bridge_tenants": {prefix: "token"}})


def test_tokens_and_passwords_are_shown_nowhere() -> None:
    secrets = {"bridge_tenants": {"a": "hunter2"}, "bridge_password": "hunter3"}
    chosen = changed(Settings(), bridge_url="mqtt://b", bridge_user="me", **secrets)
    shown = f"{chosen} {read_target(chosen.bridge)} {read_bindings(chosen.bridge)}"

    assert "hunter" not in shown
