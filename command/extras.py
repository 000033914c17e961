"""Which parts of the platform are installed, and what brings the others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import metadata

from servioticy.errors import SetupError

OURS = "servioticy"
REQUIREMENT = re.compile(r"([\w.-]+)(?:\[([\w,-]+)\])?")
PINNED = re.compile(r"([\w.-]+)(?:\[[\w,-]+\])? *== *([\w.!+]+)$")
EXTRA = re.compile(r"extra *== *[\"']([\w-]+)[\"']")


def require(extra: str) -> None:
    """Raises SetupError, naming the remedy, unless all that the extra brings is installed."""
    missing = sorted({each for each in packages(extra) if not _installed(each)})
    if missing:
        raise SetupError(
            f"this installation has no {', '.join(missing)}: "
            f"pip install '{OURS}[{extra}]', on one machine '{OURS}[local]'"
        )


def packages(extra: str) -> Iterator[str]:
    """Yield the names of the packages that an extra brings, by those that it names, too."""
    for line in metadata.requires(OURS) or ():
        requirement, _, condition = line.partition(";")
        of = EXTRA.search(condition)
        named = REQUIREMENT.match(requirement.strip())
        if of is None or of[1] != extra or named is None:
            continue
        if named[1] != OURS:
            yield named[1]
        for other in (named[2] or "").split(",") if named[1] == OURS else ():
            yield from packages(other)


def pinned(extra: str) -> dict[str, str]:
    """Return the packages that an extra brings in one version alone, and those."""
    wanted = set(packages(extra))
    found = {}
    for line in metadata.requires(OURS) or ():
        if exact := PINNED.match(line.partition(";")[0].strip()):
            found[exact[1]] = exact[2]
    return {name: version for name, version in found.items() if name in wanted}


def _installed(name: str) -> bool:
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True
