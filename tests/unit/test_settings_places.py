"""What `servioticy up` lets callbacks reach on its own machine."""

from __future__ import annotations

import pytest

from servioticy.settings import Settings, changed
from servioticy.settings.declared import DECLARED
from servioticy.settings.places import (
    LOOPBACK_NETWORKS,
    callback_networks,
    on_one_machine,
    own_ports,
)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "localhost"])
def test_who_listens_on_loopback_alone_may_call_itself(host: str) -> None:
    settings = changed(Settings(), host=host)

    assert callback_networks(settings) == []  # the programs by themselves
    assert callback_networks(on_one_machine(settings)) == LOOPBACK_NETWORKS.split()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "10.0.0.1", "iot.example.org"])
def test_who_is_reached_from_outside_calls_nobody_inside(host: str) -> None:
    assert callback_networks(on_one_machine(changed(Settings(), host=host))) == []


@pytest.mark.parametrize(
    ("said", "found"),
    [("none", []), (" none ", []), ("10.0.0.0/8 ::1/128", ["10.0.0.0/8", "::1/128"])],
)
def test_what_the_operator_says_stays(said: str, found: list[str]) -> None:
    settings = changed(Settings(), live_callback_networks=said)

    assert callback_networks(on_one_machine(settings)) == found


def test_every_setting_that_is_a_port_is_the_platforms_own() -> None:
    """So none that comes later can be called."""
    names = [name for name in DECLARED if name.endswith("_port")]
    settings = changed(Settings(), **{name: 20_000 + n for n, name in enumerate(names)})

    assert own_ports(settings) == {20_000 + n for n in range(len(names))}
    assert own_ports(changed(settings, mqtt_port=0)) == own_ports(settings) - {settings.mqtt.port}
