"""Where a client on this machine finds what the settings let listen."""

from __future__ import annotations

from servioticy.settings.sections import Settings


def reachable(host: str) -> str:
    """Return where a client on this machine finds what listens on `host`."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)  # noqa: S104


def in_url(host: str) -> str:
    """Return it as it stands in the URL a client on this machine uses."""
    found = reachable(host)
    return f"[{found}]" if ":" in found else found


def api_url(settings: Settings) -> str:
    """Return where a client on this machine finds the API."""
    return f"http://{in_url(settings.host)}:{settings.api.port}"


def live_url(settings: Settings) -> str:
    """Return where a client on this machine finds delivery's WebSockets."""
    return f"ws://{in_url(settings.host)}:{settings.delivery.port}"
