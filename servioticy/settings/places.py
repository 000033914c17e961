"""Where clients on this machine find what the settings let listen, and what is called there."""

from __future__ import annotations

import socket
from ipaddress import ip_address

from servioticy.settings.declared import DECLARED
from servioticy.settings.loading import by_name, changed
from servioticy.settings.sections import Settings

LOOPBACK_NETWORKS = "127.0.0.0/8 ::1/128"
EVERYWHERE = ("", "0.0.0.0", "::")  # noqa: S104  compared, not listened on
NO_NETWORKS = "none"
"""A setting that says so is no default, and stays."""


def reachable(host: str) -> str:
    """Return where a client on this machine finds what listens on `host`."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)  # noqa: S104


def in_url(host: str) -> str:
    """Return it as it stands in the URL a client on this machine uses."""
    found = reachable(host)
    return f"[{found}]" if ":" in found else found


def api_url(settings: Settings) -> str:
    """Return where a client on this machine finds the API."""
    return f"{scheme(settings)}://{in_url(settings.host)}:{settings.api.port}"


def live_url(settings: Settings) -> str:
    """Return where a client on this machine finds delivery's WebSockets."""
    secure = "s" if settings.tls.certificate else ""
    return f"ws{secure}://{in_url(settings.host)}:{settings.delivery.port}"


def peer_url(settings: Settings) -> str:
    """Return where other processes of delivery find this one, on whatever machine they are."""
    host = socket.gethostname() if settings.host in EVERYWHERE else in_url(settings.host)
    own = f"{scheme(settings)}://{host}:{settings.delivery.port}"
    return settings.delivery.peer_url.rstrip("/") or own


def broker_peer_url(settings: Settings) -> str:
    """Return where other processes of the broker find this one; empty where it has no port."""
    host = socket.gethostname() if settings.host in EVERYWHERE else in_url(settings.host)
    own = settings.mqtt
    ports = (("mqtt", own.port), ("mqtts", own.tls_port))
    found = (f"{name}://{host}:{port}" for name, port in ports if port)
    return own.peer_url.rstrip("/") or next(found, "")


def scheme(settings: Settings) -> str:
    """Return what addresses of the API begin with."""
    return "https" if settings.tls.certificate else "http"


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches what listens there."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def on_one_machine(settings: Settings) -> Settings:
    """Return what `servioticy up` runs with: who alone reaches us may have callbacks to itself.

    Only where we listen on loopback ourselves, and where nothing else is said.
    """
    if settings.delivery.callback_networks or not is_loopback(settings.host):
        return settings
    return changed(settings, live_callback_networks=LOOPBACK_NETWORKS)


def callback_networks(settings: Settings) -> list[str]:
    """Return the networks that callbacks may reach beside public ones."""
    text = settings.delivery.callback_networks.strip()
    return [] if text == NO_NETWORKS else text.split()


def own_ports(settings: Settings) -> frozenset[int]:
    """Return the ports that the platform's programs listen on."""
    values = by_name(settings)
    return frozenset(values[name] for name in DECLARED if name.endswith("_port") and values[name])
