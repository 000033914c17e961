"""A connection to a program of ours on this machine, by TLS where it speaks that."""

from __future__ import annotations

import http.client
import ssl

from servioticy.settings.places import reachable


def connection(
    host: str, port: int, seconds: float, believed: ssl.SSLContext | str = ""
) -> http.client.HTTPConnection:
    """Return one that the first request opens; `believed` is `trust.own` of the settings."""
    found = reachable(host)
    if isinstance(believed, ssl.SSLContext):
        return http.client.HTTPSConnection(found, port, timeout=seconds, context=believed)
    return http.client.HTTPConnection(found, port, timeout=seconds)
