"""What whoever makes a subscription is told of an address that will not be called."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

from servioticy.settings import Settings
from servioticy.settings.places import callback_networks, own_ports

LOOPBACK = "127.0.0.1"


def address_warnings(destination: str, settings: Settings) -> dict[str, list[str]]:
    """Return `warnings` why an address that stands there as a number, or as localhost, is not
    called; nothing where it may be.

    Only to be told: delivery decides, when it knows whom it would call. Names are not resolved.
    """
    found = _warnings(destination, callback_networks(settings), own_ports(settings))
    return {"warnings": found} if found else {}


def _warnings(destination: str, networks: Iterable[str], platforms: Collection[int]) -> list[str]:
    try:
        parts = urlsplit(destination)
        host = (parts.hostname or "").rstrip(".")
        port = parts.port or (443 if parts.scheme.lower() == "https" else 80)
        found = ip_address(LOOPBACK if host == "localhost" else host)
        allowed = [ip_network(each) for each in networks]
    except ValueError:
        return []
    if found.is_loopback and port in platforms:
        return [f"port {port} of {host} is one of the platform's own: it is not called"]
    if found.is_global or any(found in each for each in allowed):
        return []
    return [
        f"{host} is not a public address: it is not called unless the operator allows its "
        f"network by the setting live_callback_networks ({found}/{found.max_prefixlen}) "
        "and starts delivery again"
    ]
