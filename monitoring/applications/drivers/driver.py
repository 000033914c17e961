"""What a driver does; each stands in a file of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from monitoring.applications.package import Application
from monitoring.applications.repository import Place
from servioticy.settings import Settings


class Deployment(NamedTuple):
    """What is to be begun."""

    application: Application
    place: Place
    settings: Settings


class Start(NamedTuple):
    """A program that runs the application, begun in the folder of its package."""

    command: list[str]
    environment: Mapping[str, str]
    """beside the monitor's own"""


class Driver(Protocol):
    """One engine."""

    def check(self, deployment: Deployment) -> list[str]:
        """Return what of its pointcuts is nowhere, once the application loads.

        Raises NotUnderstood where it does not, SetupError where the engine is not here.
        """

    def start(self, deployment: Deployment) -> Start:
        """Return how it is begun. Raises ServioticyError."""
