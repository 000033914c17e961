"""What whoever makes a subscription is told of an address that will not be called."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

LOOPBACK = "127.0.0.1"


def address_warnings(destination: str, networks: Iterable[str]) -> list[str]:
    """Return why an address that stands there as a number, or as localhost, is not called.

    Only to be told: delivery decides, when it knows whom it would call. Names are not resolved.
    """
    try:
        host = (urlsplit(destination).hostname or "").rstrip(".")
        found = ip_address(LOOPBACK if host == "localhost" else host)
        allowed = [ip_network(each) for each in networks]
    except ValueError:
        return []
    if found.is_global or any(found in each for each in allowed):
        return []
    return [
        f"{host} is not a public address: it is not called unless the operator allows its "
        f"network by the setting live_callback_networks ({found}/{found.max_prefixlen}) "
        "and starts delivery again"
    ]
