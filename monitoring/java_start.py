"""The platform's own Java, woven as it starts by the same file as everybody; light to import."""

from __future__ import annotations

import logging
import os
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from monitoring.configuration import Aspect, NotUnderstood, file_of, read
from monitoring.state import FOLDER, PROCESSES
from monitoring.weaving import java as woven
from servioticy.embedded import jars
from servioticy.embedded.java import NOTHING_ADDED, Added
from servioticy.errors import SetupError
from servioticy.settings import Settings

log = logging.getLogger("servioticy.monitoring")

READER = "java-measurements"
"""The process that reads what Java of ours measures, and its files."""


def at_start(settings: Settings, program: str) -> Added:
    """Return what a Java of ours is begun with: nothing where no aspect is one of Java's.

    Never fails: a platform starts without measurements rather than not at all.
    """
    folder = folder_of(settings.data_path) / program
    shutil.rmtree(folder, ignore_errors=True)
    aspects = _aspects(settings)
    if not aspects:
        return NOTHING_ADDED
    pipe = pipe_of(settings.data_path)
    processes = settings.data_path / FOLDER / PROCESSES
    try:
        agent, compiled = jars.aspects(settings)
        woven.written(folder, aspects, pipe, program, processes)
        with suppress(FileExistsError):
            os.mkfifo(pipe, 0o600)
    except (SetupError, OSError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        log.warning("java_not_woven", extra={"program": program, "why": str(error)})
        return NOTHING_ADDED
    return Added((f"-javaagent:{agent}",), (folder, compiled))


def commands(data: Path) -> dict[str, list[str]]:
    """Return the command of the process that reads, by its name, where any Java may write."""
    begun = any(folder_of(data).glob("*/META-INF/aop.xml"))
    return (
        {READER: [sys.executable, "-P", "-m", "monitoring.applications.java_reading"]}
        if begun
        else {}
    )


def pipe_of(data: Path) -> Path:
    """Return the named pipe that each Java of ours writes to."""
    return folder_of(data) / "measurements.pipe"


def folder_of(data: Path) -> Path:
    """Return where each of them has a folder with what it reads."""
    return data / FOLDER / "java"


def _aspects(settings: Settings) -> Sequence[Aspect]:
    file = file_of(settings)
    if not file.exists():
        return ()
    try:
        return woven.of_java(read(file).aspect)
    except NotUnderstood as error:
        log.error("aspects_not_understood", extra={"file": str(file), "why": str(error)})
        return ()
