"""Plain Python: a function of a module, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from monitoring.applications import checking
from monitoring.applications.drivers.driver import Deployment, Start
from monitoring.applications.package import Application
from monitoring.configuration import NotUnderstood

ROOT = Path(checking.__file__).parents[2]
"""Where ours is loaded from, if it is installed nowhere."""
CHECK_SECONDS = 120
MOST_TOLD = 2_000
"""Characters of why it does not load."""


class Python:
    """`entry` is MODULE:FUNCTION."""

    def check(self, deployment: Deployment) -> list[str]:
        """Load it in another process, without anything woven."""
        if any(each.language == "java" for each in deployment.application.aspect):
            raise NotUnderstood("the engine python has no Java that anything is woven into")
        return loaded(deployment.place.package, deployment.application, {})

    def start(self, deployment: Deployment) -> Start:
        """Begin it with ours first on its path, which weaves what loads behind it."""
        place, application = deployment.place, deployment.application
        command = [sys.executable, "-m", "monitoring.applications.entering", application.entry]
        path = os.pathsep.join(map(str, (place.loaded, place.package, ROOT)))
        return Start([*command, *application.arguments], {"PYTHONPATH": path})


def loaded(package: Path, application: Application, environment: Mapping[str, str]) -> list[str]:
    """Load an entry's module apart; return what names nothing. Raises NotUnderstood."""
    with TemporaryDirectory() as scratch:
        answer = Path(scratch) / "answer.json"
        command = [sys.executable, "-m", checking.__name__]
        ours = [each for each in application.aspect if each.language == "python"]
        pointcuts = [each.pointcut for each in ours]
        try:
            done = subprocess.run(
                [*command, str(answer), application.entry, *pointcuts],
                cwd=package,
                env={**os.environ, **environment, **application.environment},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=CHECK_SECONDS,
                start_new_session=True,
            )
        except subprocess.TimeoutExpired:
            raise NotUnderstood(
                f"it has not loaded in {CHECK_SECONDS} s: what stands outside of functions runs "
                "when a module is loaded"
            ) from None
        try:
            told = json.loads(answer.read_bytes())
        except (OSError, ValueError):
            end = done.stderr.decode(errors="replace").strip()[-MOST_TOLD:]
            raise NotUnderstood(
                f"it does not load: it ended with code {done.returncode}: {end}"
            ) from None
    if told["why"]:
        raise NotUnderstood(f"it does not load: {told['why'][:MOST_TOLD]}")
    return [str(each) for each in told["nowhere"]]
