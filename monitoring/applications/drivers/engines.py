"""The engines that there are drivers for: ours, and those that were supplied as files."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from monitoring.applications.drivers.driver import Deployment, Driver, Start
from monitoring.applications.drivers.java import Java
from monitoring.applications.drivers.pyspark import PySpark
from monitoring.applications.drivers.python import Python
from monitoring.applications.drivers.storm import Storm
from monitoring.applications.repository import drivers_folder
from monitoring.configuration import NotUnderstood

OURS: Mapping[str, type[Driver]] = {
    "python": Python,
    "pyspark": PySpark,
    "java": Java,
    "storm": Storm,
}
MOST = 20
MAX_BYTES = 1 << 20
_NAME = re.compile(r"^[a-z][a-z0-9-]{0,39}$")


class Supplied:
    """A driver of somebody else's: a file with `start(deployment)`, and `check` if it likes.

    Both are given a dictionary: name, entry, arguments, package, folder, aspects (the file), pipe,
    and `loaded`, which weaves where it is first on Python's path.
    `start` returns `command` and `environment`, `check` a list of pointcuts that name nothing; it
    raises where the application does not load.
    """

    def __init__(self, file: Path) -> None:
        """Raises NotUnderstood where the file does not load, or has no `start`."""
        self._file = file
        try:
            spec = importlib.util.spec_from_file_location(f"driver_{file.stem}", file)
            assert spec is not None and spec.loader is not None  # noqa: S101
            self._module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(self._module)
        except Exception as error:  # noqa: BLE001  it is not ours
            raise NotUnderstood(f"the driver {file} does not load: {error!r}") from None
        if not callable(getattr(self._module, "start", None)):
            raise NotUnderstood(f"the driver {file} has no function start")

    def check(self, deployment: Deployment) -> list[str]:
        """Ask its `check`."""
        check = getattr(self._module, "check", None)
        return (
            [] if check is None else [str(each) for each in self._asked(check, deployment) or ()]
        )

    def start(self, deployment: Deployment) -> Start:
        """Ask its `start`."""
        found = self._asked(self._module.start, deployment)
        try:
            command = [os.fspath(each) for each in found["command"]]
            environment = {str(k): str(v) for k, v in found.get("environment", {}).items()}
        except (TypeError, KeyError, AttributeError) as error:
            raise NotUnderstood(f"the driver {self._file} says no command: {error!r}") from None
        return Start(command, environment)

    def _asked(self, what: Any, deployment: Deployment) -> Any:
        place, application = deployment.place, deployment.application
        try:
            return what(
                {
                    "name": application.name,
                    "entry": application.entry,
                    "arguments": list(application.arguments),
                    "package": str(place.package),
                    "folder": str(place.folder),
                    "aspects": str(place.aspects),
                    "pipe": str(place.pipe),
                    "loaded": str(place.loaded),
                }
            )
        except Exception as error:  # noqa: BLE001  it is not ours
            raise NotUnderstood(f"the driver {self._file} says: {error}") from None


def driver(data: Path, engine: str) -> Driver:
    """Return the driver of an engine. Raises NotUnderstood where there is none."""
    if engine in OURS:
        return OURS[engine]()
    file = drivers_folder(data) / f"{engine}.py"
    if not file.is_file():
        raise NotUnderstood(
            f"there is no driver for the engine {engine}: supply one with `servioticy monitoring "
            f"driver {engine} FILE`; known: {', '.join(known(data))}"
        )
    return Supplied(file)


def known(data: Path) -> list[str]:
    """Return the engines that have a driver."""
    return [*OURS, *sorted(each.stem for each in drivers_folder(data).glob("*.py"))]


def supply(data: Path, engine: str, file: Path) -> None:
    """Keep a driver, in the place of one of the same name. Raises NotUnderstood, OSError."""
    if not _NAME.match(engine):
        raise NotUnderstood(f"{engine} is no name of an engine: small letters, digits and -")
    if engine in OURS:
        raise NotUnderstood(f"the driver of {engine} is ours")
    text = file.read_bytes()
    if len(text) > MAX_BYTES:
        raise NotUnderstood(f"a driver has {MAX_BYTES:,} bytes at most")
    folder = drivers_folder(data)
    target = folder / f"{engine}.py"
    if not target.exists() and len(known(data)) - len(OURS) >= MOST:
        raise NotUnderstood(f"there are {MOST} drivers already")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    partial = folder / f".{engine}.{os.getpid()}.py"
    try:
        partial.write_bytes(text)
        Supplied(partial)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
