"""The jars of the broker and of Spark: downloaded once, pinned by a lock file, or compiled here.

The lock file says what each jar is for and what its bytes are.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from servioticy.embedded import classes, downloads
from servioticy.embedded.classes import Classes
from servioticy.embedded.downloads import Download, Progress, Repository
from servioticy.errors import SetupError
from servioticy.settings import Settings

UNKNOWN_SUM = "-"


@dataclass(frozen=True, slots=True)
class Jar:
    """One line of the lock file."""

    path: str
    sha256: str
    uses: frozenset[str]
    optional: bool = False

    @property
    def name(self) -> str:
        """The file's name. It holds the version, so that two versions live side by side."""
        return self.path.rsplit("/", 1)[-1]

    @property
    def digest(self) -> str | None:
        """The digest as `downloads` takes it."""
        return None if self.sha256 == UNKNOWN_SUM else f"sha256:{self.sha256}"

    def matches(self, content: bytes) -> bool:
        """Tell whether these are the bytes that were locked."""
        return self.sha256 in (UNKNOWN_SUM, hashlib.sha256(content).hexdigest())


STORM = "storm.lock"
"""Of an engine for applications that are not ours; nothing of the platform needs it."""


def locked(lock: str = "jars.lock") -> list[Jar]:
    """Return every jar of a lock file."""
    text = files("deploy").joinpath(lock).read_text(encoding="utf-8")
    lines = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    return [
        Jar(path, digest, frozenset(words) - {"optional"}, "optional" in words)
        for path, digest, *words in lines
    ]


def missing(settings: Settings) -> list[Jar]:
    """Return the jars that must be downloaded before the platform can run."""
    return [jar for jar in _absent(settings, locked()) if not jar.optional]


def damaged(settings: Settings) -> list[Path]:
    """Return the downloaded jars whose bytes are no longer those of the lock file."""
    here = {settings.embedded.jars_path / jar.name: jar for jar in locked()}
    return [
        path for path, jar in here.items() if path.exists() and not jar.matches(path.read_bytes())
    ]


def classpath(settings: Settings, use: str) -> list[Path]:
    """Return the downloaded jars for one use: `kafka`, `spark` or `aspects`.

    Raises SetupError if one is missing.
    """
    absent = [jar.name for jar in missing(settings) if use in jar.uses]
    if absent:
        raise SetupError(
            f"{len(absent)} jars are missing in {settings.embedded.jars_path} ({absent[0]}, ...); "
            "run `make setup`"
        )
    paths = [settings.embedded.jars_path / jar.name for jar in locked() if use in jar.uses]
    return [path for path in paths if path.exists()]


def spark_jars(settings: Settings) -> list[Path]:
    """Return the jars that the pipeline's Spark needs, ours among them.

    Raises SetupError if any of them is missing.
    """
    ours = [classes.require(settings, each) for each in in_spark(settings)]
    return [*classpath(settings, "spark"), *ours]


def aspects(settings: Settings) -> tuple[Path, Path]:
    """Return AspectJ's agent, and the aspects that it weaves into Java.

    Raises SetupError if one is missing.
    """
    (agent,) = classpath(settings, "aspects")
    return agent, classes.require(settings, Classes.ASPECTS)


def storm(settings: Settings) -> list[Path]:
    """Return the jars of Storm. Raises SetupError where one was not fetched."""
    wanted = locked(STORM)
    if absent := _absent(settings, wanted):
        raise SetupError(
            f"{len(absent)} jars of Storm are missing in {settings.embedded.jars_path} "
            f"({absent[0].name}, ...); fetch them: `servioticy bench applications --engines storm`"
        )
    return [settings.embedded.jars_path / each.name for each in wanted]


def compiled(settings: Settings) -> list[Classes]:
    """Return what is compiled here."""
    return [*in_spark(settings), Classes.ASPECTS]


def in_spark(settings: Settings) -> list[Classes]:
    """Return what the pipeline's Spark has: stand-ins only for the optional jar not here."""
    optional = [settings.embedded.jars_path / jar.name for jar in locked() if jar.optional]
    stand_ins = [] if all(path.exists() for path in optional) else [Classes.KAFKA_TOKENS]
    return [Classes.BUNDLES, *stand_ins]


def download(
    settings: Settings, progress: Progress, jars: Iterable[Jar] | None = None
) -> list[Jar]:
    """Download the jars that are not here, and return the optional ones that are not to be had.

    Raises SetupError, which says what to do.
    """
    wanted = {
        Download(jar.path, settings.embedded.jars_path / jar.name, jar.digest, jar.optional): jar
        for jar in _absent(settings, locked() if jars is None else jars)
    }
    settings.embedded.jars_path.mkdir(parents=True, exist_ok=True)
    maven = Repository(
        settings.embedded.maven, "SERVIOTICY_MAVEN", "Maven Central", "deploy/jars.lock"
    )
    return [wanted[each] for each in downloads.fetch(maven, list(wanted), progress)]


def _absent(settings: Settings, jars: Iterable[Jar]) -> list[Jar]:
    try:
        there = {entry.name for entry in os.scandir(settings.embedded.jars_path)}
    except FileNotFoundError:
        there = set()
    return [jar for jar in jars if jar.name not in there]
