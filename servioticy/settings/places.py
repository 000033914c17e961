"""Where clients on this machine find what the settings let listen, and what is called there."""

from __future__ import annotations

import hashlib
import socket
from ipaddress import ip_address

from servioticy.settings.declared import DECLARED
from servioticy.settings.loading import by_name, changed
from servioticy.settings.sections import Settings

LOOPBACK_NETWORKS = "127.0.0.0/8 ::1/128"
EVERYWHERE = ("", "0.0.0.0", "::")  # noqa: S104  compared, not listened on
METRICS = {
    "up": "up_metrics_port",
    "api": "api_metrics_port",
    "pipeline": "pipeline_metrics_port",
    "delivery": "live_metrics_port",
    "broker": "mqtt_metrics_port",
    "functions": "functions_metrics_port",
}
"""The setting of each program's port for metrics."""
METRICS_STEP, METRICS_PROCESSES = 100, 10
"""From the port of one process to that of the next on the same machine, and how many may be there:
none of these is the default port of anything else of ours."""
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


def metrics_ports(settings: Settings, program: str) -> list[int]:
    """Return where a program tells its metrics: its port, and those of others of it beside it.

    None where the setting is 0.
    """
    first = by_name(settings)[METRICS[program]]
    ports = range(first, 65_536, METRICS_STEP) if first else ()
    return [*ports][:METRICS_PROCESSES]


def platform(settings: Settings) -> str:
    """Return what tells the processes of one platform from those of another."""
    log = f"{settings.log.bootstrap_servers} {settings.log.topic_prefix}"
    return hashlib.blake2b(log.encode(), digest_size=4).hexdigest()


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
