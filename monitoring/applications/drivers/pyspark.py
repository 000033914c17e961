"""PySpark: a program that makes a session of its own, on this machine unless it says otherwise."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping

from monitoring.applications.drivers.driver import Deployment, Start
from monitoring.applications.drivers.python import Python, loaded
from monitoring.weaving import java as woven
from servioticy.embedded import jars, java

CONFIGURATION = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
"""What its session says itself is stronger."""


class PySpark:
    """`entry` is MODULE:FUNCTION, of the module that is Spark's driver.

    Spark's Python workers have the same path, so the same is woven into them. Aspects of Java are
    woven into the Java that the session starts, which on one machine is executor, too.
    """

    def check(self, deployment: Deployment) -> list[str]:
        """Load it in another process; no session is made. Raises SetupError without a Java."""
        environment = self._environment(deployment)
        return loaded(deployment.place.package, deployment.application, environment)

    def start(self, deployment: Deployment) -> Start:
        """Begin it as Python is, with the Java that our own Spark has."""
        start, place = Python().start(deployment), deployment.place
        place.scratch.mkdir(mode=0o700, exist_ok=True)
        aspects = deployment.application.aspect
        woven.written(place.folder / "java", aspects, place.pipe, place.name)
        return Start(start.command, {**self._environment(deployment), **start.environment})

    def _environment(self, deployment: Deployment) -> Mapping[str, str]:
        java.pyspark_jars()
        place, application = deployment.place, deployment.application
        chosen = {**CONFIGURATION, "spark.local.dir": str(place.scratch)}
        options = [word for key, value in chosen.items() for word in ("--conf", f"{key}={value}")]
        if woven.of_java(application.aspect):
            agent, aspects = jars.aspects(deployment.settings)
            options += ["--driver-java-options", f"-javaagent:{agent}"]
            options += ["--driver-class-path", f"{place.folder / 'java'}:{aspects}"]
        return {
            "JAVA_HOME": str(java.find(deployment.settings).home),
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "PYSPARK_SUBMIT_ARGS": shlex.join(["--master", "local[2]", *options, "pyspark-shell"]),
        }
