"""Classes that Java keeps ready to be mapped, in the Python environment, a file for each use.

To load, verify and link them is half of the processor time of a start. Java takes no notice of a
file that does not fit its version or its class path, so none can do harm.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from servioticy.embedded import java
from servioticy.embedded.java import Java


def path(use: str, classes: Sequence[Path], runtime: Java) -> Path:
    """Return where the file is for this use (`spark`, `kafka`) of these very jars and Java."""
    used = (runtime.executable, java.pyspark_jars(), *classes)
    about = [version("pyspark"), *(f"{each} {each.stat().st_mtime_ns}" for each in used)]
    digest = hashlib.sha256("\n".join(about).encode()).hexdigest()
    return Path(sys.prefix) / f"{_name(use)}{digest[:12]}.jsa"


def options(use: str, classes: Sequence[Path], runtime: Java) -> tuple[str, ...]:
    """Return what Java is told to use the file; nothing where there is none."""
    target = path(use, classes, runtime)
    return (f"-XX:SharedArchiveFile={target}",) if target.exists() else ()


def recording(file: Path) -> tuple[str, ...]:
    """Return what Java is told to write such a file when it ends, of all that it has used."""
    return (f"-XX:ArchiveClassesAtExit={file}",)


def keep(use: str, new: Path, target: Path) -> None:
    """Let a file that was written be used, and remove those of other versions."""
    new.replace(target)
    for other in target.parent.glob(f"{_name(use)}*.jsa"):
        if other != target:
            other.unlink(missing_ok=True)


def _name(use: str) -> str:
    return f"servioticy-{use}-"
