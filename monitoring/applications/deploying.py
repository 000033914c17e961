"""The way of a package into the repository: read, copied, loaded by its driver, then in force."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import mkdtemp

from monitoring.applications import package, repository
from monitoring.applications.drivers import engines
from monitoring.applications.drivers.driver import Deployment
from monitoring.applications.repository import Place, Registered
from servioticy.settings import Settings


def deploy(settings: Settings, folder: Path) -> tuple[Registered, list[str]]:
    """Register a package; return it, and the pointcuts that name nothing once it is loaded.

    Raises NotUnderstood, TooMuch, SetupError, OSError; then nothing has changed.
    """
    folder = folder.resolve()
    repository.measured(folder)
    application = package.read(folder)
    driver = engines.driver(settings.data_path, application.engine)
    apart = Path(mkdtemp(prefix="servioticy-check-"))
    try:
        place = Place(apart, application.name)
        place.folder.mkdir(parents=True)
        # Loaded from a copy: what it writes beside itself is not in the package.
        shutil.copytree(folder, place.package)
        nowhere = driver.check(Deployment(application, place, settings))
    finally:
        shutil.rmtree(apart, ignore_errors=True)
    return repository.register(settings.data_path, application, folder), nowhere
