"""Where the broker is, and whose its topics are, as the settings say it."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from servioticy.errors import SettingsError
from servioticy.settings.outward import Bridge

PORTS = {"mqtt": 1883, "mqtts": 8883}


@dataclass(frozen=True, slots=True)
class Target:
    """A broker, and who we are there."""

    host: str
    port: int
    tls: ssl.SSLContext | None
    user: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Binding:
    """All topics below a prefix are one tenant's; with an empty prefix, all there are."""

    prefix: str
    token: str = field(repr=False)
    client_id: str

    @property
    def above(self) -> str:
        """Return what stands before the topics that we know."""
        return f"{self.prefix}/" if self.prefix else ""


def read_target(chosen: Bridge) -> Target:
    """Return the broker that the settings name. Raises SettingsError."""
    try:
        place = urlsplit(chosen.url)
        port = place.port or PORTS[place.scheme]
    except (ValueError, KeyError):
        raise SettingsError(f"setting bridge_url = {chosen.url!r}: this is no address") from None
    if not place.hostname:
        raise SettingsError(f"setting bridge_url = {chosen.url!r}: it names no host")
    if chosen.password and not chosen.user:
        raise SettingsError(
            "bridge_password is set, and bridge_user is not: MQTT has both or none"
        )
    tls = _tls(chosen) if place.scheme == "mqtts" else None
    return Target(place.hostname, port, tls, chosen.user, chosen.password)


def read_bindings(chosen: Bridge) -> list[Binding]:
    """Return whose topics they are. Raises SettingsError where two would have the same."""
    if not chosen.tenants:
        raise SettingsError("bridge_url is set, and bridge_tenants says nobody's topics are there")
    prefixes = sorted(chosen.tenants)
    for prefix in prefixes:
        for other in prefixes:
            if prefix != other and (not prefix or other.startswith(f"{prefix}/")):
                raise SettingsError(
                    f"setting bridge_tenants: {other!r} lies below {prefix!r}, another's"
                )
    return [
        Binding(each, chosen.tenants[each], _client_id(chosen.client_id, each))
        for each in prefixes
    ]


def _client_id(name: str, prefix: str) -> str:
    """A slash in it would break rules that brokers have for what a client may do.

    Prefixes have no dots, so no two of them get the same.
    """
    return f"{name}.{prefix.replace('/', '.')}" if prefix else name


def _tls(chosen: Bridge) -> ssl.SSLContext:
    """Return how we are sure of the broker; there is no way to be less sure of it."""
    files = {"bridge_ca": chosen.ca, "bridge_certificate": chosen.certificate}
    try:
        context = ssl.create_default_context(cafile=chosen.ca or None)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if chosen.certificate:
            # Without a word of ours a terminal would be asked for the password of a key.
            context.load_cert_chain(chosen.certificate, chosen.key or None, password="")
    except (OSError, ValueError) as error:
        named = ", ".join(f"{name} = {file!r}" for name, file in files.items() if file)
        raise SettingsError(f"settings {named}: {error}") from None
    return context
