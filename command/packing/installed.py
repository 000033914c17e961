"""What is installed here that a worker needs, and the files of it."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import command as room
from command import extras
from servioticy.errors import SetupError

PART = "pipeline"
"""The part of the package that computes."""
OURS = (
    *("servioticy", "operators", "ingest", "monitoring", "pipeline", "sandbox", "schemas"),
    *("command", "deploy", "api", "delivery", "broker", "functions", "benchmarks"),
)
"""The rooms of this project that go to other machines."""
HERE = Path(room.__file__).parents[1]
"""Where those stand."""
_SPARKS_JARS = ("pyspark", "jars")


def rooms() -> Iterator[tuple[str, Path]]:
    """Yield the files of our own rooms: the name of each in the environment, and where it is."""
    for name in OURS:
        for file in _whole(HERE / name):
            yield file.relative_to(HERE).as_posix(), file


def others(*, with_spark: bool) -> Iterator[tuple[str, Path]]:
    """Yield the files of what the pipeline stands on, versions as they are here.

    `with_spark`: the jars of Spark, too, which a worker of somebody's Spark has already.
    Raises SetupError where something is not installed.
    """
    for each in _distributions():
        for file in each.files or ():
            outside = file.parts[0] == ".." or file.is_absolute()
            if outside or file.suffix == ".pyc" or "__pycache__" in file.parts:
                continue  # scripts, which name the Python here; and what each Python makes anew
            if not with_spark and file.parts[:2] == _SPARKS_JARS:
                continue
            found = Path(str(each.locate_file(file)))
            if found.is_file():
                yield file.as_posix(), found


def _distributions() -> list[metadata.Distribution]:
    """Return what the pipeline needs, and what that needs, by name."""
    found: dict[str, metadata.Distribution] = {}
    wanted = {canonicalize_name(each) for each in (*extras.packages(PART), *_always())}
    while wanted:
        name = wanted.pop()
        try:
            found[name] = metadata.distribution(name)
        except metadata.PackageNotFoundError as error:
            raise SetupError(
                f"{name} is not installed: pip install '{extras.OURS}[{PART}]'"
            ) from error
        needed = {canonicalize_name(each.name) for each in _needs(found[name])}
        wanted |= needed - found.keys()
    return [found[name] for name in sorted(found)]


def _always() -> Iterator[str]:
    """What we need without any extra."""
    return (each.name for each in _needs(metadata.distribution(extras.OURS)))


def _needs(of: metadata.Distribution) -> Iterator[Requirement]:
    for line in of.requires or ():
        each = Requirement(line)
        if each.marker is None or each.marker.evaluate({"extra": ""}):
            yield each


def _whole(folder: Path) -> Iterator[Path]:
    for file in sorted(folder.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            yield file
