"""Which addresses may be called: public ones, and whatever an operator allows beside them.

A name is resolved by who calls, every address that comes of it is checked, and the connection is
made to just these addresses: what a name server says a moment later does not matter. Ways of
writing an address (`127.1`, `0x7f000001`, full-width digits) do not matter either, as what is
looked at is the number that the system makes of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from servioticy.errors import SettingsError

NOT_PUBLIC = tuple(
    map(
        ip_network,
        (
            "168.63.129.16/32",  # Azure's own services
            "192.0.0.0/24",  # among them Oracle's own services
            "192.88.99.0/24",  # 6to4 relays
            "::/96",  # IPv4 addresses in the clothes of IPv6: these, and the following
            "::ffff:0:0/96",
            "64:ff9b::/32",
            "2001::/32",
            "2002::/16",
            "fec0::/10",  # site-local
        ),
    )
)
"""What Python holds to be public, and should not be called."""

PORTS = frozenset({80, 443, 8080, 8443})
"""Services that are no web servers listen elsewhere."""


class ForbiddenAddress(OSError):
    """The address may not be called; the message says why."""


class Rules:
    """Says which addresses and ports may be called."""

    def __init__(self, networks: Iterable[str] = (), own_ports: Collection[int] = ()) -> None:
        """`networks` may be called beside the public ones, at any port. Raises SettingsError.

        On this machine all but `own_ports`: what listens there is the platform itself.
        """
        self._own_ports = frozenset(own_ports)
        try:
            self._networks = tuple(map(ip_network, networks))
        except ValueError as error:
            raise SettingsError(f"live_callback_networks: {error}") from None

    def check(self, address: str, port: int) -> None:
        """Raise ForbiddenAddress unless this address may be called at this port."""
        try:
            found = ip_address(address)
        except ValueError:
            raise ForbiddenAddress(f"{address} is no address") from None
        if port in self._own_ports and _is_here(found):
            raise ForbiddenAddress(f"port {port} of this machine is one of the platform's own")
        if any(found in each for each in self._networks if each.version == found.version):
            return
        if not _is_public(found):
            raise ForbiddenAddress(
                "the address is not a public one; the operator may allow its network by the "
                "setting live_callback_networks"
            )
        if port not in PORTS:
            ports = ", ".join(map(str, sorted(PORTS)))
            raise ForbiddenAddress(f"port {port} is not one of {ports}")

    def check_literal(self, host: str, port: int) -> None:
        """Check an address that stands in a URL itself; a name is resolved later."""
        try:
            ip_address(host.partition("%")[0])
        except ValueError:
            return
        self.check(host.partition("%")[0], port)


def _is_here(address: IPv4Address | IPv6Address) -> bool:
    """Return whether it is this machine: its loopback, or no address, which leads there, too."""
    found = (address.ipv4_mapped if isinstance(address, IPv6Address) else None) or address
    return found.is_loopback or int(found) == 0


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    if not address.is_global or address.is_multicast or address.is_reserved:
        return False
    return not any(address in each for each in NOT_PUBLIC if each.version == address.version)
