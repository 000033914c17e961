"""Java: a class with a `main`, with the jars of its package, in a JVM of its own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from monitoring.applications.drivers.driver import Deployment, Start
from monitoring.applications.package import Application
from monitoring.applications.repository import Place
from monitoring.configuration import NotUnderstood
from monitoring.weaving import java as woven
from servioticy.embedded import jars, java
from servioticy.settings import Settings

CHECK_SECONDS = 120
MOST_TOLD = 2_000
"""Characters of why it does not load."""


class Java:
    """`entry` is the name of a class; the package has classes in folders, or jars."""

    def check(self, deployment: Deployment) -> list[str]:
        """Have a JVM load the class, and run nothing of it.

        Raises NotUnderstood where it does not, SetupError without a Java.
        """
        application = deployment.application
        if any(each.language == "python" for each in application.aspect):
            engine = application.engine
            raise NotUnderstood(f"the engine {engine} has no Python that anything is woven into")
        found = java.find(deployment.settings)
        classes = self._classes(deployment)
        command = [str(found.executable), *self.options(), "--dry-run", "-cp", _path(classes)]
        try:
            done = subprocess.run(
                [*command, application.entry],
                cwd=deployment.place.package,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=CHECK_SECONDS,
            )
        except subprocess.TimeoutExpired:
            raise NotUnderstood(f"it has not loaded in {CHECK_SECONDS} s") from None
        if done.returncode:
            end = (done.stderr or done.stdout).decode(errors="replace").strip()[:MOST_TOLD]
            raise NotUnderstood(f"it does not load: {end}")
        return []

    def start(self, deployment: Deployment) -> Start:
        """Begin it; where it has aspects, with AspectJ's agent."""
        settings, place, application = (
            deployment.settings,
            deployment.place,
            deployment.application,
        )
        place.scratch.mkdir(mode=0o700, exist_ok=True)
        classes, agent = self._classes(deployment), self._agent(settings, place, application)
        command = [str(java.find(settings).executable), *agent[0], *self.options()]
        command += [f"-Djava.io.tmpdir={place.scratch}", "-cp", _path([*agent[1], *classes])]
        return Start([*command, application.entry, *application.arguments], {})

    def libraries(self, _settings: Settings) -> list[Path]:
        """Return the jars of the engine. Raises SetupError."""
        return []

    def options(self) -> Sequence[str]:
        """Return what the engine's JVM is told."""
        return ()

    def _classes(self, deployment: Deployment) -> list[Path]:
        package = deployment.place.package
        return [package, *sorted(package.rglob("*.jar")), *self.libraries(deployment.settings)]

    def _agent(
        self, settings: Settings, place: Place, application: Application
    ) -> tuple[list[str], list[Path]]:
        if not application.aspect:
            return [], []
        agent, compiled = jars.aspects(settings)
        folder = place.folder / "java"
        woven.written(folder, application.aspect, place.pipe, place.name)
        return [f"-javaagent:{agent}"], [folder, compiled]


def _path(classes: Sequence[Path]) -> str:
    return os.pathsep.join(map(str, classes))
