"""Names of receivers are resolved to addresses that may be called."""

from __future__ import annotations

import socket

from aiohttp.abc import AbstractResolver, ResolveResult

from delivery.callbacks.lookups import Found, Lookups
from servioticy.domain.outside_addresses import Rules


class CheckedResolver(AbstractResolver):
    """Resolves names to addresses that may be called."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._lookups = Lookups()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return all addresses. Raises OSError where there is none, or one is forbidden.

        One for all: whoever mixes public and private ones is up to something.
        """
        return self._checked(host, port, await self._lookups.look_up(host, port, family))

    def _checked(self, host: str, port: int, found: Found) -> list[ResolveResult]:
        results = []
        for family, _type, protocol, _name, (address, *_rest) in found:
            self._rules.check(str(address).partition("%")[0], port)
            results.append(
                ResolveResult(
                    hostname=host,
                    host=str(address),
                    port=port,
                    family=family,
                    proto=protocol,
                    flags=socket.AI_NUMERICHOST,
                )
            )
        return results

    async def close(self) -> None:
        """Look nothing up any more."""
        self._lookups.stop()
