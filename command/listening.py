"""The ports of a platform on one machine: an option for each, and what is told of them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from servioticy.errors import SettingsError, SetupError
from servioticy.settings import Settings, changed
from servioticy.settings.declared import DECLARED
from servioticy.settings.loading import by_name
from servioticy.settings.places import in_url

SUFFIX, METRICS_SUFFIX = "_port", "_metrics_port"
NAMES = tuple(
    sorted(
        (name for name in DECLARED if name.endswith(SUFFIX)),
        key=lambda name: name.endswith(METRICS_SUFFIX),
    )
)
"""Every setting that is a port, so that none comes without an option; those of metrics last."""
MUST_LISTEN = ("api_port", "live_port")
"""Without these there is no platform; the default of another may be somebody else's."""
FACTS = ("host", "metrics_host", "tls_certificate", *NAMES)
URLS = {
    "api_port": ("http://{}",),
    "live_port": ("ws://{}",),
    "mqtt_port": ("mqtt://{}", "stomp://{}"),
    "mqtt_tls_port": ("mqtts://{}",),
}


@dataclass(frozen=True, slots=True)
class Place:
    """One port of ours, by its setting, and the host it is listened on."""

    setting: str
    host: str
    port: int
    is_secure: bool = False
    """those that can speak both speak TLS"""

    @property
    def option(self) -> str:
        """Its option of `up`."""
        return option(self.setting)

    @property
    def is_chosen(self) -> bool:
        """Whether it has to be this very port."""
        return self.setting in MUST_LISTEN or self.port != DECLARED[self.setting].default

    @property
    def name(self) -> str:
        """What is there, in a word."""
        is_metrics = self.setting.endswith(METRICS_SUFFIX)
        return "metrics" if is_metrics else self.setting.removesuffix(SUFFIX)

    @property
    def urls(self) -> list[str]:
        """Where a client on this machine finds it."""
        at = f"{in_url(self.host)}:{self.port}"
        if self.name == "metrics":
            return [f"http://{at}/metrics ({self.setting.removesuffix(METRICS_SUFFIX)})"]
        known = URLS.get(self.setting, (f"{self.name} at {{}}",))
        if self.is_secure and self.setting in MUST_LISTEN:
            known = tuple(each.replace("://", "s://") for each in known)
        return [each.format(at) for each in known]


def option(setting: str) -> str:
    """Return the option of `up` that names this port."""
    return f"--{setting.replace('_', '-')}"


def counted(settings: Settings, first: int) -> Settings:
    """Return the settings with their ports counted on from the first; 0 stays none."""
    ports = by_name(settings)
    last = first + len(NAMES) - 1
    if not (first > 0 and last <= 65_535):
        most = 65_535 - len(NAMES) + 1
        raise SettingsError(f"--ports {first}: expected a whole number from 1 to {most}")
    given = {name: first + place for place, name in enumerate(NAMES) if ports[name]}
    return changed(settings, **given)


def places(settings: Settings) -> list[Place]:
    """Return every port that the settings let listen."""
    ports = by_name(settings)
    return [
        Place(
            name,
            settings.metrics_host if name.endswith(METRICS_SUFFIX) else settings.host,
            port,
            bool(settings.tls.certificate),
        )
        for name in NAMES
        if (port := ports[name])
    ]


def facts(settings: Settings) -> dict[str, Any]:
    """Return by setting where the platform listens, for those who look for it."""
    values = by_name(settings)
    return {name: values[name] for name in FACTS}


def taken(settings: Settings) -> list[Place]:
    """Return the ports that somebody else has, and that are no more than defaults.

    Raises SetupError where one is that has to be ours, SettingsError where two parts have one.
    """
    every = places(settings)
    first: dict[int, Place] = {}
    for each in every:
        if first.setdefault(each.port, each) is not each:
            both = f"{first[each.port].option} and {each.option}"
            raise SettingsError(f"port {each.port} is named twice: {both}")
    from servioticy.embedded import tcp_ports  # commands that only ask need none

    busy = [each for each in every if not tcp_ports.is_free(each.port, each.host)]
    for each in busy:
        if each.is_chosen:
            raise SetupError(
                f"port {each.port} is taken by another program; stop that, or choose one with "
                f"{each.option}, or all with --ports FIRST (make demo PORTS=FIRST)"
            )
    return busy


def shown(settings: Settings, lacking: Collection[Place]) -> list[str]:
    """Return a line for each part: where it is, or that it is not there."""
    lines: dict[str, list[str]] = {}
    for each in places(settings):
        there = [f"none: port {each.port} is taken ({each.option})"]
        lines.setdefault(each.name, []).extend(there if each in lacking else each.urls)
    return [f"  {name:8} {'  '.join(found)}" for name, found in lines.items()]
