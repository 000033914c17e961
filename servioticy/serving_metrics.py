"""`/metrics` of a program: where the settings say, and which process of which platform it is."""

from __future__ import annotations

from importlib import metadata

from servioticy.metrics import Registry
from servioticy.metrics.names import PROCESS
from servioticy.metrics.server import Server
from servioticy.settings import Settings
from servioticy.settings.places import METRICS, metrics_ports, platform


def serve(registry: Registry, settings: Settings, program: str) -> Server | None:
    """Serve what a process of a program counts from now on; nowhere, where its port is 0."""
    ports = metrics_ports(settings, program)
    if not ports:
        return None
    which = program, metadata.version("servioticy"), platform(settings)
    registry.observe(PROCESS, lambda: {which: 1.0})
    return Server(registry, settings.metrics_host, ports, setting=METRICS[program])
