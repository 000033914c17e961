"""Where a client on this machine finds what the settings let listen."""

from __future__ import annotations

from servioticy.settings.sections import Settings


def reachable(host: str) -> str:
    """Return where a client on this machine finds what listens on `host`."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)  # noqa: S104


def api_url(settings: Settings) -> str:
    """Return where a client on this machine finds the API."""
    host = reachable(settings.host)
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.api.port}"
