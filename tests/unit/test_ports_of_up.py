"""The ports of `servioticy up`: each can be chosen, and what is taken is told with the remedy."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace

import pytest

from command import cli, listening, up
from servioticy.embedded import tcp_ports
from servioticy.errors import SettingsError, SetupError
from servioticy.settings import Settings, changed, load
from servioticy.settings.loading import by_name


@pytest.fixture
def busy() -> Iterator[int]:
    """A port that somebody else listens on."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


@pytest.fixture
def chosen(monkeypatch) -> list[Settings]:
    """The settings that `up` was run with."""
    seen: list[Settings] = []
    monkeypatch.setattr(up, "run", lambda settings, *_: seen.append(settings) or 0)
    return seen


def without_ports() -> Settings:
    """None but the two that have to be, on free ones."""
    own = {"api_port": tcp_ports.free(), "live_port": tcp_ports.free()}
    none = dict.fromkeys(set(listening.NAMES) - own.keys(), 0)
    return load({}, {**none, **own})


@pytest.mark.parametrize("name", listening.NAMES)
def test_every_port_is_an_option(name: str, chosen: list[Settings]) -> None:
    assert cli.main(["up", listening.option(name), "4711"]) == 0
    assert by_name(chosen[0])[name] == 4711


def test_all_ports_are_counted_on_from_one_and_an_option_wins(chosen: list[Settings]) -> None:
    cli.main(["up", "--ports", "9000", "--mqtt-port", "1884"])

    found = by_name(chosen[0])
    expected = {name: 9000 + place for place, name in enumerate(listening.NAMES)}
    off = {name for name in listening.NAMES if by_name(Settings())[name] == 0}
    assert {name: found[name] for name in listening.NAMES if name not in off} == {
        name: port for name, port in {**expected, "mqtt_port": 1884}.items() if name not in off
    }
    assert (found["api_port"], found["live_port"]) == (9000, 9001)


def test_a_port_that_is_none_stays_none(monkeypatch, chosen: list[Settings]) -> None:
    monkeypatch.setenv("SERVIOTICY_MQTT_PORT", "0")

    cli.main(["up", "--ports", "9000"])

    assert chosen[0].mqtt.port == 0


@pytest.mark.parametrize("first", [0, -1, 65_536 - len(listening.NAMES) + 1])
def test_ports_have_to_fit(first: int, chosen: list[Settings], capsys) -> None:
    assert cli.main(["up", f"--ports={first}"]) == 1
    assert "--ports" in capsys.readouterr().err
    assert cli.main(["up", f"--ports={65_536 - len(listening.NAMES)}"]) == 0


@pytest.mark.parametrize("name", listening.NAMES)
def test_a_chosen_port_that_is_taken_names_its_option(name: str, busy: int) -> None:
    with pytest.raises(SetupError) as error:
        listening.taken(changed(without_ports(), **{name: busy}))

    for remedy in (str(busy), listening.option(name), "--ports", "make demo PORTS="):
        assert remedy in str(error.value)


def test_a_default_that_is_taken_is_no_reason_not_to_run(busy: int, monkeypatch) -> None:
    """Somebody's own MQTT broker is often there already; the lines that tell what runs say so."""
    settings = without_ports()
    known = listening.DECLARED
    monkeypatch.setitem(known, "mqtt_port", replace(known["mqtt_port"], default=busy))
    settings = changed(settings, mqtt_port=busy)

    lacking = listening.taken(settings)

    assert [each.setting for each in lacking] == ["mqtt_port"]
    assert f"  mqtt     none: port {busy} is taken (--mqtt-port)" in listening.shown(
        settings, lacking
    )


def test_two_parts_cannot_have_one_port() -> None:
    settings = changed(without_ports(), api_port=4711, live_port=4711)

    with pytest.raises(SettingsError, match="--api-port and --live-port"):
        listening.taken(settings)


def test_what_runs_is_named_with_its_address() -> None:
    settings = load({}, {"api_port": 1, "live_port": 2, "mqtt_port": 3, "up_metrics_port": 4})
    lines = "\n".join(listening.shown(settings, []))

    for address in (
        *("http://127.0.0.1:1", "ws://127.0.0.1:2", "mqtt://127.0.0.1:3", "stomp://127.0.0.1:3"),
        "http://127.0.0.1:4/metrics (up)",
    ):
        assert address in lines
    assert {each.split()[0] for each in lines.splitlines()} >= {"api", "live", "mqtt", "metrics"}


def test_a_port_is_looked_at_where_it_will_be_listened_on(busy: int) -> None:
    """Of IPv6, too: there the same number is free."""
    assert not tcp_ports.is_free(busy)
    assert tcp_ports.is_free(busy, "::1") or not socket.has_ipv6
