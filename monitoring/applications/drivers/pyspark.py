"""PySpark: a program that makes a session of its own, on this machine unless it says otherwise."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping

from monitoring.applications.drivers.driver import Deployment, Start
from monitoring.applications.drivers.python import Python, loaded
from servioticy.embedded import java

CONFIGURATION = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
"""What its session says itself is stronger."""


class PySpark:
    """`entry` is MODULE:FUNCTION, of the module that is Spark's driver.

    Spark's Python workers have the same path, so the same is woven into them.
    """

    def check(self, deployment: Deployment) -> list[str]:
        """Load it in another process; no session is made. Raises SetupError without a Java."""
        environment = self._environment(deployment)
        return loaded(deployment.place.package, deployment.application, environment)

    def start(self, deployment: Deployment) -> Start:
        """Begin it as Python is, with the Java that our own Spark has."""
        start = Python().start(deployment)
        scratch = deployment.place.scratch
        scratch.mkdir(mode=0o700, exist_ok=True)
        return Start(start.command, {**self._environment(deployment), **start.environment})

    def _environment(self, deployment: Deployment) -> Mapping[str, str]:
        java.pyspark_jars()
        chosen = {**CONFIGURATION, "spark.local.dir": str(deployment.place.scratch)}
        options = [word for key, value in chosen.items() for word in ("--conf", f"{key}={value}")]
        return {
            "JAVA_HOME": str(java.find(deployment.settings).home),
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "PYSPARK_SUBMIT_ARGS": shlex.join(["--master", "local[2]", *options, "pyspark-shell"]),
        }
