"""Storm: a program that runs its topologies in a cluster within its own JVM."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from monitoring.applications.drivers.java import Java
from servioticy.embedded import jars
from servioticy.settings import Settings


class Storm(Java):
    """As Java, with Storm's jars: `entry` makes a LocalCluster and submits to it."""

    def libraries(self, settings: Settings) -> list[Path]:
        """Return Storm's. Raises SetupError where they were not fetched."""
        return jars.storm(settings)

    def options(self) -> Sequence[str]:
        """Return what its serialization needs of newer Java."""
        opened = ("java.lang", "java.nio", "java.util", "sun.nio.ch")
        return [f"--add-opens=java.base/{each}=ALL-UNNAMED" for each in opened]
